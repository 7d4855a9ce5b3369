"""The shapes of views that algorithms are compared on: one for each thing in which they differ.

    chain      r1 - r2 - r3, each at a source of its own         what Table 1 of paper 000 is about
    star       d1 - f - d2, joined by the keys of d1 and d2      rounds, rows that the view shows, selections
    cycle      a chain whose ends are compared                   rows that the view does not show
    self-join  r1 - r2 - r2                                      a relation that appears twice
    shared     r1 - r2 - r3, r2 and r3 at one source             several relations of a source in one transaction

Every view holds the keys of all its relations, so that every algorithm can play. What differs besides: a share of the
transactions modifies a row, and where a source has several relations, one transaction may change more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from headwater.model.relation import Column, Relation, RelationName
from headwater_lab.one_join import declare
from headwater_lab.world import WorldSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A shape: its view over a number of relations, and what its transactions do besides inserting and deleting."""

    setting: Callable[[int], WorldSetting]
    modify: float = 0.0
    """Which share of the transactions that do not delete modifies a row."""
    together: float = 0.0
    """How often another relation of the same source is changed, too."""


def _relation(source: int, name: str, columns: tuple[str, ...] = ("k", "a", "b")) -> Relation:
    return Relation(
        name=RelationName(source=f"s{source}", name=name),
        columns=tuple(Column(name=column, type="int", native="int4") for column in columns),
        key=("k",),
        not_null=frozenset("k"),
    )


def _setting(
    occurrences: Mapping[str, Relation], conditions: list[str], shown: Mapping[str, tuple[str, ...]]
) -> WorldSetting:
    outputs = [f"{alias}.{column} AS {alias}_{column}" for alias in occurrences for column in shown.get(alias, ("k",))]
    tables = ", ".join(f"{relation.name} {alias}" for alias, relation in occurrences.items())
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    catalog = {relation.name: relation for relation in occurrences.values()}
    view = declare("view", f"SELECT {', '.join(outputs)} FROM {tables}{where}", catalog)
    return WorldSetting(view=view, catalog=catalog, rows={})


def _chain(count: int) -> WorldSetting:
    relations = {f"r{place}": _relation(place, f"r{place}") for place in range(1, count + 1)}
    return _setting(relations, [f"{left}.b = {right}.a" for left, right in pairwise(relations)], {})


def _star(count: int) -> WorldSetting:
    dimensions = {f"d{place}": _relation(place + 1, f"d{place}") for place in range(1, count)}
    fact = _relation(1, "f", ("k", *(f"to_{alias}" for alias in dimensions)))
    conditions = [f"f.to_{alias} = {alias}.k" for alias in dimensions] + ["d1.b > 1"]
    return _setting({"f": fact, **dimensions}, conditions, {"d2": ("k", "a", "b")})


def _cycle(count: int) -> WorldSetting:
    relations = {f"r{place}": _relation(place, f"r{place}") for place in range(1, count + 1)}
    conditions = [f"{left}.b = {right}.a" for left, right in pairwise(relations)]
    conditions.append(f"r1.a < r{count}.b")
    return _setting(relations, conditions, dict.fromkeys(relations, ("k", "a", "b")))


def _self_join(count: int) -> WorldSetting:
    """Make a chain whose last two places are one relation."""
    relations = {f"x{place}": _relation(place, f"r{place}") for place in range(1, count)}
    relations[f"x{count}"] = relations[f"x{count - 1}"]
    return _setting(relations, [f"{left}.b = {right}.a" for left, right in pairwise(relations)], {})


def _shared(count: int) -> WorldSetting:
    """Make a chain of which all but the first are at one source, joined by keys that nothing refers to."""
    relations = {f"r{place}": _relation(min(place, 2), f"r{place}") for place in range(1, count + 1)}
    conditions = [f"{left}.b = {right}.{'a' if left == 'r1' else 'k'}" for left, right in pairwise(relations)]
    return _setting(relations, conditions, {})


SHAPES: Mapping[str, Shape] = {
    "chain": Shape(setting=_chain),
    "star": Shape(setting=_star, modify=0.3),
    "cycle": Shape(setting=_cycle, modify=0.3),
    "self-join": Shape(setting=_self_join, modify=0.3),
    "shared": Shape(setting=_shared, modify=0.2, together=0.5),
}
"""By name, in the order in which they are shown."""
