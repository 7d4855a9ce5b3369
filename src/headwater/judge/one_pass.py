"""Judge many states of many views in one pass over the change log, in DuckDB.

    snapshot of each source ── the log taken back ──► base rows at the first tick
    the log, part by part   ── tick by tick ────────► base rows at t ──► the text of each view that t touched ──► right
    the view's kept rows    ── its changes  ────────► what the warehouse shows at t ───────────────────────────► shown

A tick costs what it changed, and one run of the text of each view that reads something it changed. What is held follows
the relations, the views and the largest transaction, not the number of ticks: the log is read in parts, only the newest
state of a view is kept, and of a state that was compared three numbers stay.

Invariants
1. Nothing here maintains a view. The log and the kept rows are read; the law is not used.
2. A state that is right here is right. One that is wrong here is judged by Spark, whose SQL the view is written in,
   until Spark has said the same of the view once.
3. A view that cannot be judged here is left to Spark with all its states: a text that DuckDB cannot run, too many
   rows, a log and a source that contradict each other, changes that are no longer kept.
"""

from __future__ import annotations

import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.compare import Difference, Row, RowKey, bag_key, difference, row_key
from headwater.judge.base_walk import BaseWalk, NotJudgedHere, as_not_judged
from headwater.judge.grade import Observation, Verdict, grade
from headwater.judge.replay import BaseRelations, RecomputedView, ReplayedView
from headwater.judge.result import DUCKDB, SPARK
from headwater.judge.roll_back import RelationInSnapshot
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Relation, RelationName
from headwater.observe.events import CheckEstimated, CheckProgress, Listener
from headwater.warehouse.kept_table import KeptTable

