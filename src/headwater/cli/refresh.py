"""`headwater refresh`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.render.verbs import draw_refresh


def refresh(
    context: typer.Context,
    views: Annotated[list[str], typer.Argument(metavar="VIEW...", help="The views' names.")],
    *,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Bring views up to date now that are refreshed on demand, or at an interval.

    A running maintainer does it, and this waits for it. If none runs, this maintains the views once.
    """
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        result = headwater.refresh(*views)
    output.show(result, draw_refresh)
