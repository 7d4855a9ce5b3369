"""Rows of a Delta table's data files, in the types that the table has.

A file holds what the table was when it was written: columns that came later are NULL in it, columns that went are left
out, and partition columns are not in it at all: their values stand in the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.errors import SourceRefused
from headwater.model.relation import ColumnUse, Relation
from headwater.sources.delta.commits import TableFile
from headwater.sources.delta.lake import LakeTable
from headwater.sources.net_changes import one_nan

CHANGE_TYPE = "_change_type"
_SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
_BATCH_ROWS = 65_536
_WITH_ZONE = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


def file_rows(table: LakeTable, relation: Relation, file: TableFile, wanted: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the wanted columns of a data file's rows, in small tables."""
    for rows in _parts(table, file, wanted, ()):
        yield _typed(table, relation, file, rows, wanted)


def changed_rows(
    table: LakeTable, relation: Relation, file: TableFile, wanted: Sequence[str]
) -> Iterator[tuple[pa.Table, pa.Array]]:
    """Yield the wanted columns of a change file's rows, each with the signs of its rows."""
    for rows in _parts(table, file, wanted, (CHANGE_TYPE,)):
        said = rows[CHANGE_TYPE].combine_chunks()
        place = pc.index_in(said, value_set=pa.array(list(_SIGNS)))
        if place.null_count:
            raise SourceRefused(
                f'Delta table "{relation.name}" has a change file with changes of an unknown kind',
                code="HW-371",
                detail=f"{file.path}: {', '.join(sorted(set(map(str, said.unique().to_pylist())) - set(_SIGNS)))}",
                hint="report this, with the version of what has written the table",
            )
        signs = pa.array(list(_SIGNS.values()), pa.int64()).take(place)
        yield _typed(table, relation, file, rows, wanted), signs


def _parts(table: LakeTable, file: TableFile, wanted: Sequence[str], also: Sequence[str]) -> Iterator[pa.Table]:
    try:
        with table.files.open_input_file(table.path_of(file.path)) as opened:
            parquet = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
            metadata = parquet.metadata.metadata or {}
            if any(key in metadata for key in _OLD_CALENDAR):
                raise SourceRefused(
                    f'Delta table "{table.relation}" has a file with dates of the old calendar',
                    code="HW-372",
                    detail=f"{file.path} was written with Spark's rebase mode LEGACY",
                    hint="rewrite the table with Spark 3 or newer (INSERT OVERWRITE t SELECT * FROM t)",
                )
            present = set(parquet.schema_arrow.names)
            names = [name for name in (*wanted, *also) if name in present]
            for batch in parquet.iter_batches(_BATCH_ROWS, columns=names):
                yield pa.Table.from_batches([batch])
    except FileNotFoundError as missing:
        if not table.is_there:  # perhaps it is only not mounted now
            raise table.unavailable(missing) from missing
        detail = f'"{file.path}" is gone: VACUUM deletes what no newer version needs'
        raise table.deleted(detail, "deletedFileRetentionDuration") from missing
    except (OSError, pa.ArrowInvalid) as error:
        raise table.unavailable(error) from error


def _typed(table: LakeTable, relation: Relation, file: TableFile, rows: pa.Table, wanted: Sequence[str]) -> pa.Table:
    schema = relation.arrow_schema(tuple(wanted))
    partition = {} if file.partition is None else file.partition
    arrays = []
    for one in schema:
        if one.name in partition:
            arrays.append(pa.repeat(partition_value(table, one, partition), rows.num_rows))
        elif one.name in rows.column_names:
            arrays.append(_held(relation, one, rows[one.name]))
        else:
            arrays.append(pa.nulls(rows.num_rows, one.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _held(relation: Relation, field: pa.Field, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values in a column's type. NULL stands for those of a column that no view reads, if its type changed."""
    try:
        return _as_type(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if relation.column(field.name).use is not ColumnUse.UNREAD:
            raise
        return pa.nulls(len(values), field.type)


def _as_type(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz))
        if (values.type.tz is None) != (kind.tz is None):
            values = values.cast(pa.timestamp("us", kind.tz))
    return one_nan(values if values.type == kind else values.cast(kind))


def partition_value(table: LakeTable, column: pa.Field, partition: Mapping[str, str | None]) -> pa.Scalar:
    """Return the value of a partition column that a file's rows share. An empty text stands for NULL."""
    text = partition[column.name]
    if text is None or text == "":
        return pa.scalar(None, column.type)
    if pa.types.is_boolean(column.type):
        return pa.scalar(text.lower() == "true", column.type)
    try:
        return pa.scalar(_spelled(text, column.type)).cast(column.type)
    except pa.ArrowInvalid as error:
        raise SourceRefused(
            f'Delta table "{table.relation}" has a partition value that cannot be read',
            code="HW-373",
            detail=f'column "{column.name}" ({column.type}): "{text}"',
            hint="report this, with the version of what has written the table",
        ) from error


def _spelled(text: str, kind: pa.DataType) -> str:
    """Return a text as Arrow reads values of a type."""
    if pa.types.is_timestamp(kind) and kind.tz is not None and not _WITH_ZONE.search(text):
        return f"{text}Z"
    return text
