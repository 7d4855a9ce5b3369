"""Compute what a batch of ticks changes in one view: reach by batched SWEEP, then the law on Spark."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from headwater.deltas.extent import Content
from headwater.deltas.lookup import B, Lookup
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import stamped_names, to_arrow
from headwater.deltas.stored_bag import Bag, BagLookup, rows_of
from headwater.engine.state.runner import Runner, Spool, existing
from headwater.maintenance.batched_sweep import batched_sweep
from headwater.maintenance.combinations import combinations_sql, estimate_combinations, most_combinations, pieces
from headwater.maintenance.published.messages import ViewHistory
from headwater.maintenance.rebase import Log
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.laws.join import combined_sql, law_sql
from headwater.views.steps.join import JoinView

_FIRST_ROWS = 10_000
_MOSTLY = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChange:
    """The signed rows by which a view changes in a batch, stamped with their ticks, and what finding them took.

    `segments` has the same of the segments that are kept for it, where they changed. `changed_rows` counts what changed
    of what it needs, `read_rows` the old rows that were read for that, by relation or segment: of what is stored, how
    many there were at most.
    """

    rows: Bag
    segments: Mapping[RelationName, Bag] = field(default_factory=dict)
    changed_rows: int = 0
    read_rows: Mapping[RelationName, int] = field(default_factory=dict)
    seconds_asking: float
    seconds_joining: float


def change_view(
    runner: Runner,
    view: JoinView,
    schema: pa.Schema,
    guarantee: Guarantee,
    span: tuple[Tick, Tick],
    log: ViewHistory[Bag],
    lookup: BagLookup,
    folder: str | None = None,
) -> ViewChange | None:
    """Return how a view changes over the ticks (lo, hi], or None if nothing changed that it needs.

    Many rows are written below the folder.
    """
    started = time.perf_counter()
    needed = {name: Content(columns=columns, rows=view.extents[name]) for name, columns in view.relations.items()}
    changes = base_changes(needed, guarantee, span, log)
    if not any(bag.most for bag in changes.values()):
        return None
    formed = {name: runner.formed(bag) for name, bag in changes.items()}
    change = change_join(runner, view, schema, span, formed, log, lookup, folder)
    return replace(change, seconds_joining=time.perf_counter() - started - change.seconds_asking)


def base_changes(
    needed: Mapping[RelationName, Content], guarantee: Guarantee, span: tuple[Tick, Tick], log: ViewHistory[B]
) -> dict[RelationName, B]:
    """Return how what is needed of relations changes over the ticks (lo, hi]. If not each tick is shown, all at hi.

    Rows that are not needed are left out before anything is netted: netting is what takes long. Stored changes are not
    netted here: the law over them does that.
    """
    lo, hi = span
    changes: dict[RelationName, B] = {
        name: log.changes(name, content.columns, lo, hi).selected(content.rows) for name, content in needed.items()
    }
    if guarantee is not Guarantee.COMPLETE:
        changes = {name: bag.restamped(hi) for name, bag in changes.items()}
    return {name: bag.net_if_held() for name, bag in changes.items()}


def change_join(
    runner: Runner,
    view: JoinView,
    schema: pa.Schema,
    span: tuple[Tick, Tick],
    changes: Mapping[RelationName, Bag],
    log: Log[Bag],
    lookup: BagLookup,
    folder: str | None = None,
) -> ViewChange:
    """Return how a join changes over the ticks (lo, hi], given how what it reads changes."""
    started = time.perf_counter()
    relevant = {name: bag.selected(view.extents[name]) for name, bag in changes.items()}
    bags = reach_rows(view, span[0], relevant, log, lookup)
    asked = time.perf_counter()
    rows: Bag = ArrowBag(schema.empty_table())
    if any(bag.most for bag in relevant.values()):
        is_netted = not _is_net_enough(view, schema, relevant)
        rows = join_in_pieces(runner, view, schema, span, bags, folder, is_netted=is_netted)
    return ViewChange(
        rows=rows,
        changed_rows=sum(bag.most for bag in changes.values()),
        read_rows=old_row_counts(relevant, bags),
        seconds_asking=asked - started,
        seconds_joining=time.perf_counter() - asked,
    )


def old_row_counts(changes: Mapping[RelationName, B], reached: Mapping[RelationName, B]) -> Counter[RelationName]:
    """Return how many rows are reached that are no changes themselves. Of stored ones, how many at most."""
    return Counter({name: bag.most - changes[name].most for name, bag in reached.items()})


def join_in_pieces(
    runner: Runner,
    view: JoinView,
    schema: pa.Schema,
    span: tuple[Tick, Tick],
    bags: Mapping[RelationName, Bag],
    folder: str | None = None,
    *,
    is_netted: bool = True,
) -> Bag:
    """Run the law over stamped rows, in as many pieces as hot keys make needful. What it gives may be netted or not.

    Only what was read can contradict the log. Before a later piece a row may stand below zero: it was deleted, and its
    old self was not reached, because nothing that changes in the batch joins it.
    """
    there = {relation: existing(bag, str(relation), span[0]) for relation, bag in bags.items()}
    found = Spool(schema=schema, runner=runner, folder=folder)
    for piece in pieces(view, there, *span, partial(_combinations, runner, span), most_combinations(there)):
        names = stamped_names(piece.bags)
        counted = {names[relation]: rows_of(bag.shifted(-piece.after)) for relation, bag in piece.bags.items()}
        is_large = piece.combinations > runner.held_rows
        write = partial(law_sql if is_netted else combined_sql, view, names, 0)
        sql = runner.text(view, (is_netted, tuple(names.items())), write)
        found.add(runner.run(sql, counted, schema, shifted=piece.after, folder=folder, is_large=is_large))
    return found.bag()


def _is_net_enough(view: JoinView, schema: pa.Schema, changes: Mapping[RelationName, Bag]) -> bool:
    """Tell whether the law over stored changes need not net what it gives: a shuffle by all values of every row.

    All combinations are of rows that were there together where one occurrence changes. Then it is right without, and
    worth it unless many rows change into themselves, which the first of them tell. Netting also makes one zero of two.
    """
    changed = [name for name, bag in changes.items() if bag.most]
    if view.fallible or len(changed) > 1 or any(pa.types.is_floating(kind) for kind in schema.types):
        return False
    [name] = changed
    stored = changes[name].stored
    if stored is None or sum(one.relation.name == name for one in view.occurrences) > 1:
        return False
    few = ArrowBag(to_arrow(stored.frame.limit(_FIRST_ROWS)).select(stored.schema.names).cast(stored.schema))
    return len(few.net()) > _MOSTLY * len(few)


def _combinations(runner: Runner, span: tuple[Tick, Tick], view: JoinView, bags: Mapping[RelationName, Bag]) -> int:
    """Return about how many combinations a join has. One tick has no versions that never met: then many are not few."""
    few = {name: bag.held for name, bag in bags.items() if bag.held is not None}
    if len(few) == len(bags):
        return estimate_combinations(view, few)
    if span[1] - span[0] == 1:
        return 0
    names = stamped_names(bags)
    tables = {names[name]: rows_of(bag) for name, bag in bags.items()}
    return runner.number(combinations_sql(view, names), tables)


def reach_rows(
    view: JoinView, lo: Tick, changes: Mapping[RelationName, B], log: Log[B], lookup: Lookup[Any, B]
) -> Mapping[RelationName, B]:
    """Return the changes of what a join reads, and the old rows that they can join, stamped `lo`."""
    sweep = batched_sweep(view, lo, changes, log)
    try:
        requests = next(sweep)
        while True:
            requests = sweep.send(lookup.lookup(requests))
    except StopIteration as finished:
        bags: Mapping[RelationName, B] = finished.value
    return bags
