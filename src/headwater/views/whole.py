"""Every step as one SELECT over whole inputs: how a segment is computed when it is born.

The law of a step gives changes; this gives the state. Both agree at every tick: the laws' tests say so.
Inputs are plain rows: a row that is there k times stands k times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from headwater.deltas.order import Order
from headwater.relation import Relation, RelationName
from headwater.views.law import recompute_sql
from headwater.views.segments import (
    Aggregates,
    First,
    GroupStep,
    JoinStep,
    RecomputeStep,
    RegroupStep,
    Segment,
    UnionStep,
    Windows,
)
from headwater.views.spark_text import quoted


def whole_sql(segment: Segment, tables: Mapping[RelationName, str]) -> str:
    """Return the query for a segment's rows; `tables` names a table of plain rows per input, columns in their order."""
    columns = segment.relation.column_names
    match segment.step:
        case JoinStep(view=view):
            return recompute_sql(view, tables)
        case GroupStep():
            return _grouped(segment.step, segment.relation, quoted(tables[segment.step.input]))
        case RegroupStep(keys=keys, computed=computed):
            table = quoted(tables[segment.step.input])
            return f"SELECT {_listed(columns)} FROM ({_regrouped(computed, keys, table, columns)}) AS regrouped"
        case UnionStep():
            return _united(segment.step, columns, tables)
        case RecomputeStep(inputs=inputs, sql=sql):
            for name in inputs:
                sql = sql.replace(f"{{{name}}}", quoted(tables[name]))
            return sql
        case _:
            assert_never(segment.step)


def _grouped(step: GroupStep, group: Relation, table: str) -> str:
    values = {name: quoted(name) for name in step.keys} | {step.rows: "COUNT(*)"}
    for total in step.totals:
        kind = group.column(total.total).type
        values[total.total] = f"COALESCE(CAST(SUM({quoted(total.column)}) AS {kind}), CAST(0 AS {kind}))"
        values[total.known] = f"COUNT({quoted(total.column)})"
    outputs = ", ".join(f"{values[name]} AS {quoted(name)}" for name in group.column_names)
    by = f" GROUP BY {_listed(step.keys)}" if step.keys else ""
    return f"SELECT {outputs} FROM {table}{by}"


def _regrouped(
    computed: Aggregates | Windows | First, keys: tuple[str, ...], table: str, columns: Sequence[str]
) -> str:
    match computed:
        case Aggregates():
            return aggregates_sql(computed, keys, table)
        case Windows():
            return windows_sql(computed, keys, table)
        case First():
            return first_sql(computed, keys, table, columns)
        case _:
            assert_never(computed)


def aggregates_sql(computed: Aggregates, keys: Sequence[str], table: str) -> str:
    """Return the query for keys and aggregates of a table's rows."""
    outputs = ", ".join([*map(quoted, keys), *(f"{text} AS {quoted(name)}" for name, text in computed.outputs)])
    by = f" GROUP BY {_listed(keys)}" if keys else ""
    return f"SELECT {outputs} FROM {table}{by}"


def windows_sql(computed: Windows, keys: Sequence[str], table: str, also: Sequence[str] = ()) -> str:
    """Return the query for window functions over a table's rows, partitioned by keys, and some columns as they are."""
    partition = _listed(keys) or "1"
    texts = [(text.replace("{partition}", partition), name) for name, text in computed.outputs]
    outputs = ", ".join([*(f"{text} AS {quoted(name)}" for text, name in texts), *map(quoted, also)])
    return f"SELECT {outputs} FROM {table}"


def first_sql(computed: First, keys: Sequence[str], table: str, columns: Sequence[str]) -> str:
    """Return the query for the first rows of every partition of a table, by keys."""
    partition = f"PARTITION BY {_listed(keys)} " if keys else ""
    place = f"ROW_NUMBER() OVER ({partition}ORDER BY {order_text(computed.order)}) AS _place"
    placed = f"(SELECT {_listed(columns)}, {place} FROM {table}) AS placed"
    return f"SELECT {_listed(columns)} FROM {placed} WHERE _place > {computed.offset} AND _place <= {computed.last}"


def order_text(order: Order) -> str:
    """Return an order as Spark's ORDER BY takes it.

    >>> from headwater.deltas.order import By
    >>> order_text((By("a", is_descending=True, are_nulls_first=False), By("b")))
    '`a` DESC NULLS LAST, `b` ASC NULLS FIRST'
    """
    return ", ".join(
        f"{quoted(by.column)} {'DESC' if by.is_descending else 'ASC'} NULLS {'FIRST' if by.are_nulls_first else 'LAST'}"
        for by in order
    )


def _united(step: UnionStep, columns: Sequence[str], tables: Mapping[RelationName, str]) -> str:
    """Return the query for what is added, then what is taken away: all copies count."""
    added = [f"SELECT * FROM {quoted(tables[signed.input])}" for signed in step.inputs if signed.sign > 0]
    taken = [f"SELECT * FROM {quoted(tables[signed.input])}" for signed in step.inputs if signed.sign < 0]
    text = " UNION ALL ".join(added)
    if taken:
        text = f"({text}) EXCEPT ALL ({' UNION ALL '.join(taken)})"
    return f"SELECT * FROM ({text}) AS united({_listed(columns)})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)
