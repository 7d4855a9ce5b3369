"""`headwater check`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.facade import open_project
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import BROKE, outcome
from headwater.cli.progress import progress
from headwater.cli.render import draw_check


def check(
    context: typer.Context,
    view: Annotated[str | None, typer.Argument(help="The view's name.", show_default="all views")] = None,
    *,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Recompute views from the sources and compare.

    The exit code is 2 if a promise was broken.
    """
    with (
        outcome(as_json=as_json, debug=debug) as output,
        progress(as_json=as_json, debug=debug) as listener,
        open_project(context, project, listener) as headwater,
    ):
        result = headwater.check(view)
    output.show(result, draw_check)
    if not result.kept:
        raise typer.Exit(BROKE)
