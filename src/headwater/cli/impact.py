"""`headwater impact`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, OldRowOption, ProjectOption
from headwater.cli.render.trace import draw_impact, draw_row_impact
from headwater.model.moment import parse_moment, parse_position


def impact(
    context: typer.Context,
    what: Annotated[
        str, typer.Argument(metavar="SOURCE:POSITION|SOURCE.TABLE", help="Where a commit is; or a table, with --where.")
    ],
    *,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="ROW", help='Which rows of the table, by some of their columns: "no = 7".'),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TICK|SOURCE:POSITION|TIME", help="With --where: the views as they were then."),
    ] = None,
    row: OldRowOption = None,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what one source transaction changed in every view. With --where, what derives from a source row."""
    del row
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        if where is None:
            result = headwater.impact(parse_position(what))
        else:
            derived = headwater.row_impact(what, where, at=None if at is None else parse_moment(at))
    if where is None:
        output.show(result, draw_impact)
    else:
        output.show(derived, draw_row_impact)
