"""From texts as MariaDB prints them to typed Arrow columns: what a read gives, and the log as well (`decoding`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import SourceRefused
from headwater.model.relation import Column, ColumnUse, Relation, RelationName
from headwater.sources.mariadb.types import held

_FIRST_DAY = -719_162
_DAY_MICROSECONDS = 86_400_000_000
_SHOWN_CHARACTERS = 80


def unfit_value(relation: RelationName, column: Column, value: str) -> SourceRefused:
    """Return the error of a value that we cannot hold."""
    shown = value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "…"
    return SourceRefused(
        f'relation "{relation}" holds a value that cannot be kept exactly',
        code="HW-330",
        detail=f'column "{column.name}" ({column.native}, kept as {column.type}) is {shown!r}',
        hint="correct the value at the source (zero dates and dates that no calendar has cannot be held);"
        f" if the log holds it: `headwater teardown --source {relation.source}`, then `headwater run`, reads"
        " this source again, and the other views go on",
    )


def printed_table(relation: Relation, columns: Sequence[str], rows: Iterable[Sequence[bytes | None]]) -> pa.Table:
    """Return the table whose rows a server has printed."""
    fields = [relation.column(name) for name in columns]
    texts = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [_column(relation.name, one, pa.array(text, pa.binary())) for one, text in zip(fields, texts, strict=True)]
    return pa.Table.from_arrays(arrays, schema=relation.arrow_schema(tuple(columns)))


def _column(relation: RelationName, column: Column, texts: pa.Array) -> pa.Array:
    try:
        return _typed(column, texts)
    except pa.ArrowInvalid:
        if column.use is ColumnUse.UNREAD:
            return pa.nulls(len(texts), column.arrow_field.type)
        raise unfit_value(relation, column, _first_unfit(column, texts)) from None


def _typed(column: Column, texts: pa.Array) -> pa.Array:
    kind, target = held(column).kind, column.arrow_field.type
    if kind == "binary":
        return texts
    spelled = texts.cast(pa.string())
    match kind:
        case "float":
            return pc.add(spelled.cast(pa.float64()).cast(pa.float32(), safe=False), pa.scalar(0, pa.float32()))
        case "double":
            return pc.add(spelled.cast(pa.float64()), pa.scalar(0, pa.float64()))
        case "date" | "datetime":
            found = spelled.cast(target)
            first = pc.min(found.cast(pa.int32()) if kind == "date" else found.cast(pa.int64())).as_py()
            if first is not None and first < _FIRST_DAY * (1 if kind == "date" else _DAY_MICROSECONDS):
                raise pa.ArrowInvalid("before the year 1")
            return found
        case "timestamp":
            return pc.assume_timezone(spelled.cast(pa.timestamp("us")), "UTC")
        case _:
            return spelled.cast(target)


def _first_unfit(column: Column, texts: pa.Array) -> str:
    for text in texts.to_pylist():
        try:
            _typed(column, pa.array([text], pa.binary()))
        except pa.ArrowInvalid:
            return bytes(text).decode("utf-8", "replace")
    return "unknown"
