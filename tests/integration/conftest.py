"""A PostgreSQL database with a source on it, and what tests ask of the two."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from headwater.deltas.extent import WHOLE
from headwater.model.memory_budget import SPILL_BYTES
from headwater.model.position import Position, Positions, by_log
from headwater.model.relation import COUNT, Relation, RelationName
from headwater.model.settings import DEFAULTS, CaptureSettings
from headwater.model.transaction import ORDINAL, Capture, Transaction
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.postgres import PostgresSource
from headwater.sources.postgres.follower import PostgresFollower

collect_ignore_glob = ["older_warehouses/*"]  # they run with the older versions alone


@dataclass
class World:
    """A database, a source on it, and what its follower returned so far."""

    server: EmbeddedServer
    database: str
    source: PostgresSource
    relations: dict[str, Relation] = field(default_factory=dict)
    slot: str = ""
    _follower: PostgresFollower | None = None

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        return self.server.execute(sql, database=self.database)

    def set_capture(self, capture: CaptureSettings, spill_bytes: int = SPILL_BYTES) -> None:
        """Follow with other settings from now on."""
        self.source = PostgresSource(
            name=self.source.name,
            url=self.server.url(self.database),
            project=self.database,
            settings=replace(DEFAULTS, capture=capture),
            spill_bytes=spill_bytes,
        )

    def connect(self, user: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(self.server.url(self.database, user))

    def declare(self, *names: str) -> None:
        wanted = [RelationName(source=self.source.name, name=name) for name in names]
        self.prepare(wanted)
        self.relations = {relation.name.name: relation for relation in self.source.inspect(wanted).relations}

    def prepare(self, wanted: Sequence[RelationName]) -> Positions:
        """Prepare the source for the slot of this world, which is made if it is not there."""
        self.slot = self.slot or self.source.new_slot()
        return self.source.prepare(wanted, self.slot, is_new=True)

    def follow(self, held_to: Position | None = None) -> PostgresFollower:
        self.stop_following()
        held = by_log([] if held_to is None else [held_to])
        self._follower = self.source.follow(tuple(self.relations.values()), self.slot, held)
        return self._follower

    def teardown(self) -> tuple[str, ...]:
        return self.source.teardown(self.slot, {}).dropped

    def stop_following(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def captures(self, follower: PostgresFollower, position: Position | None = None) -> list[Capture]:
        """Follow to a position, the present one if none is given."""
        if position is None:
            with self.source.snapshot() as snapshot:
                position = snapshot.position
        follower.hasten(position)
        found = []
        deadline = time.monotonic() + 20
        while follower.followed_to()[position.source] < position:
            assert time.monotonic() < deadline
            if (capture := follower.next_capture(5.0)) is not None:
                found.append(capture)
        return found

    def read(self, name: str) -> pa.Table:
        relation = self.relations[name]
        with self.source.snapshot() as snapshot:
            return self.whole(snapshot, relation)

    @staticmethod
    def whole(snapshot: Any, relation: Relation) -> pa.Table:
        tables = [
            table
            for chunk in snapshot.chunks(relation, 1_000)
            for table in snapshot.read(relation, relation.column_names, chunk, WHOLE)
        ]
        return pa.concat_tables(tables) if tables else relation.arrow_schema().empty_table()

    @staticmethod
    def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(map(repr, row.values())) for row in table.to_pylist())

    @staticmethod
    def signed(captures: Sequence[Capture], relation: Relation) -> Counter[tuple[Any, ...]]:
        total: Counter[tuple[Any, ...]] = Counter()
        for capture in captures:
            for row in capture.rows.get(relation.name, pa.table({})).to_pylist():
                count = row.pop(COUNT)
                row.pop(ORDINAL)
                total[tuple(map(repr, row.values()))] += count
        return Counter({row: count for row, count in total.items() if count})

    @staticmethod
    def transactions(captures: Sequence[Capture]) -> list[Transaction]:
        return [transaction for capture in captures for transaction in capture.transactions]


@pytest.fixture(scope="session")
def shared_database(postgres_server: EmbeddedServer) -> str:
    """One database for all tests that clean up behind themselves: making one costs more than most tests."""
    postgres_server.execute("CREATE DATABASE integration")
    return "integration"


@pytest.fixture
def world(postgres_server: EmbeddedServer, shared_database: str) -> Iterator[World]:
    source = PostgresSource(name="shop", url=postgres_server.url(shared_database), project=shared_database)
    made = World(server=postgres_server, database=shared_database, source=source)
    yield made
    made.stop_following()
    made.teardown()
    made.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO public")


@pytest.fixture
def make_world() -> type[World]:
    """Return how to make a world on a server of one's own."""
    return World
