"""`headwater query`."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.render.row_form import FormOption, OutputOption, RowForm, form_of, write_tables
from headwater.cli.render.verbs import draw_query
from headwater.model.moment import parse_moment, parse_position

_TERMINAL_ROWS = 100


def query(
    context: typer.Context,
    sql: Annotated[str, typer.Argument(help="A SELECT over the project's views.")],
    *,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TICK|SOURCE:POSITION|TIME", help="Read the views as they were then.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="SOURCE:POSITION", help="Wait until this write is in the views.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Show at most this many rows (a terminal: 100; --json: all).")
    ] = None,
    form: FormOption = None,
    file: OutputOption = None,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Run a query over the views, all at one tick.

    As a table for a person, or with --format for other programs: `--output FILE` goes by the end of the file's name.
    """
    chosen = form_of(form, file, as_json=as_json)
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        moment = None if at is None else parse_moment(at)
        position = None if after is None else parse_position(after)
        result = headwater.query(sql, at=moment, after=position)
        if chosen is not RowForm.TABLE:
            row_count = write_tables([result.table.slice(0, limit)], chosen, file)
            if file is not None:
                typer.echo(f"{row_count} rows at tick {result.tick} written to {file}", err=True)
            return
    row_limit = limit or (_TERMINAL_ROWS if sys.stdout.isatty() else None)
    output.show(result, partial(draw_query, row_limit=row_limit))
