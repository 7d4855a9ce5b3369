"""Scripted sources that break the contract, each in one way: played by `test_source_contract`, which wants failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from test_sources import ScriptedUnderTest

from headwater.model.position import Distance, Position
from headwater.model.relation import Relation
from headwater.model.transaction import Capture
from headwater.sources.scripted import ScriptedSource
from headwater.sources.scripted.source import ScriptedFollower, ScriptedSnapshot
from headwater.sources.source import Chunk, TornDown
from headwater_contracts.database import SOURCE, DatabaseUnderTest
from headwater_contracts.sources import SourceContract


class Twice(ScriptedSource):
    def follow(self, relations: Sequence[Relation], slot: str, held_to: Position | None) -> ScriptedFollower:
        follower = super().follow(relations, slot, held_to)
        follower._read = max(0, follower._read - 1)
        return follower


class Forgetful(ScriptedSource):
    def peek(self, relations: Sequence[Relation], slot: str, held_to: Position | None) -> Capture | None:
        found = super().peek(relations, slot, held_to)
        self.database.slots[slot].forgotten_to = len(self.database.transactions)
        return found


class FirstOnly(ScriptedSource):
    def peek(self, relations: Sequence[Relation], slot: str, held_to: Position | None) -> Capture | None:
        after = 0 if held_to is None else held_to.offset
        super().peek(relations, slot, held_to)
        return self.capture(relations, after, min(after + 500, len(self.database.transactions)))


class Backwards(ScriptedSource):
    def capture(self, relations: Sequence[Relation], after: int, upto: int) -> Capture | None:
        found = super().capture(relations, after, upto)
        return None if found is None else replace(found, transactions=found.transactions[::-1])


class Boastful(ScriptedSource):
    """What its snapshots say they saw is more than they show."""

    def snapshot(self, *, bootstrap: bool = False) -> ScriptedSnapshot:
        return Seeing(source=self, seen=self.database.seen(everything=bootstrap), token=str(self.database.run))


class Seeing(ScriptedSnapshot):
    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Any) -> Any:
        fewer = replace(self.seen, last=max(0, self.seen.last - 1))
        return ScriptedSnapshot(source=self.source, seen=fewer, token=self.token).read(relation, wanted, chunk, rows)


class Probed(ScriptedSource):
    kind: type[ScriptedSnapshot] = ScriptedSnapshot

    def snapshot(self, *, bootstrap: bool = False) -> ScriptedSnapshot:
        return self.kind(source=self, seen=self.database.seen(everything=bootstrap), token=str(self.database.run))


class DistinctSnapshot(ScriptedSnapshot):
    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        found = super().probe(relation, wanted, columns, keys)
        return found.group_by(list(wanted)).aggregate([]).select(list(wanted))


class Distinct(Probed):
    kind = DistinctSnapshot


class NullSnapshot(ScriptedSnapshot):
    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        nulls = pa.table({name: pa.nulls(1, keys.schema.field(name).type) for name in columns}, schema=keys.schema)
        return super().probe(relation, wanted, columns, pa.concat_tables([keys, nulls]) if columns else keys)


class NullMatches(Probed):
    kind = NullSnapshot


class LaxSnapshot(ScriptedSnapshot):
    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        if columns != ("note",):
            return super().probe(relation, wanted, columns, keys)
        sought = {text.rstrip().lower() for text in keys["note"].to_pylist()}
        rows = super().probe(relation, relation.column_names, (), keys)
        found = [text is not None and text.rstrip().lower() in sought for text in rows["note"].to_pylist()]
        return rows.filter(pa.array(found)).select(list(wanted))


class Lax(Probed):
    kind = LaxSnapshot


class OverlappingSnapshot(ScriptedSnapshot):
    def chunks(self, relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
        return tuple(
            replace(chunk, low=None if chunk.low is None else str(int(chunk.low) - 2))
            for chunk in super().chunks(relation, rows_per_chunk)
        )


class Overlapping(Probed):
    kind = OverlappingSnapshot


class Destructive(ScriptedSource):
    def teardown(self, slot: str | None, held_to: Position | None) -> TornDown:
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
        NeverBehind,
    )
}


@pytest.mark.parametrize("kind", BROKEN)
class TestBroken(SourceContract):
    @pytest.fixture
    def database(self, kind: str) -> DatabaseUnderTest:
        made = ScriptedUnderTest()
        made.connect = lambda: BROKEN[kind](SOURCE, database=made._database)  # type: ignore[method-assign]
        return made
