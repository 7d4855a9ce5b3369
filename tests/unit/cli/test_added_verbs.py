"""Verbs that other distributions bring, and `headwater lab` where none brings it."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint, EntryPoints

import pytest
import typer
from typer.testing import CliRunner

from headwater.cli import added_verbs
from headwater.cli.added_verbs import GROUP, add_verbs_of_others
from headwater.cli.program import new_app

greeter = typer.Typer(rich_markup_mode=None)


@greeter.command()
def greet() -> None:
    """Say hello."""
    typer.echo("hello")


@greeter.command()
def part() -> None:
    """Say good-bye."""
    typer.echo("good-bye")


def program(monkeypatch: pytest.MonkeyPatch, *brought: EntryPoint) -> typer.Typer:
    """Return the program as it is where these entry points are installed."""
    monkeypatch.setattr(added_verbs, "entry_points", lambda group: EntryPoints(brought).select(group=group))
    app = new_app()
    add_verbs_of_others(app)
    return app


@pytest.mark.parametrize("asked", [[], ["replay", "figure-5"], ["compare", "--sources", "2"]], ids=" ".join)
def test_without_the_lab_it_is_told_how_to_get_it(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    app = program(monkeypatch)
    shown = CliRunner().invoke(app, ["lab", *asked])
    assert shown.exit_code == 1
    assert "the lab is not installed" in shown.stderr
    assert "do:  pip install headwater-lab\n" in shown.stderr
    told = CliRunner().invoke(app, ["lab", *asked, "--json"])
    assert json.loads(told.stdout)["error"]["code"] == "HW-172"


def test_without_the_lab_the_help_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    app = program(monkeypatch)
    for asked in (["--help"], ["lab", "--help"]):
        shown = CliRunner().invoke(app, asked)
        assert shown.exit_code == 0
        assert "`pip install headwater-lab`" in " ".join(shown.stdout.split())


def test_another_distribution_brings_a_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EntryPoint, "load", lambda _: greeter)
    app = program(
        monkeypatch,
        EntryPoint(name="hello", value="somewhere:greeter", group=GROUP),
        EntryPoint(name="other", value="somewhere:else", group="another.group"),
    )
    assert CliRunner().invoke(app, ["hello", "greet"]).stdout == "hello\n"
    assert CliRunner().invoke(app, ["other"]).exit_code != 0
    assert CliRunner().invoke(app, ["lab"]).exit_code == 1


def test_a_verb_that_cannot_be_loaded_takes_no_other_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = program(monkeypatch, EntryPoint(name="broken", value="no_such_module:verb", group=GROUP))
    assert capsys.readouterr().err == (
        "the verb \"broken\" that is installed cannot be loaded: No module named 'no_such_module'\n"
    )
    assert CliRunner().invoke(app, ["--help"]).exit_code == 0
