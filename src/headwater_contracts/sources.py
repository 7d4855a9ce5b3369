"""What every source keeps, whatever database is behind it. A source that passes this can be maintained from.

A test module of a source gives the contract a database and a way to write to it, and inherits the tests:

    class TestLakes(SourceContract):
        @pytest.fixture
        def database(self) -> Iterator[DatabaseUnderTest]:
            yield LakeUnderTest(...)

Every test gets a database of its own, or one that looks like it: without tables, without slots.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise

import pytest

from headwater.deltas.extent import WHOLE
from headwater.errors import SourceLost, SourceRefused, SourceUnavailable
from headwater.model.position import Positions, are_reached, by_log, read_positions, written_positions
from headwater.model.relation import RelationName
from headwater.sources.registry import connect
from headwater.sources.source import SourceSettings
from headwater_contracts.database import EXTREMES, ITEMS, NOTES, OTHER, SOURCE, Bag, Changes, DatabaseUnderTest, Table
from headwater_contracts.followed import (
    WAIT_SECONDS,
    FollowedSource,
    Probing,
    items,
    keys,
    removed,
    sum_up,
    transactions,
)


class SourceContract:
    """The contract. `database` is for the inheriting class to give."""

    @pytest.fixture
    def database(self) -> Iterator[DatabaseUnderTest]:
        """Yield a database without tables and slots."""
        raise NotImplementedError

    @pytest.fixture
    def at(self, database: DatabaseUnderTest) -> Iterator[FollowedSource]:
        """Yield the database with two tables, followed."""
        for table in (ITEMS, NOTES):
            database.create(table)
        followed = FollowedSource(database, (ITEMS, NOTES))
        yield followed
        followed.close()

    # What it says of itself

    def test_relations_are_described(self, database: DatabaseUnderTest) -> None:
        """Names, types and keys are those of the tables. Asking changes nothing."""
        for table in (ITEMS, NOTES):
            database.create(table)
        source = database.connect()
        assert source.name == SOURCE
        for _ in range(2):
            inspection = source.inspect([ITEMS.relation, NOTES.relation])
            assert not inspection.refusals
            for table, relation in zip((ITEMS, NOTES), inspection.relations, strict=True):
                assert relation.name == table.relation
                assert tuple((column.name, column.type) for column in relation.columns) == table.columns
                assert relation.key == (table.key if getattr(database, "enforces_keys", True) else ())
        assert not source.slots().present

    def test_a_relation_that_is_not_there_is_refused_by_name(self, database: DatabaseUnderTest) -> None:
        """The others are described all the same."""
        database.create(ITEMS)
        inspection = database.connect().inspect([NOTES.relation, ITEMS.relation])
        assert [relation.name for relation in inspection.relations] == [ITEMS.relation]
        [refusal] = inspection.refusals
        assert str(NOTES.relation) in refusal.summary

    def test_the_default_schema_is_not_named(self, database: DatabaseUnderTest) -> None:
        """The default schema has a name at the source. Relations in it are named without it."""
        database.create(ITEMS)
        source = database.connect()
        assert source.default_schema
        [relation] = source.inspect([RelationName(source=SOURCE, name=ITEMS.name)]).relations
        assert str(relation.name) == f"{SOURCE}.{ITEMS.name}"

    def test_an_index_hint_makes_the_index(self, at: FollowedSource) -> None:
        """Where a source knows of indexes, what it says the owner should run makes one that it then finds."""
        hint = at.source.index_hint(at.relation(NOTES), ["item"])
        if hint is not None:
            at.database.run(hint)
            [described] = at.database.connect().inspect([NOTES.relation]).relations
            assert ("item",) in described.indexes

    def test_sizes_are_measured(self, at: FollowedSource) -> None:
        """Every column that was asked for is there, and no time is below zero."""
        at.database.commit({"items": items(1, 2, 3)})
        measured = at.source.measure([at.relation(ITEMS)])
        assert set(measured.relations[ITEMS.relation].columns) == set(at.relation(ITEMS).column_names)
        assert min(measured.trip_seconds, measured.byte_seconds, measured.block_seconds) >= 0

    # The log

    def test_transactions_come_whole_and_in_the_order_of_their_positions(self, at: FollowedSource) -> None:
        """What each did is what it committed. A row that is changed goes and comes."""
        done: list[Changes] = [
            {"items": items(1, 2), "notes": {(1, "a"): 2, (None, None): 1}},
            {"items": {**removed(items(2)), (2, "renamed", None): 1}},
            {"notes": {(1, "a"): -1}, "items": removed(items(1))},
        ]
        for changes in done:
            at.database.commit(changes)
        captures = at.captures()
        told = list(transactions(captures))
        for log in {one.position.log_name for one in told}:
            own = [one for one in told if one.position.log_name == log]
            assert own == sorted(own, key=lambda one: one.position.offset)
            assert len({one.position.offset for one in own}) == len(own)
            assert len({one.identity for one in own}) == len(own)
        for table in (ITEMS, NOTES):
            expected = [Counter(changes[table.name]) for changes in done if table.name in changes]
            assert [bag for _, bag in at.bags(captures, table)] == expected

    def test_many_transactions_are_told_once_each(self, at: FollowedSource) -> None:
        """More than fit into one capture, as far as a source has captures of a limited size."""
        for number in range(1200):
            at.database.commit({"items": items(number)})
        captures = at.captures()
        assert [bag for _, bag in at.bags(captures, ITEMS)] == [Counter(items(number)) for number in range(1200)]

    def test_what_is_rolled_back_is_not_told(self, at: FollowedSource) -> None:
        """Neither is it seen, nor what is still open."""
        given_up = at.database.begin({"items": items(1)})
        still_open = at.database.begin({"items": items(2)})
        at.database.commit({"items": items(3)})
        given_up.roll_back()
        assert at.bag(at.captures(), ITEMS) == Counter(items(3))
        with at.snapshot() as snapshot:
            assert at.whole(snapshot, ITEMS) == Counter(items(3))
        still_open.commit()
        assert at.bag(at.captures(), ITEMS) == Counter(items(2))

    def test_a_transaction_belongs_where_it_is_committed(self, at: FollowedSource) -> None:
        """One that began first and committed last comes last."""
        first = at.database.begin({"items": items(1)})
        at.database.commit({"items": items(2)})
        first.commit()
        captures = at.captures()
        assert [bag for _, bag in at.bags(captures, ITEMS)] == [Counter(items(2)), Counter(items(1))]

    def test_other_tables_are_not_told_of(self, at: FollowedSource) -> None:
        """The log may go on because of them."""
        at.database.create(OTHER)
        at.database.commit({"other": {(1,): 1}})
        at.database.commit({"items": items(1), "other": {(2,): 1}})
        captures = at.captures()
        assert {name for capture in captures for name in capture.rows} <= {ITEMS.relation, NOTES.relation}
        assert at.bag(captures, ITEMS) == Counter(items(1))

    def test_a_table_that_is_emptied_as_a_whole_is_named(self, at: FollowedSource) -> None:
        """The log has the rows that come after a TRUNCATE, not those that it removes."""
        at.database.commit({"items": items(1, 2)})
        if not at.database.truncate("items"):
            pytest.skip("the database has no such statement")
        at.database.commit({"items": items(3)})
        captures = at.captures()
        emptied = [names for capture in captures for names in capture.truncated.values()]
        assert emptied == [(ITEMS.relation,)]
        assert at.bag(captures, ITEMS) == Counter(items(1, 2, 3))

    # Going on

    def test_nothing_is_lost_and_nothing_comes_twice_from_any_position(self, at: FollowedSource) -> None:
        """After a crash the log goes on after whatever the change log held, acknowledged or not."""
        for number in range(6):
            at.database.commit({"items": items(number)})
        told = [one for one, _ in at.bags(at.captures(), ITEMS)]
        for count in range(7):
            rest = Counter(items(*range(count, 6)))
            held = as_stored(at.after(told[:count]))
            at.reconnect(held)
            assert at.bag(at.captures(), ITEMS) == rest, "held and not acknowledged"
            at.acknowledge(held)
            at.reconnect(held)
            assert at.bag(at.captures(), ITEMS) == rest, "held and acknowledged"
            at.close()
            if at.source.abilities.holds_log:
                assert are_reached(at.source.slots().present[at.slot].forgotten_to, held)

    def test_what_is_not_acknowledged_is_told_again(self, at: FollowedSource) -> None:
        """A follower that names no position begins where the source has not forgotten."""
        at.database.commit({"items": items(1)})
        at.database.commit({"items": items(2)})
        assert at.bag(at.captures(), ITEMS) == Counter(items(1, 2))
        at.reconnect({})
        assert at.bag(at.captures(), ITEMS) == Counter(items(1, 2))

    def test_a_source_that_has_forgotten_more_than_is_held_is_lost(self, at: FollowedSource) -> None:
        """Another warehouse acknowledged it."""
        if not at.source.abilities.holds_log:
            pytest.skip("the source forgets by a clock of its own")
        at.database.commit({"items": items(1)})
        at.captures()
        at.acknowledge(at.follower.followed_to())
        at.captures()
        at.close()
        with pytest.raises(SourceLost) as lost:
            at.reconnect(at.start)
        assert lost.value.code == "HW-314"

    def test_peeking_moves_nothing(self, at: FollowedSource) -> None:
        """A peek returns everything after a position, as often as it is made. A follower gets the same afterwards."""
        at.close()
        assert at.peek(at.start) == Counter()
        for number in range(700):
            at.database.commit({"items": items(number)})
        for _ in range(2):
            assert at.peek(at.start) == Counter(items(*range(700)))
        at.reconnect(at.start)
        captures = at.captures()
        assert at.bag(captures, ITEMS) == Counter(items(*range(700)))
        told = [one for one, _ in at.bags(captures, ITEMS)]
        at.close()
        assert at.peek(at.after(told[:100])) == Counter(items(*range(100, 700)))

    def test_two_slots_know_nothing_of_each_other(self, at: FollowedSource) -> None:
        """What one warehouse lets the source forget, another still gets."""
        second = FollowedSource(at.database, (ITEMS, NOTES))
        at.database.commit({"items": items(1)})
        at.captures()
        at.acknowledge(at.follower.followed_to())
        at.captures()
        at.close()
        assert at.slot != second.slot
        assert second.bag(second.captures(), ITEMS) == Counter(items(1))
        second.close()

    def test_preparing_again_changes_nothing(self, at: FollowedSource) -> None:
        """A maintainer that died after it may do it again, and relations may be added."""
        at.database.commit({"items": items(1)})
        at.close()
        at.database.create(OTHER)
        names = [ITEMS.relation, NOTES.relation, OTHER.relation]
        for is_new in (True, False):
            again = at.database.connect().prepare(names, at.slot, is_new=is_new)
            if at.source.abilities.holds_log:
                assert {log: again[log] for log in at.start} == at.start
        at.reconnect(at.start)
        assert at.bag(at.captures(), ITEMS) == Counter(items(1))

    def test_what_is_torn_down_is_gone_and_the_rest_is_left(self, at: FollowedSource) -> None:
        """A slot that is gone is lost for good, and is not made again by following."""
        if not at.source.abilities.holds_log:
            assert not at.source.slots().present
            assert not at.source.teardown(at.slot, at.start).dropped
            return
        second = FollowedSource(at.database, (ITEMS, NOTES))
        at.close()
        done = at.source.teardown(at.slot, at.start)
        assert any(at.slot in what for what in done.dropped)
        assert [slot.name for slot in done.left] == [second.slot] == list(at.source.slots().present)
        assert second.slot in done.left[0].what
        assert not at.source.teardown(at.slot, at.start).dropped
        for lost in (
            lambda: at.source.prepare([ITEMS.relation], at.slot, is_new=False),
            lambda: at.reconnect(at.start),
            lambda: at.peek(at.start),
        ):
            with pytest.raises(SourceLost) as gone:
                lost()
            assert gone.value.code == "HW-313"
        at.database.commit({"items": items(1)})
        assert second.bag(second.captures(), ITEMS) == Counter(items(1))
        second.close()
        assert second.source.teardown(second.slot, second.start).left == ()

    # Positions

    def test_positions_are_ordered_written_and_read(self, at: FollowedSource) -> None:
        """Their texts and their stored forms mean the same position."""
        positions = [at.start]
        for number in range(5):
            at.database.commit({"items": items(number)})
            positions += [by_log([one.position]) for one in transactions(at.captures())]
        positions += [at.shown(), at.follower.log_end(), at.follower.followed_to()]
        for one in (one for each in positions for one in each.values()):
            assert one.source == SOURCE
            assert one.history == at.start[one.log_name].history
            assert one.notation.parse(one.text) == one.offset
            assert 0 <= one.offset < 1 << 63
            again = as_stored(by_log([one]))[one.log_name]
            assert (again, again.proof) == (one, one.proof)
        assert are_reached(at.start, positions[-1])
        assert not are_reached(positions[-1], at.start)
        [log] = {log for each in positions[1:6] for log in each}
        assert all(earlier[log] < later[log] for earlier, later in pairwise(positions[1:6]))
        assert all(each.keys() == at.start.keys() for each in positions[6:]), "one for each log"

    def test_how_far_behind(self, at: FollowedSource) -> None:
        """Nothing lies between a position and itself, and the more was committed, the more lies between."""
        at.database.commit({"items": items(1)})
        at.captures()
        middle = at.follower.followed_to()
        at.database.commit({"items": items(2)})
        [log] = {one.position.log_name for one, _ in at.bags(at.captures(), ITEMS)}
        end = at.follower.followed_to()
        nothing, half, all_of_it = (
            at.source.distance(a[log], b[log]) for a, b in ((end, end), (middle, end), (at.start, end))
        )
        assert nothing.amount == 0 < half.amount < all_of_it.amount
        assert nothing.unit == half.unit == all_of_it.unit != ""
        assert are_reached(end, at.follower.log_end())
        begin = at.follower.log_begin()
        assert begin.keys() == (set() if at.source.abilities.holds_log else end.keys())
        assert are_reached(begin, end)

    # What must not be overlooked

    def test_a_table_that_is_altered_is_told_or_refused(self, at: FollowedSource) -> None:
        """What was committed before comes first, and no row that came after it is taken for one of before."""
        at.database.commit({"items": items(1)})
        before = at.captures()
        assert at.bag(before, ITEMS) == Counter(items(1))
        with at.snapshot() as snapshot:
            if not at.database.alter("items"):
                pytest.skip("it is always told")
            try:
                captures = at.captures()
            except SourceRefused as refused:
                named = [one for one in (ITEMS.relation, NOTES.relation) if f'"{one}"' in refused.summary]
            else:
                named = [name for capture in captures for each in capture.altered.values() for name in each]
                assert at.source.abilities.shares_snapshots or not snapshot.is_valid(at), "readers may have read others"
            assert named == [ITEMS.relation]

    def test_another_log_under_the_same_address_is_noticed(self, at: FollowedSource) -> None:
        """Nothing of it is taken for what comes next."""
        at.database.commit({"items": items(1)})
        at.captures()
        held = as_stored(at.follower.followed_to())
        at.close()
        if not at.database.replace_log():
            pytest.skip("that is too hard to play")
        with pytest.raises(SourceLost):
            at.reconnect(held)

    # Snapshots

    def test_a_snapshot_stays_as_it_is(self, at: FollowedSource) -> None:
        """Whatever is committed meanwhile, and in however many threads it is read."""
        if not at.source.abilities.shares_snapshots:
            pytest.skip("each reader sees another moment")
        at.database.commit({"items": items(*range(50)), "notes": {(1, "a"): 3}})
        with at.snapshot() as snapshot:
            before = at.whole(snapshot, ITEMS)
            at.database.commit({"items": {**removed(items(1)), **items(100)}, "notes": {(1, "a"): -3}})
            found: list[Bag] = []
            readers = [threading.Thread(target=lambda: found.append(at.whole(snapshot, ITEMS))) for _ in range(3)]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join(WAIT_SECONDS)
            assert found == [before] * 3 == [Counter(items(*range(50)))] * 3
            assert at.whole(snapshot, NOTES) == Counter({(1, "a"): 3})
            assert snapshot.is_valid(at)

    def test_another_process_joins_a_snapshot(self, at: FollowedSource) -> None:
        """It shows there what it shows here, whatever was committed meanwhile, as long as it is open here."""
        if not at.source.abilities.exports_snapshots:
            pytest.skip("its snapshots are for one process")
        assert at.source.abilities.shares_snapshots
        at.database.commit({"items": items(*range(50)), "notes": {(1, "a"): 3}})
        other = at.database.connect()
        with at.snapshot() as snapshot, snapshot.reader() as own:
            exported = json.loads(json.dumps(snapshot.exported()))
            at.database.commit({"items": {**removed(items(1)), **items(100)}, "notes": {(1, "a"): -3}})
            for _ in range(2):
                with other.join(exported) as joined:
                    assert (joined.seen, joined.positions) == (own.seen, own.positions)
                    plan = snapshot.chunks(at.relation(ITEMS), 20)
                    assert at.read(joined, ITEMS, plan) == Counter(items(*range(50)))
                    assert at.read(joined, NOTES) == Counter({(1, "a"): 3})
                    assert Probing(joined, at.relation(ITEMS))(("id",), [(1,), (100,)]) == items(1)
            assert at.whole(snapshot, ITEMS) == Counter(items(*range(50)))
        with pytest.raises(SourceUnavailable), other.join(exported):
            pass

    def test_another_process_connects_by_the_login(self, at: FollowedSource) -> None:
        """The kind of source is found by the URL, and it is the same database."""
        at.database.commit({"items": items(1)})
        other = connect(SourceSettings(name=SOURCE, url=at.source.login, project="another"))
        with other.snapshot([ITEMS.relation]) as snapshot:
            assert at.whole(snapshot, ITEMS) == Counter(items(1))

    def test_readers_that_do_not_share_a_snapshot_see_ever_more(self, at: FollowedSource) -> None:
        """Each stays as it is, and says what it saw."""
        if at.source.abilities.shares_snapshots:
            pytest.skip("they share it")
        with at.snapshot() as snapshot, snapshot.reader() as first:
            at.database.commit({"items": items(1)})
            with snapshot.reader() as second:
                assert are_reached(first.positions, second.positions)
                assert at.read(first, ITEMS) == Counter()
                assert at.read(second, ITEMS) == Counter(items(1))
                [(one, _)] = at.bags(at.captures(), ITEMS)
                assert second.seen.sees(one.identity, one.position.log)
                assert not first.seen.sees(one.identity, one.position.log)
            assert snapshot.is_valid(at)

    def test_a_snapshot_of_the_past(self, at: FollowedSource) -> None:
        """It shows what was committed up to its positions, and nothing else."""
        if not at.source.abilities.reads_as_of:
            pytest.skip("it shows the present only")
        for number in range(5):
            at.database.commit({"items": items(number), "notes": {(number, "a"): 1}})
        told = list(transactions(at.captures()))
        for count in range(len(told) + 1):
            upto = as_stored(at.after(told[:count]))
            with at.snapshot(at=upto) as snapshot, snapshot.reader() as reader:
                assert reader.positions == upto
                assert [reader.seen.sees(one.identity, one.position.log) for one in told] == [
                    number < count for number in range(len(told))
                ]
                for table in (ITEMS, NOTES):
                    own = (bag for one, bag in at.bags(at.told, table) if one in told[:count])
                    assert at.read(reader, table) == sum_up(own)

    def test_what_a_snapshot_saw_is_what_the_log_tells_of_it(self, at: FollowedSource) -> None:
        """Under concurrent commits: its rows are those of the transactions it says it saw, all before its position."""
        stop, number = threading.Event(), iter(range(1_000_000))

        def write() -> None:
            while not stop.is_set():
                at.database.commit({"items": items(next(number)), "notes": {(7, "x"): 1}})
                time.sleep(0.001)

        def open_for_long() -> None:
            while not stop.is_set():
                transaction = at.database.begin({"items": items(next(number))})
                time.sleep(0.01)
                transaction.commit()

        writers = [threading.Thread(target=write), threading.Thread(target=open_for_long)]
        for writer in writers:
            writer.start()
        shown = []
        try:
            for place in range(12):
                with at.snapshot(bootstrap=place == 6) as snapshot, snapshot.reader() as reader:
                    read = at.read(reader, ITEMS), at.read(reader, NOTES)
                    seen = at.source.read_seen(json.loads(json.dumps(reader.seen.written())))
                    assert seen == reader.seen
                    assert hash(seen) == hash(reader.seen)
                    shown.append((*read, seen, reader.positions))
                time.sleep(0.02)
        finally:
            stop.set()
            for writer in writers:
                writer.join(WAIT_SECONDS)
        captures = at.captures()
        for rows, notes, seen, positions in shown:
            for table, held in ((ITEMS, rows), (NOTES, notes)):
                told = at.bags(captures, table)
                visible = [(one, bag) for one, bag in told if seen.sees(one.identity, one.position.log)]
                assert held == sum_up(bag for _, bag in visible)
                assert all(one.position <= positions[one.position.log_name] for one, _ in visible)

    def test_the_log_can_be_followed_to_what_was_seen(self, at: FollowedSource) -> None:
        """Also when nothing is committed afterwards that would move it there."""
        at.database.commit({"items": items(1)})
        for _ in range(3):
            with at.snapshot() as snapshot, snapshot.reader() as reader:
                at.captures(reader.positions)
                assert are_reached(reader.positions, at.follower.followed_to())

    def test_probes_find_the_rows_of_their_keys(self, at: FollowedSource) -> None:
        """A probe returns every copy of a row. Rows with NULL in their columns are never found."""
        notes = {(1, "a"): 2, (1, "b"): 1, (2, "a"): 1, (None, "a"): 3, (3, None): 1, (None, None): 1, (4, ""): 1}
        at.database.commit({"notes": notes, "items": items(1, 2)})
        with at.snapshot() as snapshot, snapshot.reader() as reader:
            probe = Probing(reader, at.relation(NOTES))
            assert probe(("item",), [(1,), (3,), (99,)]) == {(1, "a"): 2, (1, "b"): 1, (3, None): 1}
            assert probe(("note",), [("a",), ("",)]) == {(1, "a"): 2, (2, "a"): 1, (None, "a"): 3, (4, ""): 1}
            assert probe(("note", "item"), [("a", 1), ("b", 2), ("", 4)]) == {(1, "a"): 2, (4, ""): 1}
            assert probe(("item",), []) == {}
            assert probe((), []) == notes
            assert probe(("item",), [(number,) for number in range(3_000)]) == {
                row: count for row, count in notes.items() if row[0] is not None
            }
            items_found = reader.probe(
                at.relation(ITEMS), ("price", "id"), ("id",), keys(at.relation(ITEMS), ("id",), [(2,)])
            )
            assert items_found.column_names == ["price", "id"]
            assert items_found.to_pylist() == [{"price": Decimal("2.00"), "id": 2}]
            assert snapshot.is_valid(at)

    def test_texts_are_found_exactly(self, at: FollowedSource) -> None:
        """Neither case nor blanks at the end nor accents are overlooked."""
        texts = ["abc", "ABC", "abc ", "äbc", "a", "ss", "ß", ""]
        at.database.commit({"notes": dict.fromkeys(enumerate(texts), 1)})
        with at.snapshot() as snapshot, snapshot.reader() as reader:
            probe = Probing(reader, at.relation(NOTES))
            for number, text in enumerate(texts):
                assert probe(("note",), [(text,)]) == {(number, text): 1}

    def test_chunks_hold_every_row_once(self, at: FollowedSource) -> None:
        """Also those of another snapshot: they are ranges of keys, and mean the same rows in both."""
        at.database.commit({"items": items(*range(0, 200, 2)), "notes": {(1, "a"): 40, (None, None): 3}})
        with at.snapshot() as first:
            plan = first.chunks(at.relation(ITEMS), 30)
            assert sorted(chunk.number for chunk in plan) == list(range(len(plan)))
            assert at.whole(first, ITEMS, 30) == Counter(items(*range(0, 200, 2)))
            assert at.whole(first, NOTES, 30) == Counter({(1, "a"): 40, (None, None): 3})
            with first.reader() as reader:
                some = reader.read(at.relation(ITEMS), ("price", "id"), plan[0], WHOLE)
                assert {tuple(table.column_names) for table in some} <= {("price", "id")}
        at.database.commit({"items": items(-5, 51, 999)})
        with at.snapshot() as second, second.reader() as reader:
            assert second.token
            if plan[0].column is not None:
                read = [t for chunk in plan for t in reader.read(at.relation(ITEMS), ("id",), chunk, WHOLE)]
                found = sorted(row["id"] for table in read for row in table.to_pylist())
                assert found == sorted([*range(0, 200, 2), -5, 51, 999])

    def test_values_at_the_ends_of_types(self, database: DatabaseUnderTest) -> None:
        """They are the same in the log, in a snapshot, and as keys of probes."""
        types = [name for name in EXTREMES if name in database.types]
        assert "bigint" in types
        assert "string" in types
        table = Table(
            name="extremes",
            columns=(("id", "bigint"), *((f"c{place}", name) for place, name in enumerate(types))),
            key=("id",),
        )
        database.create(table)
        at = FollowedSource(database, (table,))
        longest = max(len(EXTREMES[name]) for name in types)
        rows = [(n, *(EXTREMES[name][n % len(EXTREMES[name])] for name in types)) for n in range(longest)]
        rows.append((longest, *(None for _ in types)))
        database.commit({"extremes": dict.fromkeys(rows, 1)})
        try:
            assert at.bag(at.captures(), table) == Counter(rows)
            with at.snapshot() as snapshot, snapshot.reader() as reader:
                assert at.whole(snapshot, table) == Counter(rows)
                probe = Probing(reader, at.relation(table))
                for place, name in enumerate(types, 1):
                    for value in EXTREMES[name]:
                        expected = {row: 1 for row in rows if row[place] == value}
                        assert probe((f"c{place - 1}",), [(value,)]) == expected, f"{name} {value!r}"
        finally:
            at.close()


def as_stored(positions: Positions) -> Positions:
    """Return positions as another process reads them in the mark of a change log."""
    return read_positions(json.loads(json.dumps(written_positions(positions))))
