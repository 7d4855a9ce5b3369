"""A source that is followed, and rows as the contract of sources compares them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from headwater.deltas.extent import WHOLE
from headwater.model.position import Positions, are_reached, by_log
from headwater.model.relation import COUNT, Relation
from headwater.model.transaction import ORDINAL, Capture, Transaction
from headwater.sources.source import Chunk, Follower, Reader, Snapshot, shown_positions
from headwater_contracts.database import ITEMS, SOURCE, Bag, DatabaseUnderTest, Row, Table

WAIT_SECONDS = 60.0


class FollowedSource:
    """A source that is followed by a slot of its own, and what the contract's tests do with it."""

    def __init__(self, database: DatabaseUnderTest, tables: Sequence[Table]) -> None:
        """Make a slot, and begin to follow."""
        self.database = database
        self.source = database.connect()
        names = [table.relation for table in tables]
        inspection = self.source.inspect(names)
        inspection.require_rights(SOURCE)
        self._relations = {relation.name: relation for relation in inspection.relations}
        self.slot = self.source.new_slot()
        self.start = self.source.prepare(names, self.slot, is_new=True)
        self._follower: Follower | None = None
        self.told: list[Capture] = []
        """All captures since the beginning."""
        self.reconnect(self.start)

    @property
    def follower(self) -> Follower:
        """The connection to the log."""
        assert self._follower is not None, "it was closed"
        return self._follower

    def relation(self, table: Table) -> Relation:
        """Return a table as the source describes it."""
        return self._relations[table.relation]

    def close(self) -> None:
        """End the connection to the log."""
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def reconnect(self, held_to: Positions) -> None:
        """Follow as another process does whose change log holds everything up to positions."""
        self.close()
        self.source = self.database.connect()
        self._follower = self.source.follow(tuple(self._relations.values()), self.slot, held_to)

    def snapshot(self, *, bootstrap: bool = False, at: Positions | None = None) -> Snapshot:
        """Open a snapshot of the tables."""
        return self.source.snapshot(tuple(self._relations), bootstrap=bootstrap, at=at)

    def shown(self) -> Positions:
        """Return up to where everything is shown now."""
        return shown_positions(self.source, tuple(self._relations))

    def captures(self, upto: Positions | None = None) -> list[Capture]:
        """Return the transactions of the logs up to positions. Without any, up to where a snapshot of now stands."""
        found = list(self._more(self.shown() if upto is None else upto))
        self.told += found
        return found

    def _more(self, upto: Positions) -> Iterator[Capture]:
        deadline = time.monotonic() + WAIT_SECONDS
        for position in upto.values():
            self.follower.hasten(position)
        while not are_reached(upto, self.follower.followed_to()):
            assert time.monotonic() < deadline, f"the log was not followed to {upto}"
            capture = self.follower.next_capture(1.0)
            if capture is not None:
                yield capture

    # What a snapshot asks of the change log (`headwater.sources.source.LogView`)

    def wait_for(self, positions: Positions, timeout_seconds: float) -> bool:
        """Follow to positions. Tell whether that was possible without an alteration on the way."""
        del timeout_seconds
        self.captures(positions)
        return not any(capture.altered for capture in self.told)

    def held(self, source: str) -> Positions:
        """Return how far the logs were followed."""
        del source
        return self.follower.followed_to()

    def acknowledge(self, positions: Positions) -> None:
        """Let the source forget its logs up to positions."""
        for position in positions.values():
            self.follower.acknowledge(position)

    def after(self, transactions: Iterable[Transaction]) -> Positions:
        """Return what a change log holds that began with this source and has taken in these transactions."""
        return {**self.start, **by_log(one.position for one in transactions)}

    def peek(self, held_to: Positions) -> Bag:
        """Return what a source tells of the items without forgetting it."""
        capture = self.source.peek(tuple(self._relations.values()), self.slot, held_to)
        return self.bag([] if capture is None else [capture], ITEMS)

    def bag(self, captures: Iterable[Capture], table: Table) -> Bag:
        """Return the net change of a table in captures."""
        return sum_up(bag for _, bag in self.bags(captures, table))

    def bags(self, captures: Iterable[Capture], table: Table) -> list[tuple[Transaction, Bag]]:
        """Return the transactions of captures in order, each with its net change of a table, if it has any."""
        found: list[tuple[Transaction, Bag]] = []
        for capture in captures:
            changes: list[Bag] = [Counter() for _ in capture.transactions]
            rows = capture.rows.get(table.relation)
            if rows is not None:
                columns = zip(*(rows[name].to_pylist() for name, _ in table.columns), strict=True)
                signed = zip(rows[ORDINAL].to_pylist(), rows[COUNT].to_pylist(), columns, strict=True)
                for ordinal, count, row in signed:
                    changes[ordinal][row] += count
            found += [
                (one, net)
                for one, bag in zip(capture.transactions, changes, strict=True)
                if (net := Counter({row: count for row, count in bag.items() if count}))
            ]
        return found

    def whole(self, snapshot: Snapshot, table: Table, rows_per_chunk: int = 1_000) -> Bag:
        """Return the rows of a table that a snapshot shows."""
        with snapshot.reader() as reader:
            return self.read(reader, table, snapshot.chunks(self.relation(table), rows_per_chunk))

    def read(self, reader: Reader, table: Table, chunks: Sequence[Chunk] = (Chunk(number=0),)) -> Bag:
        """Return the rows of a table that a reader shows."""
        relation = self.relation(table)
        tables = [read for chunk in chunks for read in reader.read(relation, relation.column_names, chunk, WHOLE)]
        return plain(tables, relation.column_names)


@dataclass(frozen=True, slots=True)
class Probing:
    """Probes one relation by one reader."""

    reader: Reader
    relation: Relation

    def __call__(self, columns: tuple[str, ...], values: Sequence[Row]) -> Bag:
        """Return the rows that hold some values."""
        wanted = self.relation.column_names
        return plain([self.reader.probe(self.relation, wanted, columns, keys(self.relation, columns, values))], wanted)


def keys(relation: Relation, columns: tuple[str, ...], values: Sequence[Row]) -> pa.Table:
    """Return keys as a table, which is how probes are given them."""
    lists = zip(*values, strict=True) if values else [()] * len(columns)
    schema = relation.arrow_schema(columns)
    return pa.Table.from_arrays([pa.array(one, f.type) for one, f in zip(lists, schema, strict=True)], schema=schema)


def plain(tables: Iterable[pa.Table], columns: Sequence[str]) -> Bag:
    """Return the rows of tables as a bag."""
    return Counter(row for table in tables for row in zip(*(table[name].to_pylist() for name in columns), strict=True))


def sum_up(bags: Iterable[Bag]) -> Bag:
    """Return the sum of bags. Rows that came and went are not in it."""
    total: Bag = Counter()
    for bag in bags:
        total.update(bag)
    return Counter({row: count for row, count in total.items() if count})


def transactions(captures: Iterable[Capture]) -> Iterator[Transaction]:
    """Yield the transactions of captures."""
    for capture in captures:
        yield from capture.transactions


def items(*numbers: int) -> dict[Row, int]:
    """Return rows of the table of items, one for each number."""
    return {(number, f"item {number}", Decimal(number).quantize(Decimal("0.01"))): 1 for number in numbers}


def removed(rows: Mapping[Row, int]) -> dict[Row, int]:
    """Return the removal of rows."""
    return {row: -count for row, count in rows.items()}
