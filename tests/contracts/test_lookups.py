"""One contract for everything that rows are looked up in: each finds what a plain Counter of rows has at that tick."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from in_duckdb import World, relation
from journaled import fold, journal_in, tell
from lineage_cases import InMemory, counted
from pyspark.sql import SparkSession
from stamped_history import run_on_duckdb

from headwater.advisor.kind_replay import copy_of
from headwater.deltas.lookup import RowRequest, SawTicks, SawTransactions, Sight, look_up, restricted
from headwater.deltas.on_arrow import ArrowBag, ArrowKeys, ArrowLookup, ArrowRequest, ArrowResult
from headwater.deltas.on_spark import to_arrow, to_dataframe
from headwater.deltas.order import By
from headwater.deltas.stored_bag import Bag, BagRequest, BagResult, StoredBag, StoredKeys, held_request
from headwater.engine.state import segment_reader
from headwater.engine.state.accepted_log import AcceptedLog
from headwater.engine.state.computed_segment import BatchLookup, ComputedSegment
from headwater.engine.state.relation_lookup import RelationLookup, Snapshots
from headwater.engine.state.replica_reader import ReplicaReader, load_replica, stored_replica
from headwater.engine.state.runner import Runner
from headwater.engine.state.segment_reader import SegmentReader
from headwater.engine.state.segment_rows import SegmentRows
from headwater.engine.state.self_lookup import SelfLookup
from headwater.engine.state.source_lookup import SnapshotLookup, SourceLookup
from headwater.engine.state.stored_segment import StoredSegment
from headwater.engine.state.tick_lookup import RebasedLookup, SegmentedLookup
from headwater.engine.state.whole_segments import WholeSegments
from headwater.model.keeping import TheseGroupTables
from headwater.model.memory_budget import MemoryBudget, Share
from headwater.model.position import Positions, Tick
from headwater.model.relation import COUNT, TICK, Relation, RelationName, SegmentName
from headwater.model.settings import DEFAULTS
from headwater.sources.scripted import ScriptedSource
from headwater.storage.mapped_rows import MappedFolder
from headwater.views.steps.group_tables import computed_segments, keep_group_tables
from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.output_columns import output_columns
from headwater.warehouse.catalog import ReplicaEntry
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.replica import Replica

Row = tuple[Any, ...]
NAMES = ("x", "t", "f")
RELATION = relation("a", "r", x="int", t="string", f="double")
VALUES: tuple[tuple[object, ...], ...] = ((None, 0, 1, 2, 3), (None, "", "a", "ä", "b"), (None, 0.0, 1.5))
LAST = 12
NO_SPARK = cast("SparkSession", None)


@dataclass
class History:
    """What a relation has at each tick; one transaction a tick. It is the oracle, and the log."""

    states: list[Counter[Row]]
    source: ScriptedSource = field(default_factory=lambda: ScriptedSource(name="a", relations=(RELATION,)))

    @classmethod
    def of(cls, seed: int) -> History:
        chance, states = random.Random(seed), [Counter[Row]()]
        for tick in range(LAST):
            state = Counter(states[-1])
            for _ in range(20 if not tick else 6):
                row = tuple(chance.choice(values) for values in VALUES)
                if chance.random() < 0.4 and state:
                    state[chance.choice(sorted(state, key=repr))] -= 1
                else:
                    state[row] += chance.choice((1, 1, 3))
                state = +state
            states.append(state)
        made = cls(states)
        for tick in range(1, LAST + 1):
            made.source.commit({RELATION.name: made.change(tick)})
        return made

    def change(self, tick: int) -> dict[Row, int]:
        new, old = self.states[tick], self.states[tick - 1]
        return {row: new[row] - old[row] for row in {*new, *old} if new[row] != old[row]}

    def signed(self, after: int, upto: int) -> pa.Table:
        """Return the rows of the ticks (after, upto], with their ticks and counts."""
        rows = [(row, tick, n) for tick in range(after + 1, upto + 1) for row, n in self.change(tick).items()]
        table = table_of([row for row, _, _ in rows])
        table = table.append_column(TICK, pa.array([tick for _, tick, _ in rows], pa.int64()))
        return table.append_column(COUNT, pa.array([n for *_, n in rows], pa.int64()))

    def found(self, tick: int, request: ArrowRequest) -> Counter[Row]:
        """Return what a request has to find, by the plainest means."""
        keys = None if request.keys is None else set(zip(*request.keys.table.to_pydict().values(), strict=True))
        found: Counter[Row] = Counter()
        for row, times in self.states[tick].items():
            named = dict(zip(NAMES, row, strict=True))
            if keys is None or tuple(named[name] for name in request.columns) in keys:
                found[tuple(named[name] for name in request.wanted)] += times
        return found

    # The log, as rebasing sees it.
    def seen_after(self, name: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        return self._picked(name, columns, tick, LAST, lambda at: _saw(sight, at))

    def unseen_upto(self, name: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        return self._picked(name, columns, 0, tick, lambda at: not _saw(sight, at))

    def _picked(
        self, name: RelationName, columns: tuple[str, ...], after: int, upto: int, test: Callable[[int], bool]
    ) -> ArrowBag:
        assert name == RELATION.name
        rows = self.signed(after, upto)
        kept = pa.array([test(tick) for tick in rows[TICK].to_pylist()], pa.bool_())
        return ArrowBag(rows.filter(kept).select([*columns, TICK, COUNT]))


def _saw(sight: Sight, tick: int) -> bool:
    match sight:
        case SawTicks(upto=upto):
            return tick <= upto
        case SawTransactions(seen=seen):
            return seen.sees(tick, "")


def table_of(rows: list[Row]) -> pa.Table:
    schema = RELATION.arrow_schema()
    return pa.table([pa.array([row[n] for row in rows], one.type) for n, one in enumerate(schema)], schema=schema)


def plain(state: Counter[Row]) -> pa.Table:
    return table_of(list(state.elements()))


Stages = Iterator[tuple[int, ArrowLookup]]
"""A lookup at one tick after another; it is looked at before it goes on to the next."""


@dataclass(frozen=True)
class Place:
    """What the implementations are made with."""

    history: History
    folder: Path
    spark: SparkSession
    patch: pytest.MonkeyPatch

    def runner(self, held_rows: int) -> Runner:
        """Return what keeps more rows than these on Spark."""
        return Runner(spark=self.spark, held_rows=held_rows, scratch=str(self.folder / "scratch"))


def source_now(place: Place) -> Stages:
    """A source shows what it has when its snapshot is taken."""
    source = ScriptedSource(name="a", relations=(RELATION,))
    for tick in range(1, LAST + 1):
        source.commit({RELATION.name: place.history.change(tick)})
        if tick % 4 == 0:
            yield tick, _asked(source)


def source_rebased(place: Place) -> Stages:
    """A source is asked late, and its answer is brought to an earlier tick."""
    late = _asked(place.history.source)
    for tick in (0, 5, LAST):
        yield tick, RebasedLookup(others=late, log=place.history, tick=Tick(tick))


class _Followed:
    """A log that is always followed."""

    def wait_for(self, positions: Positions, timeout_seconds: float) -> bool:
        del positions, timeout_seconds
        return True

    def held(self, source: str) -> Positions:
        del source
        return {}


def _asked(source: ScriptedSource) -> SnapshotLookup:
    """The relation as the source shows it now."""
    relations = {RELATION.name: RELATION}
    return SnapshotLookup(
        snapshot=source.snapshot(tuple(relations)), relations=relations, log=_Followed(), wait_seconds=1.0
    )


def batch_of_sources(place: Place) -> Stages:
    """What a batch reads of a relation: of the source, in its snapshot, as of the tick where it begins."""
    with Snapshots({"a": place.history.source}, {RELATION.name: RELATION}, _Followed()) as snapshots:
        assert not snapshots.open(["a"])
        others = RelationLookup(relations={RELATION.name: RELATION}, replicas={}, snapshots=snapshots)
        for tick in (3, LAST):
            yield tick, BatchLookup(tick=Tick(tick), log=place.history, others=others, kept={})


def self_lookup(place: Place) -> Stages:
    """What a batch finds if it asks only for what its own changes do not tell; all of a relation without a key."""
    with Snapshots({"a": place.history.source}, {RELATION.name: RELATION}, _Followed()) as snapshots:
        assert not snapshots.open(["a"])
        for tick in (3, LAST):
            asking = SelfLookup(
                relations={RELATION.name: RELATION},
                columns={RELATION.name: NAMES},
                net={RELATION.name: ArrowBag(place.history.signed(tick, LAST)).restamped(Tick(LAST)).net()},
                lo=Tick(tick),
                log=cast("AcceptedLog", place.history),
                shown=(),
                others=RelationLookup(relations={RELATION.name: RELATION}, replicas={}, snapshots=snapshots),
            )
            yield tick, RebasedLookup(others=asking, log=place.history, tick=Tick(tick))


def _counted(place: Place, tick: int) -> pa.Table:
    return ArrowBag.of_plain(plain(place.history.states[tick]), Tick(tick)).counted


def _replica(place: Place, tick: int) -> ReplicaReader:
    rows = ArrowBag.of_plain(plain(place.history.states[tick]), Tick(tick)).net()
    return copy_of(place.runner(DEFAULTS.batch.held_rows), RELATION, rows, Tick(tick))


def replica_in_memory(place: Place) -> Stages:
    reader = _replica(place, 1)
    for tick in (1, 4, 5, LAST):
        reader.absorb([place.history.signed(reader.tick, tick)], Tick(tick))
        yield tick, reader


def replica_rebased(place: Place) -> Stages:
    """A replica that is ahead, or behind."""
    reader = _replica(place, 6)
    for tick in (2, 6, LAST):
        yield tick, RebasedLookup(others=reader, log=place.history, tick=Tick(tick))


def _kept_replica(place: Place, tick: int) -> tuple[Replica, ReplicaEntry]:
    rows = ArrowBag.of_plain(plain(place.history.states[tick]), Tick(tick)).net()
    replica = Replica.create(str(place.folder / "replica"), RELATION.arrow_schema())
    replica.checkpoint.write(rows.counted, Tick(tick))
    return replica, ReplicaEntry(relation=RELATION.name, generation=0, columns=RELATION.column_names, key=())


def replica_mapped(place: Place) -> Stages:
    """A replica of which nothing has room in memory."""
    replica, entry = _kept_replica(place, 1)
    reader = load_replica(place.spark, RELATION, entry, replica, MemoryBudget.of(0))
    reader.rows.tail_rows = 10
    for tick in (2, 4, LAST):
        reader.absorb([place.history.signed(reader.tick, tick)], Tick(tick))
        yield tick, reader
    assert not reader.rows.is_held
    reader.release()


def replica_stored(place: Place) -> Stages:
    replica, entry = _kept_replica(place, LAST)
    yield LAST, stored_replica(place.spark, RELATION, entry, replica)


def replica_stored_beyond_what_is_held(place: Place) -> Stages:
    """A stored replica that leaves what it finds to Spark."""
    replica, entry = _kept_replica(place, LAST)
    yield LAST, stored_replica(place.spark, RELATION, entry, replica, held_rows=1)


def replica_beyond_what_is_held(place: Place) -> Stages:
    """A replica that leaves what it finds to Spark: its base, and changes laid on top."""
    replica, entry = _kept_replica(place, 1)
    settings = replace(DEFAULTS.batch, held_rows=2)
    reader = load_replica(place.spark, RELATION, entry, replica, MemoryBudget.of(0), settings)
    for tick in (1, 4, LAST):
        reader.absorb([place.history.signed(reader.tick, tick)], Tick(tick))
        yield tick, reader


def segment_beyond_what_is_held(place: Place) -> Stages:
    """A kept segment that reads much where it is stored."""
    for tick, stored in _stored(place, 2, LAST, few_rows=0, held_rows=2):
        rows = [_counted(place, tick)]
        yield tick, SegmentReader.of_parts(RELATION, rows, Tick(tick), stored=lambda _, here=stored: here, held_rows=2)


def stored_beyond_what_is_held(place: Place) -> Stages:
    return _stored(place, 6, LAST, few_rows=0, held_rows=1)


def computed_beyond_what_is_held(place: Place) -> Stages:
    """The rows that a window function looks at, of relations that are not held."""
    return _computed(place, place.runner(0))


def source_beyond_what_is_held(place: Place) -> Stages:
    """A source that answers more than is held, brought to a tick."""
    late = replace(_asked(place.history.source), runner=place.runner(2))
    for tick in (5, LAST):
        yield tick, RebasedLookup(others=late, log=place.history, tick=Tick(tick))


def kept_segment(place: Place) -> Stages:
    place.patch.setattr(segment_reader, "_SPARE_ROWS", 2)
    folder = MappedFolder(place.folder / "mapped", Share(3_000))
    reader = SegmentReader.of_parts(RELATION, [_counted(place, 1)], Tick(1), folder)
    reader.rows.tail_rows = 10
    for tick in range(1, LAST + 1):
        reader.absorb([place.history.signed(reader.tick, tick)], Tick(tick))
        yield tick, reader


def routed_segment(place: Place) -> Stages:
    """A segment and a relation, looked up together; of several requests every other one is for the relation."""
    name = SegmentName(name="n0")
    segment = Relation(name=name, columns=RELATION.columns)
    reader = SegmentReader.of_parts(segment, [_counted(place, LAST)], Tick(LAST))
    others = _asked(place.history.source)
    yield LAST, _Renamed(SegmentedLookup(segments={name: reader}, others=others), name, every=2)


def _stored(
    place: Place, *ticks: int, few_rows: int = DEFAULTS.batch.lookup_rows, held_rows: int = DEFAULTS.batch.held_rows
) -> Stages:
    journal = journal_in(str(place.folder))
    table = KeptTable.create(str(place.folder / "kept"), journal, RELATION.arrow_schema(), Tick(2))
    for tick in (2, 6, LAST):
        tell(table, place.history.signed(2, tick), tick)
        if tick < LAST:  # the last ones are read in the journal
            fold(table)
    written = to_dataframe(place.spark, _minus_zero(plain(place.history.states[6])))
    assert table.checkpoint.write_from_dataframe(written, Tick(6))
    for tick in ticks:
        yield (
            tick,
            StoredSegment(
                relation=RELATION,
                tick=Tick(tick),
                table=table,
                spark=place.spark,
                few_rows=few_rows,
                held_rows=held_rows,
            ),
        )


def stored_read_here(place: Place) -> Stages:
    """Before, at and after the tick of the checkpoint."""
    return _stored(place, 2, 6, LAST)


def stored_on_spark(place: Place) -> Stages:
    return _stored(place, 2, LAST, few_rows=0)


def computed_segment(place: Place) -> Stages:
    """The rows that a window function looks at, where they are not kept: computed from the relation."""
    return _computed(place, None)


def _computed(place: Place, runner: Runner | None) -> Stages:
    compiled = World([RELATION]).compile("SELECT x, t, f, SUM(x) OVER (PARTITION BY x) AS n FROM a.r")
    view = keep_group_tables(compiled, TheseGroupTables(()))
    for tick in (1, LAST):
        reading = InMemory({RELATION.name: counted(RELATION, list(place.history.states[tick].elements()))})
        seen = reading if runner is None else _Formed(reading, runner)
        computing = SegmentRows(view, seen, run_on_duckdb, view.relations)
        whole = None if runner is None else WholeSegments(view=view, reading=seen, runner=runner)
        [name] = computed_segments(view)
        segment = computing.segments[name]
        assert isinstance(segment.step, JoinStep)
        called = {column: name for name, (_, column) in output_columns(segment.step.view).items()}
        held = segment.relation
        yield tick, _Renamed(ComputedSegment(relation=held, tick=Tick(tick), rows=computing, whole=whole), name, called)


@dataclass(frozen=True)
class _Formed:
    """A reading whose results are in the form that their size asks for."""

    others: InMemory
    runner: Runner

    @property
    def tick(self) -> Tick:
        return self.others.tick

    def holds(self, name: RelationName) -> bool:
        return self.others.holds(name)

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        found = self.others.lookup([held_request(request) for request in requests])
        return [result.with_rows(self.runner.formed(result.rows)) for result in found]


@dataclass(frozen=True)
class _Renamed:
    """A segment's rows under the name and the columns that requests have here."""

    others: ArrowLookup
    name: RelationName
    called: Mapping[str, str] = field(default_factory=lambda: {name: name for name in NAMES})
    every: int = 1

    def lookup(self, requests: Sequence[ArrowRequest]) -> Sequence[ArrowResult]:
        return self.others.lookup([one if n % self.every else self._there(one) for n, one in enumerate(requests)])

    def _there(self, request: ArrowRequest) -> ArrowRequest:
        return RowRequest(
            relation=self.name,
            wanted=tuple(self.called[name] for name in request.wanted),
            within=restricted(tuple(self.called[name] for name in request.columns), request.keys),
            order=tuple(By(self.called[by.column], is_descending=by.is_descending) for by in request.order),
            limit=request.limit,
        )