_PROGRESS_SECONDS = 0.5
_TICKS_AT_ONCE = 4096
"""Of how many ticks the kept changes of a view are read at once. Fewer where they are too many rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedView:
    """A view to judge at these ticks, in order. `ask` gives what Spark finds wrong, None if a tick cannot be read."""

    replayed: ReplayedView
    table: KeptTable
    described: Sequence[Relation]
    relations: Mapping[RelationName, Sequence[str]]
    ticks: Sequence[Tick]
    ask: Callable[[Tick], Difference | None]


@dataclass(slots=True, kw_only=True)
class PassResult:
    """What was found of a view: the states that were compared, which engine judged them, and the first wrong one."""

    ticks: array[int] = field(default_factory=lambda: array("q"))
    right: array[int] = field(default_factory=lambda: array("q"))
    shown: array[int] = field(default_factory=lambda: array("q"))
    judged_by: Counter[str] = field(default_factory=Counter)
    last_good: Tick | None = None
    """The last compared tick before the first wrong one."""
    first_wrong: Tick | None = None
    difference: Difference | None = None
    _before: tuple[int, int] | None = None

    def add(self, tick: Tick, right: int, shown: int, engine: str) -> None:
        """Add a state. One that is what it was before is only counted: it changes no verdict."""
        self.judged_by[engine] += 1
        if self.first_wrong is None and right == shown:
            self.last_good = tick
        if (right, shown) != self._before:
            self._before = (right, shown)
            self.ticks.append(tick)
            self.right.append(right)
            self.shown.append(shown)

    def verdict(self) -> Verdict:
        """Grade what was compared. Numbers stand for states."""
        expected: dict[Tick, dict[Row, int]] = {
            Tick(tick): {(sign,): 1} for tick, sign in zip(self.ticks, self.right, strict=True)
        }
        observed = [
            Observation(tick=Tick(tick), state={(sign,): 1}) for tick, sign in zip(self.ticks, self.shown, strict=True)
        ]
        return grade(expected, observed)


def judge_in_one_pass(
    *,
    staged: Mapping[RelationName, RelationInSnapshot],
    log: ChangeLog,
    views: Sequence[PassedView],
    most_rows: int,
    listener: Listener,
) -> dict[str, PassResult]:
    """Return what was found of each view that can be judged here. Those with more rows than `most_rows` cannot."""
    described = {relation.name: relation for view in views for relation in view.described}
    wanted = {name for view in views for name in view.relations}
    with BaseRelations([one for one in described.values() if _is_possible(one)]) as base:
        walk = BaseWalk(base, log)
        start = min((view.ticks[0] for view in views if view.ticks), default=Tick(0))
        end = max((view.ticks[-1] for view in views if view.ticks), default=Tick(0))
        possible = set()
        for name in sorted(wanted, key=str):
            with _passed_over():
                walk.add(described[name], staged[name], start, end, most_rows)
                possible.add(name)
        judged: list[_JudgedView] = []
        for view in views:
            with _passed_over():
                if view.ticks and set(view.relations) <= possible:
                    judged.append(_JudgedView(base, view, most_rows))
        return _judge(walk, judged, most_rows, listener)


def _judge(walk: BaseWalk, judged: Sequence[_JudgedView], most_rows: int, listener: Listener) -> dict[str, PassResult]:
    """Go from tick to tick. A view that turns out not to be judged here leaves."""
    left = {one.view.replayed.name: one for one in judged}
    progress = _PassProgress(listener)
    estimated = False
    needed = sorted({tick for one in judged for tick in one.view.ticks})
    for tick in needed:
        changed = walk.go_to(tick, most_rows)
        for one in left.values():
            one.is_stale |= bool(changed & one.reads)
        for name, one in list(left.items()):
            if walk.broken & one.reads:
                del left[name]
                continue
            if tick != one.next_tick:
                continue
            try:
                with as_not_judged():
                    one.judge(tick)
            except NotJudgedHere:
                del left[name]
                continue
            progress.tell(one)
        if not estimated and any(one.seconds is not None for one in left.values()):
            estimated = True
            _tell_estimate(walk, list(left.values()), listener)
    return {name: one.result for name, one in left.items()}


def _tell_estimate(walk: BaseWalk, judged: Sequence[_JudgedView], listener: Listener) -> None:
    """Say how long the rest takes, by how long the first state of each view took."""
    changes = walk.change_counts({name for one in judged for name in one.reads})
    rest = {one: min(len(one.view.ticks) - 1, sum(changes[name] for name in one.reads)) for one in judged}
    known = [one.seconds for one in judged if one.seconds is not None]
    each = sum(known) / len(known)  # of a view that was born later nothing is known yet
    seconds = sum((each if one.seconds is None else one.seconds) * count for one, count in rest.items())
    listener(
        CheckEstimated(
            views=tuple(one.view.replayed.name for one in judged),
            states_expected=sum(len(one.view.ticks) for one in judged),
            recomputed_expected=sum(rest.values()) + len(judged),
            seconds=seconds,
        )
    )


class _PassProgress:
    """Tells how far views are: now and then, and of each the last."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._told_at: dict[str, float] = {}

    def tell(self, one: _JudgedView) -> None:
        name, now = one.view.replayed.name, time.monotonic()
        if one.next_tick is None or now - self._told_at.get(name, 0.0) > _PROGRESS_SECONDS:
            self._told_at[name] = now
            expected = len(one.view.ticks)
            self._listener(CheckProgress(view=name, states_checked=one.done, states_expected=expected))


class _JudgedView:
    """One view on the way: what its text gives, and what the warehouse shows, both as of one tick."""

    def __init__(self, base: BaseRelations, view: PassedView, most_rows: int) -> None:
        self.view = view
        self.reads = set(view.relations)
        self.is_stale = True
        self.seconds: float | None = None
        self.done = 0
        self.result = PassResult()
        self._recomputed = RecomputedView(base, view.replayed)
        self._shown = _Shown(view.table, view.ticks[0], view.ticks[-1], most_rows)
        self._most_rows = most_rows
        self._right: Counter[RowKey] = Counter()
        self._right_sign = 0
        self._is_trusted = False

    @property
    def next_tick(self) -> Tick | None:
        """The next tick to judge, None at the end."""
        return self.view.ticks[self.done] if self.done < len(self.view.ticks) else None

    def judge(self, tick: Tick) -> None:
        """Compare the states of a tick."""
        began = time.monotonic()
        moved = self._shown.go_to(tick)
        if self.is_stale:
            self._right = Counter()
            for row, count in self._recomputed.rows().items():
                self._right[row_key(row)] += count
            if len(self._right) > self._most_rows:
                raise NotJudgedHere
            self._right_sign = hash(frozenset(self._right.items()))
            self.is_stale = False
            moved = True
        if moved or not self.done:
            is_right = self._right == self._shown.rows
            self._wrong = None if is_right else difference(self._right, self._shown.rows)
        self._note(tick)
        self.done += 1
        if self.seconds is None:
            self.seconds = time.monotonic() - began
        if self.next_tick is None:
            self._require_what_readers_see(tick)

    def _note(self, tick: Tick) -> None:
        if self._wrong is None:
            self.result.add(tick, self._right_sign, self._right_sign, DUCKDB)
            return
        shown, engine = hash(frozenset(self._shown.rows.items())), DUCKDB
        if not self._is_trusted:
            engine, by_spark = SPARK, self.view.ask(tick)
            if by_spark is None:
                return
            if not by_spark:
                shown = self._right_sign
            elif self.result.first_wrong is None:
                self.result.first_wrong, self.result.difference = tick, by_spark
            self._is_trusted = bool(by_spark) and _are_same(by_spark, self._wrong)
        if shown == self._right_sign and engine == DUCKDB:
            shown += 1  # different states, whatever their numbers
        self.result.add(tick, self._right_sign, shown, engine)

    def _require_what_readers_see(self, tick: Tick) -> None:
        """Compare the rows that changes were added up to with the rows a reader of the last tick is given."""
        if _entries(self.view.table, tick, self._most_rows) != self._shown.rows:
            raise NotJudgedHere


