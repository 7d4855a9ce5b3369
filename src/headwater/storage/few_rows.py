"""Read the rows of data files that hold some values, in this process: for so few that a Spark job would take longer.

Row groups are skipped by their bounds. How many rows are left to look at is known before any of them is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from headwater.storage.data_file import place
from headwater.storage.sought_values import Bounds, SoughtValues, noted_bounds
from headwater.storage.storage_errors import stored

ROWS_PER_PART = 65_536
"""The rows that are decoded at a time: a small buffer, whatever is read."""
_READ_AHEAD = {"batch_size": ROWS_PER_PART, "batch_readahead": 4, "fragment_readahead": 2}


def read_few(files: Sequence[str], schema: pa.Schema, keys: pa.Table | None, few: int) -> pa.Table | None:
    """Return the rows whose columns have values of the keys, all rows without. None if they are not found among few.

    NULL is a value like any other. Rows are tested column by column: a caller that wants certain combinations of values
    filters the result.
    """
    if not files:
        return schema.empty_table()
    with stored(*files):
        system, _ = place(files[0])
        whole = ds.dataset([place(file)[1] for file in files], format="parquet", filesystem=system)
        fragments = list(whole.get_fragments()) if keys is None else _narrowed(whole, SoughtValues.of_keys(keys))
        if sum(group.num_rows for fragment in fragments for group in fragment.row_groups) > few:
            return None
        left = ds.FileSystemDataset(fragments, whole.schema, whole.format, system)
        test = None if keys is None else _test(keys)
        return left.to_table(columns=schema.names, filter=test, **_READ_AHEAD).cast(schema)


def read_in_parts(files: Sequence[str], schema: pa.Schema, rows: int = ROWS_PER_PART) -> Iterator[pa.Table]:
    """Yield all rows of data files, in small parts."""
    for file in files:
        system, path = place(file)
        with stored(file), pq.ParquetFile(path, filesystem=system) as opened:
            for batch in opened.iter_batches(rows, columns=schema.names):
                yield pa.Table.from_batches([batch]).select(schema.names).cast(schema)


def _narrowed(whole: ds.FileSystemDataset, sought: SoughtValues) -> list[ds.ParquetFileFragment]:
    """Return the files without the row groups that cannot hold sought values."""
    held = [(fragment, _groups(fragment.metadata, sought)) for fragment in whole.get_fragments()]
    return [fragment.subset(row_group_ids=groups) for fragment, groups in held if groups]


def _groups(footer: pq.FileMetaData, sought: SoughtValues) -> list[int]:
    """Return the row groups that may hold sought values."""
    places = {footer.schema.column(place).path: place for place in range(footer.num_columns)}

    def bounds_of(group: pq.RowGroupMetaData) -> Bounds:
        def bounds(name: str) -> tuple[Any, Any] | None:
            return noted_bounds(group.column(places[name]).statistics)

        return bounds

    return [
        number for number in range(footer.num_row_groups) if sought.may_be_within(bounds_of(footer.row_group(number)))
    ]


def _test(keys: pa.Table) -> ds.Expression:
    """Return the test that every column has a value that it has in some key. Arrays, which Arrow cannot seek, pass."""
    sought = [field.name for field in keys.schema if not pa.types.is_nested(field.type)]
    return reduce(and_, (ds.field(name).isin(keys[name].unique()) for name in sought), ds.scalar(value=True))