def _minus_zero(rows: pa.Table) -> pa.Table:
    """Return rows as a person may have written them: with -0.0 for every other 0.0."""
    values = [-0.0 if value == 0.0 and n % 2 else value for n, value in enumerate(rows["f"].to_pylist())]
    return rows.set_column(2, "f", pa.array(values, pa.float64()))


IN_MEMORY = (
    source_now, source_rebased, batch_of_sources, self_lookup, replica_in_memory, replica_rebased, kept_segment,
    routed_segment, computed_segment,
)  # fmt: skip
ON_SPARK = (replica_mapped, replica_stored, stored_read_here, stored_on_spark)
BEYOND = (
    replica_beyond_what_is_held, segment_beyond_what_is_held, stored_beyond_what_is_held, computed_beyond_what_is_held,
    source_beyond_what_is_held, replica_stored_beyond_what_is_held,
)  # fmt: skip
"""What stays on Spark."""

KEYS: dict[str, tuple[tuple[str, ...], list[Row]] | None] = {
    "all rows": None,
    "no keys": (("x",), []),
    "unknown keys": (("x",), [(99,), (-1,)]),
    "one column": (("x",), [(1,), (3,)]),
    "a key twice": (("t",), [("a",), ("a",), ("ä",)]),
    "two columns": (("x", "t"), [(1, "a"), (2, ""), (0, "b")]),
    "another order": (("t", "x"), [("a", 1), ("", 2), ("b", 99)]),
    "only NULL": (("x",), [(None,)]),
    "NULLs": (("x", "t"), [(None, "a"), (1, None), (None, None), (2, "b")]),
    "NULL in one column": (("t", "x"), [("a", None), ("b", None), ("b", 1)]),
}
WANTED = (NAMES, ("f", "x"), ("t",))
ORDER = (By("t", is_descending=True), By("x"), By("f"))
ORDERED = (("t", True), ("x", False), ("f", False))


