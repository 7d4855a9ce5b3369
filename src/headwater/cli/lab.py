"""`headwater lab`: the published algorithms in a small world. Its verbs, each in a file of its own."""

from __future__ import annotations

import typer

from headwater.cli.lab_compare import compare
from headwater.cli.lab_papers import papers
from headwater.cli.lab_replay import replay
from headwater.cli.lab_scenarios import scenarios

LAB_VERBS = (scenarios, replay, compare, papers)

lab = typer.Typer(
    name="lab",
    help="See what the published algorithms guarantee and cost, in a small world without databases and without Spark.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
for verb in LAB_VERBS:
    lab.command()(verb)
