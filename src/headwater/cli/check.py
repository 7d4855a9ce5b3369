"""`headwater check`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import BROKE
from headwater.cli.render.verbs import draw_check
from headwater.errors import HeadwaterError
from headwater.judge.sample import STATES


def check(
    context: typer.Context,
    view: Annotated[str | None, typer.Argument(help="The view's name.", show_default="all views")] = None,
    *,
    ticks: Annotated[
        str, typer.Option("--ticks", metavar="N|all", help="How many states of each view to recompute.")
    ] = str(STATES),
    steps: Annotated[
        bool, typer.Option("--steps", help="Also compute each state by the view's steps, and compare with its SQL.")
    ] = False,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Recompute views from the sources and compare, while they are maintained.

    The states compared are spread over what can be read, the newest among them. If one is wrong, the tick where the
    mistake came in is named, with what differs there. The exit code is 2 if a promise was broken.
    """
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        result = headwater.check(view, ticks=_count(ticks), steps=steps)
    output.show(result, draw_check)
    if not result.kept:
        raise typer.Exit(BROKE)


def _count(ticks: str) -> int | None:
    """Return how many states to compare. None means all."""
    if ticks == "all":
        return None
    if not ticks.isdecimal() or int(ticks) == 0:
        raise HeadwaterError(
            f'"{ticks}" is not a number of ticks', code="HW-128", hint="write a number from 1 on, or `--ticks all`"
        )
    return int(ticks)