def requests(*, few: bool) -> Iterator[tuple[str, ArrowRequest]]:
    for place, (label, keyed) in enumerate(KEYS.items()):
        for wanted in WANTED[place % len(WANTED) :][:1] if few else WANTED:
            yield f"{wanted} of {label}", request(keyed, wanted)
    for limit in (3,) if few else (0, 1, 3, 8, 1_000):
        yield f"the first {limit}", request(None, NAMES, limit)
    yield "the first 2 under keys", request(KEYS["NULLs"], NAMES, 2)


def request(
    keyed: tuple[tuple[str, ...], list[Row]] | None, wanted: tuple[str, ...], limit: int | None = None
) -> ArrowRequest:
    order = () if limit is None else ORDER
    if keyed is None:
        return RowRequest(relation=RELATION.name, wanted=wanted, order=order, limit=limit)
    columns, values = keyed
    schema = RELATION.arrow_schema(columns)
    table = pa.table([pa.array([v[n] for v in values], one.type) for n, one in enumerate(schema)], schema=schema)
    within = restricted(columns, ArrowKeys(table))
    return RowRequest(relation=RELATION.name, wanted=wanted, within=within, order=order, limit=limit)


def rows_of(bag: Bag) -> list[tuple[Row, int]]:
    rows = bag.table if isinstance(bag, ArrowBag) else to_arrow(bag.frame).select(bag.schema.names)
    columns = [column.to_pylist() for column in rows.drop_columns([TICK, COUNT]).columns]
    return list(zip(zip(*columns, strict=True), rows[COUNT].to_pylist(), strict=True))


