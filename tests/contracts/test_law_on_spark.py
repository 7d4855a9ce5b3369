"""The algorithm's contract on the engine that warehouses run on: Arrow bags and the law as Spark SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from runners import HELD, MIXED, STORED, runner_of
from world import Oracle, World, random_view, random_world, to_arrow

from headwater.deltas.lookup import RowRequest, RowResult, Sight
from headwater.deltas.on_arrow import ArrowBag
from headwater.engine.batch import join_batch as batch
from headwater.engine.batch.join_batch import change_view
from headwater.maintenance import combinations
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.spark.types import SelectTypes
from headwater.storage.stored_rows import parts
from headwater_lab.in_memory.bag import Row

TICKS = 8
ORACLE = Oracle()


class ArrowWorld:
    """A world seen through Arrow: the same log and answers, in the bags that a maintainer holds."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self.corrected_row_count = 0

    def changes(self, name: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> ArrowBag:
        return to_arrow(self._world.changes(name, columns, after, upto))

    def seen_after(self, name: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        return to_arrow(self._world.seen_after(name, columns, sight, tick))

    def unseen_upto(self, name: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        return to_arrow(self._world.unseen_upto(name, columns, sight, tick))

    def lookup(self, requests: Sequence[RowRequest]) -> list[RowResult[Any]]:
        answers = []
        for probe in requests:
            seen = self._world.sights(self._random, probe.relation.source, 0)
            keys = probe.keys
            whole = self._world.answer(RowRequest(relation=probe.relation, wanted=probe.wanted), seen)
            rows = to_arrow(whole.rows)
            answers.append(
                RowResult(rows=rows if keys is None else rows.matching(probe.columns, keys), sight=whole.sight)
            )
        return answers


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("guarantee", [Guarantee.COMPLETE, Guarantee.STRONG])
def test_oracle_every_change_on_spark(spark: SparkSession, seed: int, guarantee: Guarantee) -> None:
    play(spark, seed, guarantee)


@pytest.mark.parametrize("seed", range(40, 49))
def test_oracle_every_change_on_spark_in_pieces(
    spark: SparkSession, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(combinations, "_FEW_ROWS", 0)
    monkeypatch.setattr(batch, "most_combinations", lambda _: 2)
    play(spark, seed, Guarantee.COMPLETE)


@pytest.mark.parametrize("seed", range(60, 64))
@pytest.mark.parametrize("held_rows", [STORED, MIXED])
def test_oracle_every_change_that_is_stored(spark: SparkSession, seed: int, held_rows: int) -> None:
    play(spark, seed, Guarantee.COMPLETE, held_rows)


@pytest.mark.parametrize("seed", range(70, 73))
def test_oracle_every_change_that_is_stored_in_pieces(
    spark: SparkSession, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "most_combinations", lambda _: 2)
    play(spark, seed, Guarantee.COMPLETE, STORED)


def play(spark: SparkSession, seed: int, guarantee: Guarantee, held_rows: int = HELD) -> None:
    """Follow a random view through a random history in three batches; every state it claims is the oracle's."""
    random = Random(seed)
    world = random_world(random, TICKS)
    view = random_view(random)
    relations = {one.relation.name: one.relation for one in view.occurrences}
    schema = to_arrow_schema(SelectTypes(spark=spark, view="v").schema(view.sql, relations), timezone="UTC")
    columns = pa.schema([("_tick", pa.int64()), ("_count", pa.int64()), *schema])
    through = ArrowWorld(world, random)
    cuts = [*sorted(random.sample(range(1, TICKS), 2)), TICKS]
    state: Counter[Row] = Counter()
    lo = 0
    for hi in cuts:
        with runner_of(spark, held_rows) as runner:
            change = change_view(runner, view, columns, guarantee, (Tick(lo), Tick(hi)), through, through)
            rows = [] if change is None else [row for part in parts(change.rows) for row in part.to_pylist()]
        for tick in range(lo + 1, hi + 1):
            for row in (row for row in rows if row["_tick"] == tick):
                state[tuple(row[name] for name in schema.names)] += row["_count"]
            state = Counter({row: count for row, count in state.items() if count})
            if guarantee is Guarantee.COMPLETE or tick == hi:
                assert state == ORACLE.state(world, view, tick), f"tick {tick}"
        lo = hi
