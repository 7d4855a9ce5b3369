"""`headwater lab`: the published algorithms in a small world. Its verbs, each in a file of its own."""

from __future__ import annotations

import typer

from headwater.cli.program import add_verb
from headwater_lab.cli.compare import compare
from headwater_lab.cli.papers import papers
from headwater_lab.cli.replay import replay
from headwater_lab.cli.scenarios import scenarios

LAB_VERBS = (scenarios, replay, compare, papers)

_HELP = "See what the published algorithms guarantee and cost, in a small world without databases and without Spark."


def show_help(context: typer.Context) -> None:
    """Show what the lab can do, if nothing of it is asked for."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


lab = typer.Typer(
    name="lab",
    help=_HELP,
    short_help=_HELP,  # the same: Typer would cut it off in the list of verbs
    rich_markup_mode=None,
    invoke_without_command=True,
    callback=show_help,
)
for verb in LAB_VERBS:
    add_verb(lab, verb)
