"""What a view's joins and their relations' rows tell: columns that are needed, selected shares, partners of a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headwater.deltas.extent import Extent
from headwater.deltas.on_arrow import ArrowBag
from headwater.relation import RelationName
from headwater.runtime.understand import Understood
from headwater.views.segments import SegmentedView


def needed_columns(forms: Mapping[bool, SegmentedView], understood: Understood) -> dict[RelationName, tuple[str, ...]]:
    """Return the relations of a view with the columns that some form of it needs."""
    needed: dict[RelationName, set[str]] = {}
    for form in forms.values():
        for name, columns in form.relations.items():
            needed.setdefault(name, set()).update(columns)
    return {
        name: tuple(column for column in understood.relations[name].column_names if column in columns)
        for name, columns in needed.items()
    }


def selected_shares(form: SegmentedView, rows: Mapping[RelationName, ArrowBag]) -> Iterator[float]:
    """Yield for each occurrence the share of its rows that pass its selections."""
    for join in form.joins:
        for occurrence in join.occurrences:
            bag = rows.get(occurrence.relation.name)
            if bag is not None and len(bag):
                yield len(bag.selected(Extent.of(join.selections[occurrence.alias]))) / len(bag)


def partners(form: SegmentedView, rows: Mapping[RelationName, ArrowBag]) -> Iterator[float]:
    """Yield for each way along an equality how many rows there are at its end for each value there."""
    for join in form.joins:
        for edge in join.edges:
            ends = ((edge.left, [own for own, _ in edge.pairs]), (edge.right, [own for _, own in edge.pairs]))
            for alias, columns in ends:
                bag = rows.get(join.occurrence(alias).relation.name)
                if bag is not None and len(bag):
                    values = bag.table.select(columns).drop_null()
                    distinct = values.group_by(columns).aggregate([]).num_rows
                    yield values.num_rows / distinct if distinct else 0.0
