"""`headwater publish`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.render.page import Line, Page
from headwater.publish.plain_table import PublishResult


def publish(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The view's name.")],
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="PATH", help="The folder of the table; without it, where the project publishes it."
        ),
    ] = None,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Bring a plain Delta table to a view's newest state: what DuckDB, Polars, Trino and pandas read.

    It is made if it is not there; afterwards only what changed is written. `publish = true` in the project lets `run`
    do this by itself. It needs neither Spark nor a source.
    """
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        result = headwater.publish(view, to)
    output.show(result, _drawn)


def _drawn(result: PublishResult) -> Page:
    moved = (
        f"all {result.rows_added} rows written"
        if result.is_whole
        else f"{result.rows_added} rows added, {result.rows_removed} removed"
    )
    return [Line(text=f'view "{result.view}" is in {result.path} at tick {result.tick}: {moved}')]
