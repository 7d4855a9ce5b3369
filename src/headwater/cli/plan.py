"""`headwater plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.facade import open_project
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import outcome
from headwater.cli.progress import progress
from headwater.cli.render import draw_plan


def plan(
    context: typer.Context,
    *,
    rebuild: Annotated[
        list[str] | None,
        typer.Option("--rebuild", metavar="VIEW", help="As `run --rebuild` would: this view anew; may be repeated."),
    ] = None,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what `run` would do, and change nothing."""
    with (
        outcome(as_json=as_json, debug=debug) as output,
        progress(as_json=as_json, debug=debug) as listener,
        open_project(context, project, listener) as headwater,
    ):
        result = headwater.plan(rebuild=tuple(rebuild or ()))
    output.show(result, draw_plan)
