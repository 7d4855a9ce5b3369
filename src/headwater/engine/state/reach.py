"""Read what may derive sought rows: of every occurrence of a join the rows that sought values or neighbours lead to.

An output that is a plain column pins its occurrence: only rows with a sought value there can derive a sought row. From
rows that are read, equal columns (edges) lead on to the other occurrences; what nothing leads to is read whole.

    sought: city = 'Oslo'      stores ◄── pinned by city       sales ◄── led to by store_id       (any more: whole)

Which way a row is found changes cost, never results: the conditions are tested all the same (`derivation_sql`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headwater.deltas.lookup import Restriction
from headwater.deltas.on_arrow import ArrowBag, ArrowRestriction, ArrowResult, empty_table
from headwater.engine.state.sought import Sought
from headwater.model.relation import Relation
from headwater.views.steps.join import JoinView, Occurrence
from headwater.views.steps.lookups import is_sought_by
from headwater.views.steps.output_columns import output_columns

Reader = Callable[[Occurrence, ArrowRestriction | None], ArrowResult]


def read_occurrences(
    join: JoinView, sought: Sought, read: Reader, known: Mapping[str, ArrowResult] | None = None
) -> dict[str, ArrowResult]:
    """Return rows per alias, among them all that can derive a sought row. `known` were read before."""
    found = dict(known or {})
    narrow = set(found)
    pinned = {o.alias: pinned_by(o, join, sought) for o in join.occurrences}
    waiting = [o for o in join.occurrences if o.alias not in found]
    while waiting:
        step = next(_ways(join, waiting, pinned, found, narrow))
        found[step.occurrence.alias] = read(step.occurrence, step.within)
        if step.is_narrow:
            narrow.add(step.occurrence.alias)
        waiting.remove(step.occurrence)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How to read an occurrence next."""

    occurrence: Occurrence
    within: ArrowRestriction | None
    is_narrow: bool


def _ways(
    join: JoinView,
    waiting: list[Occurrence],
    pinned: Mapping[str, ArrowRestriction | None],
    found: Mapping[str, ArrowResult],
    narrow: set[str],
) -> Iterator[_Way]:
    """Yield the ways to go on, best first: along an edge from few rows, by pins, along any edge, whole."""
    for occurrence in waiting:
        for alias in narrow:
            if (within := led_to(occurrence, alias, join, found)) is not None:
                yield _Way(occurrence=occurrence, within=within, is_narrow=True)
    for occurrence in sorted(waiting, key=lambda one: _rank(one.relation, pinned[one.alias])):
        if (within := pinned[occurrence.alias]) is not None:
            yield _Way(occurrence=occurrence, within=within, is_narrow=True)
    for occurrence in waiting:
        for alias in found:
            if (within := led_to(occurrence, alias, join, found)) is not None:
                yield _Way(occurrence=occurrence, within=within, is_narrow=False)
    yield _Way(occurrence=waiting[0], within=None, is_narrow=False)


def pinned_by(occurrence: Occurrence, join: JoinView, sought: Sought) -> ArrowRestriction | None:
    """Return the restriction that sought values put upon an occurrence, if there is one."""
    plain = output_columns(join)
    pairs = {plain[name][1]: name for name in sought.columns if name in plain and plain[name][0] == occurrence.alias}
    return restrict(occurrence.relation, pairs, sought.rows)


def restrict(relation: Relation, pairs: Mapping[str, str], rows: pa.Table) -> ArrowRestriction | None:
    """Return the restriction of a relation's columns to the values of columns of some rows.

    A column with a NULL among the values is left out, and so are floating numbers and arrays: nobody looks them up.
    """
    usable = {
        own: theirs
        for own, theirs in pairs.items()
        if not rows[theirs].null_count and is_sought_by(relation.column(own).type)
    }
    if not usable or not rows.num_rows:
        return None
    return _keys(relation, tuple(usable), tuple(usable.values()), rows)


def led_to(
    occurrence: Occurrence, alias: str, join: JoinView, found: Mapping[str, ArrowResult]
) -> ArrowRestriction | None:
    """Return the restriction that rows of another occurrence put upon one, if an edge is between them."""
    for edge in join.edges:
        if (edge.left, edge.right) == (alias, occurrence.alias):
            theirs, own = zip(*edge.pairs, strict=True)
        elif (edge.right, edge.left) == (alias, occurrence.alias):
            own, theirs = zip(*edge.pairs, strict=True)
        else:
            continue
        return _keys(occurrence.relation, own, theirs, found[alias].rows.table)
    return None


def _keys(relation: Relation, own: tuple[str, ...], theirs: tuple[str, ...], rows: pa.Table) -> ArrowRestriction:
    like = ArrowBag(empty_table(relation.arrow_schema(own)))
    return Restriction(columns=own, keys=ArrowBag(rows).keys(theirs, like, own))


def _rank(relation: Relation, within: ArrowRestriction | None) -> int:
    """Return how well a restriction finds rows at a source: by its key, by an index, otherwise."""
    columns = set(within.columns) if within else set()
    if relation.key and columns >= set(relation.key):
        return 0
    return 1 if any(index[:1] and index[0] in columns for index in relation.indexes) else 2
