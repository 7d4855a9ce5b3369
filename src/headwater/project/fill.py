"""How a replica is filled: read as a whole, or widened by reading just what it lacks.

Let H be the rows and columns that it holds, N those that are needed, both at one tick; `without` and `of` are extents.

    rows lack       N = N's columns of (H within N's rows)  ∪  read (of N's rows, without H's)
    columns lack    N = (H within N's rows)  ⋈ key  read (the key and the columns that lack, of N's rows)
    both, or there is no key to join by: all of N is read

What is read is brought to the tick as anything that is read (`recompute.rows_at`), by the log's rows of the same
remainder: a row that an update moves from H's rows to the others is taken out of one and comes into the other. What is
held and no longer needed is dropped then; as long as nothing lacks, a replica may hold more than is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from headwater.deltas.extent import Content, Extent, Remainder
from headwater.model.relation import Relation, arrow_type


class Way(Enum):
    """How a replica is filled."""

    WHOLE = "read whole"
    MORE_ROWS = "widened by rows"
    MORE_COLUMNS = "widened by columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """What a replica is to hold, how it comes to that, and what has to be read of the relation: columns and rows."""

    content: Content
    way: Way
    columns: tuple[str, ...]
    rows: Remainder


def fill_whole(content: Content) -> Fill:
    """Return how a replica that does not exist yet is filled."""
    return Fill(content=content, way=Way.WHOLE, columns=content.columns, rows=Remainder(of=content.rows))


def fill(relation: Relation, needed: Content, held: Content | None) -> Fill | None:
    """Return what has to be read into a replica, or None if it holds what is needed."""
    if held is None:
        return fill_whole(needed)
    if held.covers(needed):
        return None
    lacking = [name for name in needed.columns if name not in held.columns]
    if not lacking:
        rows = Remainder(of=needed.rows, without=held.rows)
        columns = relation.in_order({*needed.columns, *rows.columns})
        return Fill(content=needed, way=Way.MORE_ROWS, columns=columns, rows=rows)
    if held.rows.covers(needed.rows) and relation.key and set(relation.key) <= set(held.columns):
        columns = relation.in_order({*relation.key, *lacking, *needed.rows.columns})
        return Fill(content=needed, way=Way.MORE_COLUMNS, columns=columns, rows=Remainder(of=needed.rows))
    return fill_whole(needed)


def is_meant(rows: Extent, relation: Relation) -> bool:
    """Tell whether a relation still has the columns that an extent compares, of types that hold what it compares with.

    >>> from headwater.deltas.selection import Selection
    >>> from headwater.model.relation import Column, RelationName
    >>> few = Extent.of([Selection(column="n", compare="less", values=(3,))])
    >>> [is_meant(few, Relation(name=RelationName(source="s", name="t"),
    ...                         columns=(Column(name=name, type=kind, native=kind),)))
    ...  for name, kind in (("n", "int"), ("n", "string"), ("m", "int"))]
    [True, False, False]
    """
    types = {column.name: arrow_type(column.type) for column in relation.columns}
    try:
        for one in (selection for selections in rows.any_of for selection in selections):
            if one.column not in types or pa.array(one.values, types[one.column]).to_pylist() != list(one.values):
                return False
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return True
