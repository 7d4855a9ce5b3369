"""What a source enforces: every row of a relation refers to one that is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.model.relation import Relation, RelationName
from headwater_lab.in_memory.bag import Row
from headwater_lab.ledger import Rows


def broken_reference(catalog: Mapping[RelationName, Relation], rows: Rows) -> str:
    """Return which reference of which relation some rows break, or nothing if they keep all of them."""
    for name, relation in catalog.items():
        for reference in relation.foreign_keys:
            parent = catalog[reference.parent]
            there = set(_values(parent, reference.parent_columns, rows.get(parent.name, {})))
            if not there.issuperset(_values(relation, reference.columns, rows.get(name, {}))):
                return f"{name} refers to what {parent.name} does not hold"
    return ""


def _values(relation: Relation, columns: tuple[str, ...], rows: Iterable[Row]) -> list[Row]:
    places = [relation.column_names.index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in rows]