class _Shown:
    """A view's rows as the warehouse shows them: those of the first tick, and its kept changes from there."""

    def __init__(self, table: KeptTable, first: Tick, last: Tick, most_rows: int) -> None:
        self._table = table
        self._last = last
        self._most_rows = most_rows
        self.rows = _entries(table, first, most_rows)
        self._read_upto = first
        self._waiting: deque[tuple[Tick, RowKey, int]] = deque()

    def go_to(self, tick: Tick) -> bool:
        """Add the changes up to a tick. Tell whether there were any."""
        moved = False
        while True:
            while self._waiting and self._waiting[0][0] <= tick:
                _, row, count = self._waiting.popleft()
                moved = True
                self.rows[row] += count
                if not self.rows[row]:
                    del self.rows[row]
            if self._waiting or self._read_upto >= tick:
                return moved
            self._read_on()

    def _read_on(self) -> None:
        width = _TICKS_AT_ONCE
        while True:
            upto = Tick(min(self._read_upto + width, self._last))
            found = self._table.few_changes(self._read_upto, upto, self._most_rows)
            if found is not None:
                break
            if width == 1:
                raise NotJudgedHere
            width //= 2
        ordered = found.sort_by(TICK)
        counts, ticks = (ordered[name].to_pylist() for name in (COUNT, TICK))
        for tick, row, count in zip(ticks, _keys(ordered, self._table.schema.names), counts, strict=True):
            self._waiting.append((Tick(tick), row, count))
        self._read_upto = upto


def _entries(table: KeptTable, tick: Tick, most_rows: int) -> Counter[RowKey]:
    """Return the rows that a reader of a tick is given: the checkpoint's, and the changes from there."""
    counts: Counter[RowKey] = Counter()
    parts = table.entry_parts(tick)
    for part in chain(parts.rows, parts.changes):
        for row, count in zip(_keys(part, table.schema.names), part[COUNT].to_pylist(), strict=True):
            counts[row] += count
            if not counts[row]:
                del counts[row]
        if len(counts) > most_rows:
            raise NotJudgedHere
    return counts


def _keys(rows: pa.Table, names: Sequence[str]) -> Iterable[RowKey]:
    columns = (column.to_pylist() for column in rows.select(names).columns)
    return map(row_key, zip(*columns, strict=True))


def _are_same(one: Difference, other: Difference) -> bool:
    return all(
        bag_key(dict(mine)) == bag_key(dict(its))
        for mine, its in ((one.missing, other.missing), (one.surplus, other.surplus))
    )


def _is_possible(relation: Relation) -> bool:
    """Tell whether DuckDB has the types of a relation."""
    import duckdb  # noqa: PLC0415 - only a judge needs it

    try:
        with BaseRelations([relation]):
            return True
    except duckdb.Error:
        return False


@contextmanager
def _passed_over() -> Iterator[None]:
    """Leave out what cannot be judged here."""
    try:
        with as_not_judged():
            yield
    except NotJudgedHere:
        pass
