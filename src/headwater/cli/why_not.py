"""`headwater why-not`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, OldRowOption, ProjectOption
from headwater.cli.render.trace import draw_why_not
from headwater.model.moment import parse_moment


def why_not(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The view's name.")],
    *,
    where: Annotated[
        str, typer.Option("--where", metavar="ROW", help="Some of its columns: \"city = 'Oslo' AND sold = 7\".")
    ],
    at: Annotated[
        str | None, typer.Option("--at", metavar="TICK|SOURCE:POSITION|TIME", help="Ask about the view as it was then.")
    ] = None,
    row: OldRowOption = None,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what keeps a row out of a view: the first partner, condition or pending transaction that it lacks."""
    del row
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        result = headwater.why_not(view, where, at=None if at is None else parse_moment(at))
    output.show(result, draw_why_not)
