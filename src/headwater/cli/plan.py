"""`headwater plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import REFUSED
from headwater.cli.render.verbs import draw_owner_sql, draw_plan
from headwater.errors import ErrorList


def plan(
    context: typer.Context,
    *,
    rebuild: Annotated[
        list[str] | None,
        typer.Option("--rebuild", metavar="VIEW", help="Plan as for `run --rebuild`; may be repeated."),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(
            "--sql",
            metavar="SOURCE",
            help="Print only what the owner of a source's tables has to run first, for `psql -f`.",
        ),
    ] = None,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what `run` would do, and change nothing."""
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        if sql is not None:
            needed = headwater.owner_sql(sql)
            output.show(needed, draw_owner_sql)
            if needed.refusals and as_json:
                raise typer.Exit(REFUSED)
            errors = ErrorList()
            errors.add(*needed.refusals)
            errors.raise_all()
            return
        result = headwater.plan(rebuild=tuple(rebuild or ()))
    output.show(result, draw_plan)
