"""Rows as other programs read them: JSON, CSV, Arrow or Parquet, on standard output or in a file.

A file is replaced as a whole once all of it is written: a reader sees the old one or the new one.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, BinaryIO, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import typer

from headwater.cli.render.json_text import to_json
from headwater.errors import NotReadable


class RowForm(Enum):
    """How rows are written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"


FormOption: TypeAlias = Annotated[
    RowForm | None,
    typer.Option("--format", help="Without it, what the end of the file's name says, or else a table for a person."),
]
OutputOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write into this file instead, which is replaced once all is written."),
]

_BY_SUFFIX = {
    ".json": RowForm.JSON,
    ".jsonl": RowForm.JSONL,
    ".ndjson": RowForm.JSONL,
    ".csv": RowForm.CSV,
    ".arrow": RowForm.ARROW,
    ".feather": RowForm.ARROW,
    ".parquet": RowForm.PARQUET,
}


def form_of(said: RowForm | None, file: Path | None, *, as_json: bool) -> RowForm:
    """Return the form that is asked for: by its name, or else by the end of the file's name."""
    if said is None and file is not None:
        said = _BY_SUFFIX.get(file.suffix.lower())
        if said is None:
            raise typer.BadParameter(f'"{file.name}" does not say the form: add --format, or write FILE.parquet')
    found = said or RowForm.TABLE
    if found is RowForm.TABLE and file is not None:
        raise typer.BadParameter("--output needs a form that programs read: csv, json, jsonl, arrow or parquet")
    if found is not RowForm.TABLE and as_json:
        raise typer.BadParameter("--json is a form of its own: leave out --format and --output")
    if found is RowForm.PARQUET and file is None and sys.stdout.isatty():
        raise typer.BadParameter("Parquet is not for terminals: add --output FILE")
    return found


def write_tables(parts: Iterable[pa.Table], form: RowForm, file: Path | None = None) -> int:
    """Write tables of one schema, one after the other. Return how many rows those were.

    Arrow is an IPC stream on standard output, and an IPC file (Feather) in a file. Ctrl-C ends what has no end.
    """
    row_count = 0
    with ExitStack() as opened:
        out = sys.stdout.buffer if file is None else opened.enter_context(_replacing(file))
        written = _written(parts, form, out, is_file=file is not None)
        if file is not None:
            return sum(written)
        try:
            for count in written:
                row_count += count
                out.flush()
        except KeyboardInterrupt:
            written.close()
    return row_count


def _written(parts: Iterable[pa.Table], form: RowForm, out: BinaryIO, *, is_file: bool) -> Generator[int]:
    match form:
        case RowForm.ARROW:
            yield from _as_arrow(parts, out, is_file=is_file)
        case RowForm.PARQUET:
            yield from _as_parquet(parts, out)
        case RowForm.CSV:
            for number, part in enumerate(parts):
                pa_csv.write_csv(_flat(part), out, pa_csv.WriteOptions(include_header=number == 0))
                yield part.num_rows
        case RowForm.JSONL | RowForm.TABLE:
            for part in parts:
                out.writelines(f"{line}\n".encode() for line in _lines(part))
                yield part.num_rows
        case RowForm.JSON:
            comma = "["
            for part in parts:
                for line in _lines(part):
                    out.write(f"{comma}\n  {line}".encode())
                    comma = ","
                yield part.num_rows
            out.write(b"[]\n" if comma == "[" else b"\n]\n")
        case _:
            assert_never(form)


def _as_arrow(parts: Iterable[pa.Table], out: BinaryIO, *, is_file: bool) -> Iterator[int]:
    writer: pa.ipc.RecordBatchStreamWriter | None = None
    try:
        for part in parts:
            writer = writer or (pa.ipc.new_file if is_file else pa.ipc.new_stream)(out, part.schema)
            writer.write_table(part)
            yield part.num_rows
    finally:
        if writer is not None:
            writer.close()


def _as_parquet(parts: Iterable[pa.Table], out: BinaryIO) -> Iterator[int]:
    writer: pq.ParquetWriter | None = None
    try:
        for part in parts:
            _require_names(part)
            writer = writer or pq.ParquetWriter(out, part.schema, compression="zstd")
            writer.write_table(part)
            yield part.num_rows
    finally:
        if writer is not None:
            writer.close()


def _lines(part: pa.Table) -> Iterator[str]:
    _require_names(part)
    for batch in part.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            yield json.dumps(to_json(row), ensure_ascii=False, allow_nan=False)


def _require_names(part: pa.Table) -> None:
    """Refuse two columns of one name: readers would see only one of them."""
    twice = [name for name, count in Counter(part.column_names).items() if count > 1]
    if twice:
        raise NotReadable(
            f'two columns are called "{twice[0]}"',
            code="HW-180",
            detail="in JSON and Parquet, one of them would be lost",
            hint=f"give one another name in the SELECT, `AS {twice[0]}_2`, or write CSV or Arrow",
        )


def _flat(part: pa.Table) -> pa.Table:
    """Return a table as CSV has it: nested values as JSON, bytes as hexadecimal digits."""
    for place, field in enumerate(part.schema):
        is_nested = pa.types.is_nested(field.type)
        if is_nested or pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            values = [to_json(value) for value in part.column(place).to_pylist()]
            if is_nested:
                values = [None if one is None else json.dumps(one, ensure_ascii=False) for one in values]
            part = part.set_column(place, field.name, pa.array(values, pa.string()))
        elif pa.types.is_null(field.type):
            part = part.set_column(place, field.name, part.column(place).cast(pa.string()))
    return part


@contextmanager
def _replacing(file: Path) -> Iterator[BinaryIO]:
    """Give a block a new file, and put it in the place of the named one if the block ends well."""
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