def in_order(rows: Counter[Row]) -> list[Row]:
    """Sort as SQL says, one column after the other, the last one first; NULLs come first."""
    listed = list(rows)
    for name, is_descending in reversed(ORDERED):
        place = NAMES.index(name)
        some = [row for row in listed if row[place] is not None]
        some.sort(key=lambda row: _sortable(row[place]), reverse=is_descending)
        listed = [row for row in listed if row[place] is None] + some
    return listed


def _sortable(value: object) -> Any:
    return value.encode() if isinstance(value, str) else value


def check(place: Place, stages: Stages, *, few: bool = False) -> None:
    for tick, lookup in stages:
        for label, asked in requests(few=few):
            result = look_up(lookup, asked)
            found = rows_of(result.rows)
            total: Counter[Row] = Counter()
            for row, count in found:
                total[row] += count
            total = Counter({row: count for row, count in total.items() if count})
            right, where = place.history.found(tick, asked), f"{label} at tick {tick}"
            if asked.limit is None:
                assert total == right, where
                assert result.is_whole, where
                continue
            ordered = in_order(right)
            assert [row for row, _ in found] == ordered[: len(found)], where
            assert all(right[row] == count for row, count in found), where
            assert result.is_whole == (len(found) == len(ordered)), where
            assert len(found) >= min(asked.limit, len(ordered)), where


