"""The tutorial is true: its commands are run as it writes them, and print what it shows.

In `docs/tutorial.md`, a block marked `console` holds commands (`$ `, and `> ` where one goes on) and below each what it
prints on standard output. `…` stands for what differs from run to run: a position, a time, a length of time; alone on
a line it stands for any number of lines. Other blocks are not run. `headwater` runs in this process, on the Spark
session that all tests share; bash runs everything else. Before the page takes its project down, the Python of
`docs/guides/read.md` runs on it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import headwater
from headwater.cli.entry import app_for
from headwater.sources.embedded import EmbeddedServer

DOCUMENTS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCUMENTS / "tutorial.md"
READING = DOCUMENTS / "guides" / "read.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the page, and what the page says that it prints."""

    text: str
    output: str


def commands_in(page: str) -> Iterator[Command]:
    """Yield the commands of a page's `console` blocks."""
    for block in re.findall(r"^```console\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE):
        for command, output in re.findall(r"^\$ (.*\n(?:>(?: .*)?\n)*)((?:(?!\$ ).*\n)*)", block, flags=re.MULTILINE):
            yield Command(text=re.sub(r"^> ?", "", command, flags=re.MULTILINE).rstrip("\n"), output=output)


def matches(shown: str, printed: str) -> bool:
    """Tell whether a command printed what a page shows; `…` is any text of a line, and alone on a line any lines."""
    lines = [
        "(?:.*\n)*?" if line == "…\n" else ".*?".join(map(re.escape, line.split("…")))
        for line in shown.splitlines(keepends=True)
    ]
    return re.fullmatch("".join(lines), printed) is not None


class Shell:
    """Runs one command after the other, in one folder and with one environment, as a person's shell does."""

    def __init__(self, folder: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._state = folder.parent / "state of the shell"
        self._monkeypatch = monkeypatch
        monkeypatch.chdir(folder)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    def run(self, command: str) -> str:
        """Return what a command prints on standard output."""
        ours, _, others = command.partition(" | ")
        if not ours.startswith("headwater "):
            return self._bash(command)
        printed = self._headwater(self._bash(f"printf '%s\\0' {ours}").split("\0")[1:-1])
        return self._bash(others, printed) if others else printed

    def _headwater(self, arguments: list[str]) -> str:
        result = CliRunner().invoke(app_for(arguments[0]), arguments, prog_name="headwater")
        assert result.exit_code == 0, f"{arguments}: {result.output}"
        return result.stdout

    def _bash(self, command: str, standard_input: str = "") -> str:
        """Run a command, and go on where it went and with what it set."""
        script = f'set -euo pipefail -o allexport\n{command}\n{{ pwd && env -0; }} > "{self._state}"'
        done = subprocess.run(
            ["/bin/bash", "-c", script], input=standard_input, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        folder, _, variables = self._state.read_text().partition("\n")
        self._monkeypatch.chdir(folder)
        for name, _, value in (one.partition("=") for one in variables.split("\0") if one):
            if os.environ.get(name) != value and name not in {"PWD", "OLDPWD", "SHLVL", "_"}:
                self._monkeypatch.setenv(name, value)
        return done.stdout


@pytest.fixture
def shell(
    postgres_server: EmbeddedServer, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    del spark  # started
    folder = tmp_path / "home"
    folder.mkdir()
    binaries = (Path(sys.executable).parent, postgres_server.binaries)
    path = os.pathsep.join([*map(str, binaries), os.environ["PATH"]])
    yield Shell(folder, {"SERVER": f"127.0.0.1:{postgres_server.port}", "PATH": path}, monkeypatch)
    for database in ("shop", "staff"):  # slots are left if the page's own teardown was not reached
        postgres_server.execute(
            f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '{database}'"
        )
        postgres_server.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
    postgres_server.execute("DROP ROLE IF EXISTS headwater")


def test_commands_print_what_the_page_shows(shell: Shell) -> None:
    commands = list(commands_in(PAGE.read_text(encoding="utf-8")))
    assert len(commands) > 15
    for command in commands:
        if command.text.startswith("headwater teardown"):
            run_the_guide_on_reading(Path.cwd())
        printed = shell.run(command.text)
        assert matches(command.output, printed), f"$ {command.text}\nprinted\n{printed}\nnot\n{command.output}"


def run_the_guide_on_reading(project: Path) -> None:
    """Run the Python of the guide on a project that has its views, and compare what the tools got."""
    guide = READING.read_text(encoding="utf-8")
    with headwater.open(project) as shop:
        shop.publish("city_totals", to=str(project / "plain"))
    for written, here in {
        "/srv/headwater/shop": str(project),
        "/data/city_totals": str(project / "plain"),
        'duckdb.sql("SELECT * FROM delta_scan': 'delta_in_duckdb("SELECT * FROM delta_scan',
        "at(1041)": "at(1)",
        "changes(1041, follow=True)": "changes(1)",
        "2026-11-18 06:00": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"),
    }.items():
        assert written in guide
        guide = guide.replace(written, here)
    if find_spec("pandas") is None:  # not among the packages that `make venv` installs
        guide = guide.replace("totals.to_pandas()", "")
    names: dict[str, Any] = {"delta_in_duckdb": delta_in_duckdb}
    for block in re.findall(r"^```python\n(.*?)^```$", guide, flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, str(READING), "exec"), names)  # noqa: S102 - our own page
    assert names["totals"].to_pylist() == [{"city": "Oslo", "sales": 4, "amount": Decimal("84.75")}]
    assert [row["amount"] for row in names["then"].to_pylist()] == [Decimal("25.50"), Decimal("19.25")]
    assert (project / "city_totals.parquet").exists()


def delta_in_duckdb(sql: str) -> None:
    """Run a query with DuckDB's extension for Delta tables, which it fetches by itself where it is online."""
    [file] = Path(duckdb_extension_delta.__file__).parent.rglob("*.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        database.execute(f"LOAD '{file}'")
        assert database.execute(sql).fetchall() == [("Oslo", 4, Decimal("84.75"))]


def test_what_matches() -> None:
    assert matches("tick 3 at …, in … s\n", "tick 3 at 0/16B3748, in 0.4 s\n")
    assert not matches("tick 3 at …\n", "tick 4 at 0/16B3748\n")
    assert not matches("tick 3 at …\n", "tick 3 at 0/16B3748\nand more\n")
    assert matches("a\n…\nd\n", "a\nb\nc\nd\n")
    assert not matches("a\n…\nd\n", "a\nb\nc\n")
    [one, other] = commands_in("```console\n$ cat <<A\n> a\n> A\na\n\n$ true\n```\n```sh\n$ not run\n```\n")
    assert one == Command(text="cat <<A\na\nA", output="a\n\n")
    assert other == Command(text="true", output="")
