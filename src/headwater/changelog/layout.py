"""How transactions lie in the change log's one table.

One table for all relations, because one append is then one atomic step. A row is either a transaction's own record
(`_relation` is NULL) or one signed row of a relation, held in that relation's struct column; other structs are NULL:

    _tick  _source  _relation   _count  _identity  _position  …   shop.sales      shop.items
    7      shop     NULL        NULL    913        0/16B37F0  …   NULL            NULL
    7      shop     shop.sales  +1      NULL       NULL       …   {3, 'pen', 2}   NULL

`_source` names the log that a transaction is of: the source, and the log's own name after a dot where it has several.
A relation that gains columns gets a wider struct. One whose column changes its type gets a second struct column,
`shop.sales#2`; the older one keeps the older rows, and readers cast them to the newest type.
A data file holds only the structs it has rows of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from headwater.model.position import LSN, Notation, Position, Tick, split_log_name
from headwater.model.relation import COUNT, DEFAULT_SCHEMA, TICK, RelationName
from headwater.model.transaction import ORDINAL, Transaction
from headwater.storage.data_file import ROWS_PER_GROUP

RECORDS = pa.schema(
    [
        (TICK, pa.int64()),
        ("_source", pa.string()),
        ("_relation", pa.string()),
        (COUNT, pa.int64()),
        ("_identity", pa.int64()),
        ("_position", pa.int64()),
        ("_history", pa.string()),
        ("_committed_at", pa.timestamp("us", tz="UTC")),
        ("_accepted_at", pa.timestamp("us", tz="UTC")),
    ]
)


def shapes(log: pa.Schema, relation: RelationName) -> tuple[str, ...]:
    """Return the struct columns that hold a relation's rows, oldest first. None if the log does not know it.

    >>> shapes(pa.schema([("shop.sales", pa.struct([])), ("shop.sales#2", pa.struct([]))]),
    ...        RelationName(source="shop", name="sales"))
    ('shop.sales', 'shop.sales#2')
    """
    found = [str(relation)] if str(relation) in log.names else []
    while found and (following := f"{relation}#{len(found) + 1}") in log.names:
        found.append(following)
    return tuple(found)


def relations(log: pa.Schema) -> tuple[RelationName, ...]:
    """Return the relations that the log has a place for.

    >>> [str(name) for name in relations(pa.schema([*RECORDS, ("crm.old.people", pa.struct([]))]))]
    ['crm.old.people']
    """
    found = []
    for column in log.names:
        if column not in RECORDS.names and "#" not in column:
            source, *schema, name = column.split(".", 2)
            found.append(RelationName(source=source, schema=schema[0] if schema else DEFAULT_SCHEMA, name=name))
    return tuple(found)


def row_schema(log: pa.Schema, relation: RelationName) -> pa.Schema:
    """Return the columns of a relation as the newest of its shapes has them."""
    columns = shapes(log, relation)
    assert columns, f"a relation is declared to the change log before it is read: {relation}"
    return pa.schema(list(log.field(columns[-1]).type))


def place_for(log: pa.Schema, relation: RelationName, columns: pa.Schema) -> tuple[str, bool]:
    """Return the struct column that can hold rows with these columns, and whether the log has to be widened for it."""
    known = shapes(log, relation)
    if not known:
        return str(relation), True
    fields = {field.name: field.type for field in log.field(known[-1]).type}
    if any(field.name in fields and fields[field.name] != field.type for field in columns):
        return f"{relation}#{len(known) + 1}", True
    return known[-1], any(field.name not in fields for field in columns)


def records(transactions: Sequence[tuple[Tick, Transaction]], accepted_at: datetime) -> pa.Table:
    """Return the transactions' own rows."""
    nothing = [None] * len(transactions)
    values = [
        [tick for tick, _ in transactions],
        [one.position.log_name for _, one in transactions],
        nothing,
        nothing,
        [one.identity for _, one in transactions],
        [one.position.offset for _, one in transactions],
        [one.position.history for _, one in transactions],
        [one.committed_at for _, one in transactions],
        [accepted_at] * len(transactions),
    ]
    return pa.table([pa.array(value, field.type) for value, field in zip(values, RECORDS, strict=True)], schema=RECORDS)


def read_records(rows: pa.Table, notations: Mapping[str, Notation]) -> list[tuple[Tick, Transaction]]:
    """Return the transactions that records tell of. Each log has a notation for its positions."""
    return [
        (
            Tick(row[TICK]),
            Transaction(
                position=Position(
                    source=split_log_name(row["_source"])[0],
                    log=split_log_name(row["_source"])[1],
                    history=row["_history"],
                    offset=row["_position"],
                    notation=notations.get(row["_source"], LSN),
                ),
                identity=row["_identity"],
                committed_at=row["_committed_at"],
            ),
        )
        for row in rows.to_pylist()
    ]


def stamped_parts(rows: pa.Table, ticks: Sequence[Tick | None]) -> Iterator[pa.Table]:
    """Yield rows with their transactions' ticks instead of ordinals, without those of transactions that have none."""
    numbers = pa.array(ticks, pa.int64())
    for batch in rows.to_batches(max_chunksize=ROWS_PER_GROUP):
        part = pa.Table.from_batches([batch])
        taken = pc.take(numbers, part[ORDINAL])
        stamped = part.drop_columns([ORDINAL]).append_column(TICK, taken)
        kept = stamped if taken.null_count == 0 else stamped.filter(pc.is_valid(taken))
        if kept.num_rows:
            yield kept


def pack(relation: RelationName, column: str, rows: pa.Table) -> pa.Table:
    """Return stamped rows of one relation as rows of the log."""
    rows = rows.combine_chunks()
    fields = [field for field in rows.schema if field.name not in (TICK, COUNT)]
    arrays = [_array(rows[field.name]) for field in fields]
    struct = pa.StructArray.from_arrays(arrays, fields=fields)
    constant = {"_source": relation.source, "_relation": str(relation)}
    return pa.table(
        {
            TICK: rows[TICK],
            **{name: pa.repeat(pa.scalar(value, pa.string()), rows.num_rows) for name, value in constant.items()},
            COUNT: rows[COUNT],
            column: struct,
        }
    )


def unpack(rows: pa.Table, column: str, wanted: pa.Schema) -> pa.Table:
    """Return one relation's rows of the log as rows with the wanted columns, `_tick` and `_count`."""
    rows = rows.combine_chunks()
    struct = _array(rows[column])
    held = {field.name for field in struct.type}
    arrays = [
        pc.struct_field(struct, [field.name]).cast(field.type)
        if field.name in held
        else pa.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    return pa.table([*arrays, rows[TICK], rows[COUNT]], schema=stamped_schema(wanted))


def stamped_schema(columns: Iterable[pa.Field]) -> pa.Schema:
    """Return the columns followed by `_tick` and `_count`."""
    return pa.schema([*columns, pa.field(TICK, pa.int64()), pa.field(COUNT, pa.int64())])


def _array(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined
