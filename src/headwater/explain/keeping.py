"""How a view is kept, and when, in words: what the project says of it, and what can be known without asking."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.engine.state.view_lookup import shown_relations
from headwater.model.keeping import Maintenance
from headwater.model.project import Reading
from headwater.model.relation import RelationName
from headwater.project.resolve import ResolvedProject, ResolvedView


def keeping_lines(resolved: ResolvedProject, view: ResolvedView) -> list[str]:
    """Return the lines of `explain` about it."""
    lines = [f"  refresh      {view.refresh}"]
    if view.maintenance is not None:
        lines.insert(0, f"  maintenance  {view.maintenance.value}")
    if view.maintenance is Maintenance.RUNTIME:
        texts = [text for name in view.readings for text in known_without_asking(resolved, view, name)]
        lines += [
            f"  {'knows' if index == 0 else '':12} {text}"
            for index, text in enumerate(texts or ["nothing without asking: no key or reference leads to it"])
        ]
    return lines


def keeping_data(resolved: ResolvedProject, view: ResolvedView) -> dict[str, object]:
    """Return the same as plain data."""
    texts = {str(name): list(known_without_asking(resolved, view, name)) for name in view.readings}
    return {
        "refresh": str(view.refresh),
        "maintenance": None if view.maintenance is None else view.maintenance.value,
        "known": texts if view.maintenance is Maintenance.RUNTIME else {},
    }


def known_without_asking(resolved: ResolvedProject, view: ResolvedView, name: RelationName) -> Iterator[str]:
    """Yield what may be known of the old rows of a relation that would otherwise be asked for."""
    if view.readings[name] is not Reading.PROBE:
        return
    relation, columns = resolved.relations[name], view.view.relations
    key = ", ".join(relation.key)
    if relation.key and set(relation.key) <= set(columns[name]):
        yield f"{name} by {key}: a row that changes in the batch"
    for held in shown_relations(view.view):
        if held.relation.name == name:
            where = "the view" if held.segment is None else f"auxiliary table {held.segment.name}"
            yield f"{name} by {key}: a row that {where} shows"
    for reference in relation.foreign_keys:
        if set(reference.parent_columns) <= set(columns.get(reference.parent, ())):
            by = ", ".join(reference.columns)
            yield f"{name} by {by}: the rows of a key that comes or goes in {reference.parent}"
