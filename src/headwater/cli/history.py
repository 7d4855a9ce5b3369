"""`headwater history`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.render.verbs import draw_history, draw_timing


def history(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The view's name.")],
    *,
    last: Annotated[
        int | None, typer.Option("--last", min=1, help="Show only this many of the newest commits.")
    ] = None,
    timing: Annotated[
        bool, typer.Option("--timing", help="Show where the milliseconds of each batch went, and nothing else.")
    ] = False,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List a view's commits, what sources were asked for them, and where their time went."""
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        whole = headwater.history(view)
    newest = whole.commits if last is None else whole.commits[-last:]
    shown = replace(whole, commits=newest)
    if timing:
        output.show(shown.timing(), draw_timing)
    else:
        output.show(shown, draw_history)
