"""`headwater impact`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.facade import open_project
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import outcome
from headwater.cli.progress import progress
from headwater.cli.render_trace import draw_impact
from headwater.moment import parse_position


def impact(
    context: typer.Context,
    position: Annotated[str, typer.Argument(metavar="SOURCE:POSITION", help="Where the transaction's commit is.")],
    *,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what one source transaction changed: its own rows, and the rows of every view, before and after."""
    with (
        outcome(as_json=as_json, debug=debug) as output,
        progress(as_json=as_json, debug=debug) as listener,
    ):
        at = parse_position(position)
        with open_project(context, project, listener) as headwater:
            result = headwater.impact(at)
    output.show(result, draw_impact)
