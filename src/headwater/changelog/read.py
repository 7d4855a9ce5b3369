"""Reading the change log's data files: only the row groups of the asked ticks, only the leaves of the asked columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.changelog.layout import RECORDS, shapes, stamped_schema, unpack
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, RelationName
from headwater.storage.data_file import place
from headwater.storage.storage_errors import stored


def read_rows(
    files: Sequence[str], log: pa.Schema, relation: RelationName, columns: pa.Schema, *, after: Tick, upto: Tick
) -> pa.Table:
    """Return a relation's signed rows with after < tick <= upto, in tick order."""
    parts = [stamped_schema(columns).empty_table()]
    for file in files:
        with stored(file), _opened(file) as parquet:
            for shape in shapes(log, relation):
                if shape in parquet.schema_arrow.names:
                    parts += _shape_rows(parquet, shape, columns, str(relation), after=after, upto=upto)
    return pa.concat_tables(parts).sort_by(TICK).combine_chunks()


def read_records(files: Sequence[str], after: Tick, upto: Tick) -> Iterator[pa.Table]:
    """Yield the transactions' own rows with after < tick <= upto, a table for each data file, in the files' order."""
    for file in files:
        with stored(file), _opened(file) as parquet:
            parts = [RECORDS.empty_table()]
            held = set(parquet.schema_arrow.names)
            if "_position" in held:
                for group in _groups(parquet, after, upto):
                    rows = parquet.read_row_group(group, columns=RECORDS.names).select(RECORDS.names).cast(RECORDS)
                    parts.append(_between(rows.filter(pc.is_null(rows["_relation"])), after, upto))
        yield pa.concat_tables(parts).sort_by(TICK).combine_chunks()


def _shape_rows(
    parquet: pq.ParquetFile, shape: str, columns: pa.Schema, relation: str, *, after: Tick, upto: Tick
) -> Iterator[pa.Table]:
    held = [field.name for field in parquet.schema_arrow.field(shape).type]
    # one leaf at least: it tells whether the struct is there, which is what says that the row has this shape
    leaves = [name for name in columns.names if name in held] or held[:1]
    for group in _groups(parquet, after, upto):
        rows = parquet.read_row_group(
            group, columns=[TICK, COUNT, "_relation", *(f"{shape}.{name}" for name in leaves)]
        )
        mask = pc.and_(pc.equal(rows["_relation"], relation), pc.is_valid(rows[shape]))
        yield unpack(_between(rows.filter(mask), after, upto), shape, columns)


def _opened(file: str) -> pq.ParquetFile:
    system, path = place(file)
    return pq.ParquetFile(path, filesystem=system)


def _groups(parquet: pq.ParquetFile, after: Tick, upto: Tick) -> Iterator[int]:
    assert parquet.schema_arrow.names[0] == TICK, "the tick is the first column of every data file"
    for group in range(parquet.num_row_groups):
        ticks = parquet.metadata.row_group(group).column(0).statistics
        if ticks is None or not ticks.has_min_max or (ticks.min <= upto and ticks.max > after):
            yield group


def _between(rows: pa.Table, after: Tick, upto: Tick) -> pa.Table:
    return rows.filter(pc.and_(pc.greater(rows[TICK], after), pc.less_equal(rows[TICK], upto)))
