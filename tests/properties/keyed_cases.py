"""Random views over relations whose rows have keys, so that lineage can be kept of all their joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from in_duckdb import World, relation
from random_views import RELATIONS

from headwater.model.keeping import LineageKind, LineageWish
from headwater.model.relation import RelationName
from headwater.views.steps.keep_lineage import joins_with_lineage, keep_lineage
from headwater.views.steps.segments import SegmentedView

Rows = Mapping[RelationName, Sequence[tuple[Any, ...]]]

KEYED = {name: (*columns, "no") for name, columns in RELATIONS.items()}


def keyed_world() -> World:
    described = []
    for text, columns in KEYED.items():
        source, name = text.split(".")
        described.append(
            relation(source, name, key=("no",), **{column: "int!" if column == "no" else "int" for column in columns})
        )
    return World(described)


def keyed_rows(rows: Rows) -> dict[RelationName, list[tuple[Any, ...]]]:
    """Return rows with a key at the end of each."""
    return {name: [(*row, number) for number, row in enumerate(found)] for name, found in rows.items()}


def keeping(view: SegmentedView, *kinds: LineageKind) -> SegmentedView:
    """Return a view that keeps lineage of these kinds, of every join that can."""
    joins = dict.fromkeys(segment.name for segment in joins_with_lineage(view).values())
    return keep_lineage(view, [LineageWish(kind=kind, of=name.name) for name in joins for kind in kinds])
