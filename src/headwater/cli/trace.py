"""`headwater trace`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.render.trace import draw_trace
from headwater.model.moment import parse_moment

_ROWS = 20


def trace(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The view's name.")],
    *,
    where: Annotated[
        str | None, typer.Option("--where", metavar="CONDITION", help="Which of its rows: a condition on its columns.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TICK|SOURCE:POSITION|TIME", help="Trace the view as it was then.")
    ] = None,
    whole_rows: Annotated[
        bool, typer.Option("--whole-rows", help="Show all columns of source rows; their sources may have to be asked.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Draw at most this many rows at each node of the tree.")
    ] = _ROWS,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show where rows of a view come from: the source rows that derived them, as they were."""
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        moment = None if at is None else parse_moment(at)
        result = headwater.trace(view, where=where, at=moment, whole_rows=whole_rows)
    output.show(result, partial(draw_trace, row_limit=limit))
