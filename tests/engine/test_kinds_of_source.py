"""Sources that can do less than a server, or more: the engine adapts, and every state stays exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from scripted_world import ONCE, SALES, SOLD, TOTALS, FailPoints, ScriptedWorld, bag_of, wait_until
from test_stopped import stopped

from headwater.engine.service.live_status import read_sources
from headwater.engine.service.tear_down import tear_down
from headwater.engine.service.wait_until_followed import wait_until_followed
from headwater.errors import HeadwaterError, InvalidProject, NotReadable, SourceLost, SourceRefused
from headwater.model.moment import parse_moment
from headwater.model.position import Position, Tick
from headwater.observe.events import SourceGone, SourceWarning
from headwater.project.file import load
from headwater.project.plan import Consent
from headwater.project.resolve import resolve_project
from headwater.sources.scripted import ScriptedDatabase
from headwater.sources.scripted.database import SERVER
from headwater.sources.scripted.source import ScriptedReader, ScriptedSnapshot
from headwater.sources.source import Abilities, shown_positions

PROBE = '[defaults]\nreading = "probe"\n'
BINARY_LOG = replace(SERVER, shares_snapshots=False, holds_log=False)
POLLED = replace(SERVER, holds_log=False, tells_every_transaction=False)
CHUNKS = "[settings.bootstrap]\nchunk_rows = 2\nreaders = 1\n"
KEPT = {"sold": SOLD, "totals": TOTALS}


def play(world: ScriptedWorld, abilities: Abilities) -> ScriptedWorld:
    """Let the databases of a world be of another kind."""
    world.shop.abilities = world.stock.abilities = abilities
    return world


@contextmanager
def busy(monkeypatch: pytest.MonkeyPatch, world: ScriptedWorld, count: int) -> Iterator[None]:
    """Commit before each of the next readers sees anything: no two see the same, if they share no snapshot."""
    left = iter(range(count))
    numbers = iter(range(1000, 2000))
    seen = ScriptedDatabase.seen

    def see(database: ScriptedDatabase, *names: object, everything: bool = False) -> object:
        if next(left, None) is not None:
            world.sell(next(numbers))
            world.price(1, next(numbers))
        return seen(database, *names, everything=everything)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(ScriptedDatabase, "seen", see)
        yield


@pytest.mark.parametrize("reading", ["", PROBE], ids=["replica", "probe"])
@pytest.mark.parametrize("abilities", [BINARY_LOG, replace(SERVER, reads_as_of=True)], ids=["binary log", "as of"])
def test_other_abilities(
    fresh: ScriptedWorld, points: FailPoints, monkeypatch: pytest.MonkeyPatch, abilities: Abilities, reading: str
) -> None:
    play(fresh, abilities).write_project({"sold": SOLD}, reading + ONCE)
    with busy(monkeypatch, fresh, 4):
        fresh.run()
    fresh.sell(*range(10, 20))
    with busy(monkeypatch, fresh, 12):
        fresh.run()
    fresh.price(2, 22)
    stopped(fresh, points, "after log append")
    fresh.sell(20)
    with busy(monkeypatch, fresh, 4):
        fresh.run()
    fresh.assert_exact("sold")


@pytest.mark.parametrize("sql", [SOLD, SOLD.replace("s.id, ", "")], ids=["with the key", "without"])
def test_chunks_that_each_saw_something_else(fresh: ScriptedWorld, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    """With the key in each row, what a chunk saw is corrected in that chunk; without, all are read at one moment."""
    play(fresh, BINARY_LOG).write_project({"sold": sql}, CHUNKS + ONCE)
    with busy(monkeypatch, fresh, 20):
        fresh.run()
    fresh.sell(10)
    fresh.run()
    shown = fresh.warehouse.few_rows("sold", fresh.warehouse.frontier("sold"), ["store", "price"])
    prices = dict(fresh.rows("stock").keys())
    expected = Counter((store, prices[product]) for _, product, store in fresh.rows("shop").elements())
    assert {row: count for row, count in bag_of(shown).items() if count} == expected
    if sql == SOLD:
        fresh.assert_exact("sold")


@pytest.mark.parametrize("abilities", [SERVER, BINARY_LOG], ids=["server", "binary log"])
def test_a_bootstrap_goes_on_from_the_chunks_that_it_has(
    fresh: ScriptedWorld, points: FailPoints, monkeypatch: pytest.MonkeyPatch, abilities: Abilities
) -> None:
    play(fresh, abilities).write_project({"sold": SOLD}, CHUNKS + ONCE)
    stopped(fresh, points, "chunk staged", skipped=3)
    fresh.sell(*range(10, 13))
    fresh.price(1, 11)
    read = 0
    whole = ScriptedReader.read

    def counted(reader: ScriptedReader, *asked: object) -> Iterator[object]:
        nonlocal read
        read += 1
        return whole(reader, *asked)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(ScriptedReader, "read", counted)
        fresh.run()
    assert read == 6 - 4, "two chunks of products and four of sales, four of them there already"
    fresh.assert_exact("sold")


# Several logs


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> ScriptedWorld:
    world = ScriptedWorld.lake(spark, tmp_path / "lake")
    for product in range(4):
        world.price(product, 10 * product)
    world.sell(*range(1, 10))
    return world


@pytest.mark.parametrize("reading", ["", PROBE], ids=["replica", "probe"])
def test_a_log_for_each_table(lake: ScriptedWorld, points: FailPoints, reading: str) -> None:
    lake.write_project(KEPT, reading)
    lake.run()
    lake.sell(*range(10, 13))
    lake.price(1, 11)
    lake.sell(13)
    lake.run()
    assert lake.assert_exact("sold", "totals") == 5
    lake.price(2, 22)
    lake.sell(14)
    stopped(lake, points, "after log append")
    lake.price(2, 23)
    lake.run()
    assert lake.assert_exact("sold", "totals") == 8
    shown = read_sources(load(lake.folder), lake.warehouse)[0]
    assert sorted(map(str, shown.positions)) == ["lake.products:7", "lake.sales:14"]
    assert str(shown.last_transaction) == "lake.products:7"


def test_a_published_algorithm_asks_a_source_of_several_logs(lake: ScriptedWorld) -> None:
    """A log of which the view reads nothing goes on meanwhile: its transactions hold up no answer."""
    lake.write_project(
        {"sold": SOLD, "stores": "SELECT store, COUNT(*) AS n FROM shop.sales GROUP BY store"},
        f'{PROBE}[views.sold]\nalgorithm = "sweep"\ncompare_at_birth = false\n',
    )
    lake.run()
    for number in range(10, 16):
        lake.sell(number)
        lake.price(number % 4, number)
    lake.run()
    assert lake.assert_exact("sold") == 12


def test_a_position_is_asked_for_by_its_log(lake: ScriptedWorld) -> None:
    lake.write_project({"sold": SOLD}, ONCE)
    lake.run()
    lake.sell(*range(10, 13))
    lake.run()
    asked = [lake.warehouse.resolve_at("sold", parse_moment(f"lake.sales:{number}")) for number in (9, 10, 12)]
    assert asked == [0, 1, 3]
    with pytest.raises(NotReadable, match="not come to lake:9") as refused:
        lake.warehouse.resolve_at("sold", parse_moment("lake:9"))
    assert "lake.products, lake.sales" in refused.value.detail


def test_a_new_view_brings_its_log_along(lake: ScriptedWorld) -> None:
    lake.write_project({"stores": "SELECT store, COUNT(*) AS n FROM shop.sales GROUP BY store"})
    lake.run()
    lake.sell(10)
    lake.price(1, 11)
    lake.run()
    assert set(lake.warehouse.log.positions()) == {"lake.sales"}
    lake.write_project({"sold": SOLD}, ONCE)
    lake.run(Consent(is_given=True))
    assert set(lake.warehouse.log.positions()) == {"lake.sales", "lake.products"}
    lake.price(1, 12)
    lake.sell(11)
    lake.run()
    lake.assert_exact("sold")


def test_one_log_of_several_is_lost(lake: ScriptedWorld) -> None:
    lake.write_project({"sold": SOLD}, ONCE)
    lake.run()
    lake.sell(10, 11)
    lake.shop.delete_log(10, "sales")
    with pytest.raises(SourceLost, match="thrown away log") as lost:
        lake.run()
    assert lost.value.code == "HW-311"
    lake.shop.delete_log(9, "sales")
    lake.run()
    assert lake.assert_exact("sold") == 2


# A log that nobody holds


@pytest.mark.parametrize("kept", [10, 3], ids=["as long", "shorter"])
def test_a_log_that_is_not_the_one_that_was_followed(fresh: ScriptedWorld, kept: int) -> None:
    """It has the same history, and perhaps as many transactions: only the proof tells."""
    play(fresh, BINARY_LOG).run()
    fresh.sell(10)
    fresh.run()
    *same, last = fresh.shop.transactions[:kept]
    fresh.shop.begin_again([*same, replace(last, gid="another")])
    fresh.sell(11)
    with pytest.raises(SourceLost, match="not the one that was followed") as lost:
        fresh.run()
    assert lost.value.code == "HW-315"
    assert fresh.warehouse.log.last_tick == 1, "nothing of it was taken"
    again(fresh)


def again(world: ScriptedWorld) -> None:
    """Read the first source again, as the message of its loss says."""
    tear_down(load(world.folder), ["shop"])
    world.run(Consent(is_given=True))
    world.sell(500)
    world.run()
    warehouse = world.warehouse
    assert warehouse.row_count("sold", warehouse.frontier("sold")) == world.rows("shop").total()


# A relation that was altered


@pytest.mark.parametrize("abilities", [SERVER, BINARY_LOG], ids=["server", "binary log"])
def test_a_relation_that_was_altered_stops_its_source_before_that(fresh: ScriptedWorld, abilities: Abilities) -> None:
    play(fresh, abilities).run()
    with fresh.running() as maintainer:
        fresh.sell(10)
        fresh.shop.commit({}, altered={SALES: 'column "store" was dropped'})
        fresh.sell(11)
        wait_until(lambda: any(isinstance(event, SourceGone) for event in fresh.events))
        [gone] = [event for event in fresh.events if isinstance(event, SourceGone)]
        assert gone.error.code == "HW-341"
        assert 'column "store" was dropped (at shop:11)' in gone.error.detail
        fresh.price(1, 11)
        wait_until(lambda: maintainer.frontier() == 2)
    told = fresh.warehouse.log.transactions(None, Tick(0), Tick(2))
    assert sorted(str(one.position) for _, one in told) == ["shop:10", "stock:5"]
    with pytest.raises(SourceRefused, match="was altered"):
        fresh.run()
    resolved = resolve_project(load(fresh.folder), fresh.spark)
    now = shown_positions(resolved.sources["shop"], [SALES])
    with pytest.raises(SourceRefused, match="was altered"):
        wait_until_followed(resolved, fresh.warehouse, now)
    again(fresh)


def test_answers_that_may_have_read_through_an_alteration_do_not_count(
    fresh: ScriptedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(fresh, BINARY_LOG).write_project({"sold": SOLD}, PROBE + ONCE)
    fresh.run()
    fresh.sell(10)
    probe = ScriptedReader.probe

    def altering(reader: ScriptedReader, *asked: object) -> object:
        found = probe(reader, *asked)  # type: ignore[arg-type]
        fresh.stock.commit({}, altered={fresh.products: "its rows were moved"})
        return found

    monkeypatch.setattr(ScriptedReader, "probe", altering)
    monkeypatch.setattr("headwater.sources.scripted.source._FOLLOW_SECONDS", 0.5)
    with pytest.raises(HeadwaterError, match="was altered"):
        fresh.run()
    assert fresh.warehouse.frontier("sold") == 0, "what was read is not used"


# A source that is looked at now and then


def test_a_polled_source_is_exact_at_every_poll(fresh: ScriptedWorld) -> None:
    play(fresh, POLLED)
    fresh.shop.poll()
    fresh.stock.poll()
    fresh.run()
    fresh.sell(*range(10, 14))
    fresh.shop.poll()
    fresh.sell(14)  # nobody has seen it
    fresh.run()
    log = fresh.warehouse.log
    assert [str(one.position) for _, one in log.transactions(None, Tick(0), log.last_tick)] == ["shop:13"]
    assert fresh.warehouse.row_count("sold", Tick(1)) == fresh.rows("shop", 13).total()
    fresh.price(1, 11)
    fresh.price(1, 12)
    fresh.stock.poll()
    fresh.shop.poll()
    fresh.run()
    warehouse = fresh.warehouse
    assert warehouse.log.last_tick == 3, "two prices came between two polls"
    assert warehouse.row_count("sold", Tick(3)) == fresh.rows("shop").total()
    resolved = resolve_project(load(fresh.folder), fresh.spark)
    assert sum("does not tell every transaction" in warning for warning in resolved.warnings) == 2


def test_a_polled_source_is_not_probed(fresh: ScriptedWorld) -> None:
    play(fresh, POLLED).write_project({"sold": SOLD}, PROBE)
    with pytest.raises(InvalidProject, match=r"cannot probe shop\.sales") as refused:
        fresh.start()
    assert refused.value.code == "HW-350"


def test_a_snapshot_of_the_past_waits_for_nobody(fresh: ScriptedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read as of where the change log stands has been followed already."""
    play(fresh, replace(SERVER, reads_as_of=True)).write_project({"sold": SOLD}, PROBE + ONCE)
    fresh.run()
    asked: list[dict[str, Position] | None] = []
    lend = ScriptedSnapshot.reader

    @contextmanager
    def lending(snapshot: ScriptedSnapshot) -> Iterator[ScriptedReader]:
        with lend(snapshot) as reader:
            asked.append(dict(reader.positions) if snapshot.is_past else None)
            yield reader

    monkeypatch.setattr(ScriptedSnapshot, "reader", lending)
    fresh.sell(10)
    fresh.run()
    assert any(asked), "the batch has read the past"
    assert fresh.assert_exact("sold") == 1


def test_tasks_that_are_kept_out_leave_the_chunks_to_this_process(fresh: ScriptedWorld) -> None:
    """A task finds no scripted database in its own process: all is read here, and a warning says why."""
    chunks = "[settings.bootstrap]\nchunk_rows = 2\n"
    play(fresh, replace(SERVER, exports_snapshots=True)).write_project({"sold": SOLD}, chunks + ONCE)
    fresh.run()
    warnings = {event.source: event.sentence for event in fresh.events if isinstance(event, SourceWarning)}
    assert set(warnings) == {"shop", "stock"}
    assert all("tasks of Spark cannot read it, so this process does" in sentence for sentence in warnings.values())
    assert all("HW-349" in sentence for sentence in warnings.values())
    assert fresh.assert_exact("sold") == 0
    fresh.sell(10)
    fresh.run()
    assert fresh.assert_exact("sold") == 1
