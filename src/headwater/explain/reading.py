"""How a view's relations are read, in words: by asking, or from replicas, and what these hold."""

from __future__ import annotations

from headwater.deltas.extent import Content
from headwater.model.project import Reading
from headwater.model.relation import Relation
from headwater.project.resolve import ResolvedProject, ResolvedView


def reading_lines(resolved: ResolvedProject, view: ResolvedView) -> list[str]:
    """Return the lines of `explain` about it."""
    copied = resolved.replicated()
    lines: list[str] = []
    for name, reading in view.readings.items():
        match reading:
            case Reading.REPLICA:
                how = f"replica, kept in the warehouse: {_held(resolved.relations[name], copied[name])}"
                abilities = resolved.sources[name.source].abilities
                if abilities.polled_every_seconds is not None:
                    how += f"; its source is polled every {abilities.polled_every_seconds:g} s: exact at every poll"
                elif not abilities.tells_every_transaction:
                    how += "; exact at the states in which its source was seen"
            case Reading.PROBE:
                how = "probes at the source, rebased"
        lines.append(f"  {'' if lines else 'reads from':12} {name}: {how}")
    return lines


def replicas_data(resolved: ResolvedProject, view: ResolvedView) -> dict[str, object]:
    """Return as plain data what replicas of its relations hold."""
    copied = resolved.replicated()
    return {
        str(name): {"columns": list(copied[name].columns), "rows": str(copied[name].rows)}
        for name, reading in view.readings.items()
        if reading is Reading.REPLICA
    }


def _held(relation: Relation, content: Content) -> str:
    """Return what is held of a relation.

    >>> from headwater.deltas.extent import Extent
    >>> from headwater.deltas.selection import Selection
    >>> from headwater.model.relation import Column, RelationName
    >>> columns = tuple(Column(name=name, type="string", native="text") for name in ("id", "city"))
    >>> places = Relation(name=RelationName(source="geo", name="places"), columns=columns)
    >>> oslo = Extent.of([Selection(column="city", compare="equal", values=("Oslo",))])
    >>> _held(places, Content(columns=("city",), rows=oslo)), _held(places, Content(columns=("id", "city")))
    ("1 of 2 columns, rows with city = 'Oslo'", '2 of 2 columns, all rows')
    """
    rows = str(content.rows) if content.rows.is_everything else f"rows with {content.rows}"
    return f"{len(content.columns)} of {len(relation.columns)} columns, {rows}"
