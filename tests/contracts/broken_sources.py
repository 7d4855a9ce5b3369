"""Scripted sources that break the contract, each in one way: played by `test_source_contract`, which wants failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from test_sources import ScriptedUnderTest

from headwater.model.position import Distance, Position, Positions
from headwater.model.relation import Relation, RelationName
from headwater.model.transaction import Capture, SeenUpTo
from headwater.sources.scripted import ScriptedSource
from headwater.sources.scripted.database import SERVER
from headwater.sources.scripted.source import ScriptedFollower, ScriptedReader, ScriptedSnapshot
from headwater.sources.source import Chunk, TornDown
from headwater_contracts.database import SOURCE, DatabaseUnderTest
from headwater_contracts.sources import SourceContract


class Twice(ScriptedSource):
    def follow(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> ScriptedFollower:
        follower = super().follow(relations, slot, held_to)
        follower._read = {log: max(0, read - 1) for log, read in follower._read.items()}
        return follower


class Forgetful(ScriptedSource):
    def peek(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> Capture | None:
        found = super().peek(relations, slot, held_to)
        self.database.slots[slot].forgotten_to[""] = len(self.database.transactions)
        return found


class FirstOnly(ScriptedSource):
    def peek(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> Capture | None:
        after = held_to[SOURCE].offset
        super().peek(relations, slot, held_to)
        return self.capture(relations, {"": after}, {"": min(after + 500, len(self.database.transactions))})


class Backwards(ScriptedSource):
    def capture(
        self, relations: Sequence[Relation], after: Mapping[str, int], upto: Mapping[str, int]
    ) -> Capture | None:
        found = super().capture(relations, after, upto)
        return None if found is None else replace(found, transactions=found.transactions[::-1])


class Read(ScriptedSource):
    kind: type[ScriptedReader] = ScriptedReader

    def snapshot(
        self, relations: Sequence[RelationName], *, bootstrap: bool = False, at: Positions | None = None
    ) -> ScriptedSnapshot:
        opened = super().snapshot(relations, bootstrap=bootstrap, at=at)
        return Replaced(**vars(opened))


class Replaced(ScriptedSnapshot):
    @contextmanager
    def reader(self) -> Iterator[ScriptedReader]:
        with super().reader() as reader:
            assert isinstance(self.source, Read)
            yield self.source.kind(source=self.source, seen=reader.seen, token=reader.token)


class SeeingReader(ScriptedReader):
    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Any) -> Any:
        assert isinstance(self.seen, SeenUpTo)
        fewer = replace(self.seen, last=max(0, self.seen.last - 1))
        return ScriptedReader(source=self.source, seen=fewer, token=self.token).read(relation, wanted, chunk, rows)


class Boastful(Read):
    """What its readers say they saw is more than they show."""

    kind = SeeingReader


class DistinctReader(ScriptedReader):
    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        found = super().probe(relation, wanted, columns, keys)
        return found.group_by(list(wanted)).aggregate([]).select(list(wanted))


class Distinct(Read):
    kind = DistinctReader


class NullReader(ScriptedReader):
    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        nulls = pa.table({name: pa.nulls(1, keys.schema.field(name).type) for name in columns}, schema=keys.schema)
        return super().probe(relation, wanted, columns, pa.concat_tables([keys, nulls]) if columns else keys)


class NullMatches(Read):
    kind = NullReader


class LaxReader(ScriptedReader):
    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        if columns != ("note",):
            return super().probe(relation, wanted, columns, keys)
        sought = {text.rstrip().lower() for text in keys["note"].to_pylist()}
        rows = super().probe(relation, relation.column_names, (), keys)
        found = [text is not None and text.rstrip().lower() in sought for text in rows["note"].to_pylist()]
        return rows.filter(pa.array(found)).select(list(wanted))


class Lax(Read):
    kind = LaxReader


class OverlappingSnapshot(ScriptedSnapshot):
    def chunks(self, relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
        return tuple(
            replace(chunk, low=None if chunk.low is None else str(int(chunk.low) - 2))
            for chunk in super().chunks(relation, rows_per_chunk)
        )


class Overlapping(ScriptedSource):
    def snapshot(
        self, relations: Sequence[RelationName], *, bootstrap: bool = False, at: Positions | None = None
    ) -> ScriptedSnapshot:
        opened = super().snapshot(relations, bootstrap=bootstrap, at=at)
        return OverlappingSnapshot(**vars(opened))


class Silent(ScriptedSource):
    """It does not tell what was altered."""

    def capture(
        self, relations: Sequence[Relation], after: Mapping[str, int], upto: Mapping[str, int]
    ) -> Capture | None:
        found = super().capture(relations, after, upto)
        return None if found is None else replace(found, altered={})


class Trusting(ScriptedSource):
    """It takes any log for its own, and has no history to tell it by."""

    def position(self, number: int, log: str = "") -> Position:
        return replace(super().position(number, log), proof=b"", history="1")


class Latest(ScriptedSource):
    """Whatever of the past it is asked for, it shows the present."""

    def snapshot(
        self, relations: Sequence[RelationName], *, bootstrap: bool = False, at: Positions | None = None
    ) -> ScriptedSnapshot:
        return super().snapshot(relations, bootstrap=bootstrap or at is not None)


class Stale(ScriptedSource):
    """Its readers show one moment, and say that they saw ever more."""

    def snapshot(
        self, relations: Sequence[RelationName], *, bootstrap: bool = False, at: Positions | None = None
    ) -> ScriptedSnapshot:
        opened = super().snapshot(relations, bootstrap=bootstrap, at=at)
        return StaleSnapshot(**vars(opened))


class StaleSnapshot(ScriptedSnapshot):
    @contextmanager
    def reader(self) -> Iterator[ScriptedReader]:
        yield ScriptedReader(source=self.source, seen=self.source.database.seen(self.relations), token=self.token)


class Drifting(ScriptedSource):
    """Who joins a snapshot sees what is there now, and believes to see what the snapshot shows."""

    @contextmanager
    def join(self, said: Mapping[str, Any]) -> Iterator[ScriptedReader]:
        with super().join(said) as joined:
            yield DriftingReader(source=self, seen=joined.seen, token=joined.token)


class DriftingReader(ScriptedReader):
    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Any) -> Any:
        now = ScriptedReader(source=self.source, seen=self.source.database.seen([relation.name]), token=self.token)
        return now.read(relation, wanted, chunk, rows)


class Lingering(ScriptedSource):
    """A snapshot that is closed can still be joined."""

    @contextmanager
    def join(self, said: Mapping[str, Any]) -> Iterator[ScriptedReader]:
        yield ScriptedReader(source=self, seen=self.read_seen(said["seen"]), token=said["token"])


class Destructive(ScriptedSource):
    def teardown(self, slot: str | None, held_to: Positions) -> TornDown:
        done = super().teardown(slot, held_to)
        self.database.slots.clear()
        return done


class NeverBehind(ScriptedSource):
    def distance(self, earlier: Position, later: Position) -> Distance:
        return replace(super().distance(earlier, later), amount=0)


BROKEN = {
    kind.__name__: kind
    for kind in (
        *(Twice, Forgetful, FirstOnly, Backwards, Boastful, Distinct, NullMatches, Lax, Overlapping, Destructive),
        *(NeverBehind, Silent, Trusting, Latest, Stale, Drifting, Lingering),
    )
}


@pytest.mark.parametrize("kind", BROKEN)
class TestBroken(SourceContract):
    @pytest.fixture
    def database(self, kind: str) -> DatabaseUnderTest:
        made = ScriptedUnderTest(replace(SERVER, reads_as_of=kind == "Latest", exports_snapshots=True))
        made.connect = lambda: BROKEN[kind](SOURCE, database=made._database)  # type: ignore[method-assign]
        return made
