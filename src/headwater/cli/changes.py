"""`headwater changes`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.render.row_form import FormOption, OutputOption, RowForm, form_of, write_tables
from headwater.cli.render.verbs import draw_changes
from headwater.model.moment import parse_moment


def changes(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The view's name.")],
    *,
    after: Annotated[str, typer.Option("--from", metavar="TICK|SOURCE:POSITION|TIME", help="What changed after this.")],
    upto: Annotated[
        str | None,
        typer.Option("--to", metavar="TICK|SOURCE:POSITION|TIME", help="And up to this; without it, up to now."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with every commit until Ctrl-C; as JSON lines, CSV or Arrow.")
    ] = False,
    form: FormOption = None,
    file: OutputOption = None,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what came to a view and what went, tick by tick: the exact change stream.

    `_count` above 0 says how often a row came at `_tick`, below 0 how often it went.
    """
    if follow and upto is not None:
        raise typer.BadParameter("--to ends what --follow goes on with: leave one of them out")
    if follow and (file is not None or form in {RowForm.JSON, RowForm.PARQUET}):
        raise typer.BadParameter("--follow has no end: write JSON lines, CSV or Arrow, on standard output")
    chosen = RowForm.JSONL if follow and form is None else form_of(form, file, as_json=as_json and not follow)
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        parts = headwater.view(view).changes(
            parse_moment(after), None if upto is None else parse_moment(upto), follow=follow
        )
        if chosen is not RowForm.TABLE:
            write_tables(parts, chosen, file)
            return
        output.show(next(parts), partial(draw_changes, view))
