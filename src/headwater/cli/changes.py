"""`headwater changes`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Annotated, assert_never

import pyarrow as pa
import pyarrow.csv as pa_csv
import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.render.json_text import to_json
from headwater.cli.render.verbs import draw_changes
from headwater.model.moment import parse_moment
from headwater.model.position import Tick
from headwater.model.relation import TICK

if TYPE_CHECKING:
    from headwater.api.session import Headwater, When

_FOLLOW_SECONDS = 0.5


class StreamForm(Enum):
    """How changes are printed."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"
    ARROW = "arrow"


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
    form: Annotated[
        StreamForm | None, typer.Option("--format", help="Arrow is written as an IPC stream, for a pipe.")
    ] = None,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show what came to a view and what went, tick by tick: the exact change stream.

    `_count` above 0 says how often a row came at `_tick`, below 0 how often it went.
    """
    if follow and upto is not None:
        raise typer.BadParameter("--to ends what --follow goes on with: leave one of them out")
    chosen = form or (StreamForm.JSONL if follow else StreamForm.TABLE)
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        found = headwater.changes(view, parse_moment(after), None if upto is None else parse_moment(upto))
        parts = _followed(headwater, view, found, parse_moment(after)) if follow else iter([found])
        if chosen is not StreamForm.TABLE:
            _write(parts, chosen)
            return
    output.show(found, partial(draw_changes, view))


def _followed(headwater: Headwater, view: str, first: pa.Table, after: When) -> Iterator[pa.Table]:
    """Yield what changed so far, and then what every commit changes."""
    yield (found := first)
    while True:
        if found.num_rows:
            after = Tick(found[TICK][-1].as_py())
        time.sleep(_FOLLOW_SECONDS)  # the maintainer is another process: only its commits tell how far it has come
        found = headwater.changes(view, after)
        if found.num_rows:
            yield found


def _write(parts: Iterable[pa.Table], form: StreamForm) -> None:
    out, schema = sys.stdout.buffer, None
    writer: pa.ipc.RecordBatchStreamWriter | None = None
    try:
        for part in parts:
            match form:
                case StreamForm.ARROW:
                    writer = writer or pa.ipc.new_stream(out, part.schema)
                    writer.write_table(part)
                case StreamForm.CSV:
                    pa_csv.write_csv(part, out, pa_csv.WriteOptions(include_header=schema is None))
                case StreamForm.JSONL | StreamForm.TABLE:
                    for row in part.to_pylist():
                        out.write(json.dumps(to_json(row), ensure_ascii=False, allow_nan=False).encode() + b"\n")
                case _:
                    assert_never(form)
            schema = part.schema
            out.flush()
    except KeyboardInterrupt:
        pass
    finally:
        if writer is not None:
            writer.close()
