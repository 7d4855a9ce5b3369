"""`headwater run`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.facade import open_project
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import outcome
from headwater.cli.progress import progress
from headwater.cli.render import draw_run


def run(
    context: typer.Context,
    *,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Stop once everything the sources had committed is in the views.")
    ] = False,
    ticks: Annotated[int | None, typer.Option("--ticks", min=1, help="Stop after this many ticks.")] = None,
    rebuild: Annotated[
        list[str] | None, typer.Option("--rebuild", metavar="VIEW", help="Compute this view anew; may be repeated.")
    ] = None,
    fail_fast: Annotated[
        bool,
        typer.Option(
            "--fail-fast",
            help="End with an error as soon as one source is lost for good; without it the views of the other sources "
            "go on, and only the loss of all ends it.",
        ),
    ] = False,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Do what `plan` shows, then keep the views up to date."""
    with (
        outcome(as_json=as_json, debug=debug) as output,
        progress(as_json=as_json, debug=debug) as listener,
        open_project(context, project, listener) as headwater,
    ):
        result = headwater.run(until_idle=until_idle, ticks=ticks, rebuild=tuple(rebuild or ()), fail_fast=fail_fast)
    output.show(result, draw_run)
