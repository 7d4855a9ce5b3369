"""`headwater advise`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.render.advice import draw_advice


def advise(
    context: typer.Context,
    view: Annotated[str | None, typer.Argument(help="The view's name; all views without one.")] = None,
    *,
    algorithm: Annotated[
        str,
        typer.Option("--algorithm", help="exact, exhaustive, greedy, three-step, combined, naive or none."),
    ] = "exact",
    traces_per_hour: Annotated[
        float | None,
        typer.Option("--traces-per-hour", min=0, help="How often rows are traced; as was counted without it."),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Write the advice into the project file.")] = False,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Say which auxiliary tables are worth keeping, what they cost, and why."""
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        result = headwater.advise(view, algorithm=algorithm, traces_per_hour=traces_per_hour, apply=apply)
    output.show(result, draw_advice)
