"""Merge small data files into one: the same rows in the same order, row group by row group, never all in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.storage.data_file import DataFile, place, write_parts


def merge_files(root: str, files: Sequence[str], schema: pa.Schema) -> DataFile:
    """Write the rows of some data files, in their order, to a new one, which is not part of the table yet.

    It has those of the schema's columns that any of the files has; rows of a file that lacks one have NULL there.
    """
    system, _ = place(root)
    opened = [pq.ParquetFile(place(file)[1], filesystem=system) for file in files]
    held = {name for file in opened for name in file.schema_arrow.names}
    target = pa.schema([field for field in schema if field.name in held])
    return write_parts(root, target, _row_groups(opened, target))


def _row_groups(opened: Sequence[pq.ParquetFile], target: pa.Schema) -> Iterator[pa.Table]:
    for file in opened:
        for group in range(file.num_row_groups):
            yield fitted(file.read_row_group(group), target)
        file.close()


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with exactly the columns of a schema. Columns and struct fields that are missing are NULL.

    >>> wide = pa.schema([("s", pa.struct([("x", pa.int64()), ("y", pa.string())])), ("b", pa.bool_())])
    >>> fitted(pa.table({"a": [1], "s": [{"x": 2}]}), wide).to_pylist()
    [{'s': {'x': 2, 'y': None}, 'b': None}]
    """
    rows = rows.combine_chunks()
    columns = [
        _fitted(rows[field.name].combine_chunks(), field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _fitted(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.Array:
    array = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_struct(kind) or array.type == kind:
        return array.cast(kind)
    held = {field.name for field in array.type}
    children = [
        pc.struct_field(array, [field.name]).cast(field.type)
        if field.name in held
        else pa.nulls(len(array), field.type)
        for field in kind
    ]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=pc.is_null(array))