def check_several(lookup: ArrowLookup) -> None:
    """Requests that are made at once have the results that each of them has alone, in their order."""
    several = [request(keyed, NAMES) for keyed in KEYS.values()]
    at_once = [sorted(rows_of(result.rows.net()), key=repr) for result in lookup.lookup(several)]
    assert at_once == [sorted(rows_of(look_up(lookup, one).rows.net()), key=repr) for one in several]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", IN_MEMORY, ids=lambda kind: kind.__name__)
def test_it_finds_what_is_there(
    kind: Callable[[Place], Stages], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(History.of(seed), tmp_path, NO_SPARK, monkeypatch)
    check(place, kind(place))
    check_several(next(kind(place))[1])


@pytest.mark.parametrize("kind", ON_SPARK, ids=lambda kind: kind.__name__)
def test_it_finds_what_is_there_on_spark(
    kind: Callable[[Place], Stages], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(History.of(0), tmp_path, spark, monkeypatch)
    check(place, kind(place), few=True)


@pytest.mark.parametrize("kind", BEYOND, ids=lambda kind: kind.__name__)
def test_it_finds_what_is_there_and_leaves_much_on_spark(
    kind: Callable[[Place], Stages], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(History.of(0), tmp_path, spark, monkeypatch)
    check(place, kind(place), few=True)
    tick, lookup = list(kind(replace(place, folder=tmp_path / "again")))[-1]
    asked = request(None, NAMES)
    assert isinstance(look_up(lookup, asked).rows, StoredBag)
    for keyed in ("two columns", "NULLs"):
        held = request(KEYS[keyed], NAMES)
        assert isinstance(held.keys, ArrowKeys)
        result = look_up(lookup, held.with_keys(StoredKeys.of_held(spark, held.keys)))
        found = result.rows.matching(held.columns, held.keys) if result.has_all_rows else result.rows
        total: Counter[Row] = Counter()
        for row, count in rows_of(found):
            total[row] += count
        assert {row: n for row, n in total.items() if n} == place.history.found(tick, held), keyed


def test_a_source_that_is_asked_for_no_keys_is_not_asked() -> None:
    class Silent:
        """A snapshot that must not be read."""

        seen = None

        def probe(self, *_: object) -> pa.Table:
            raise AssertionError("it was asked")

    lookup = SourceLookup(reader=cast("Any", Silent()), relations={RELATION.name: RELATION})
    assert not len(look_up(lookup, request(KEYS["no keys"], NAMES)).rows)
