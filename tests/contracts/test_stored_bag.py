"""Stored bags hold what held ones hold, operation by operation, also where the two forms meet."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.deltas.extent import EVERYTHING, NOTHING, Extent
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import to_arrow
from headwater.deltas.selection import Selection
from headwater.deltas.stored_bag import Bag, StoredBag
from headwater.model.position import Tick

Entries = Counter[tuple[Any, ...]]
Operation = Callable[[Bag, Bag, Bag], Bag]

LOW = Extent.of(
    [Selection(column="a", compare="less", values=(1,))], [Selection(column="b", compare="equal", values=(2, 0))]
)


def by_keys(columns: tuple[str, ...]) -> Operation:
    return lambda a, b, k: a.matching(columns, k.keys(columns, b, columns))


def by_groups(columns: tuple[str, ...]) -> Operation:
    return lambda a, _, k: a.matching(columns, k.groups(columns))


OPERATIONS: Mapping[str, Operation] = {
    "plus": lambda a, b, _: a.plus(b),
    "plus twice": lambda a, b, k: a.plus(b).plus(k.negated()),
    "negated": lambda a, _, __: a.negated(),
    "net": lambda a, b, _: a.plus(b).net(),
    "positive": lambda a, b, _: a.plus(b).positive(),
    "picked": lambda a, _, __: a.picked(("b", "a")),
    "restamped": lambda a, _, __: a.restamped(Tick(9)).net(),
    "shifted": lambda a, _, __: a.shifted(-1),
    "upto": lambda a, _, __: a.upto(Tick(2)),
    "after": lambda a, _, __: a.after(Tick(2)),
    "at": lambda a, _, __: a.at([Tick(1), Tick(3)]),
    "selected": lambda a, _, __: a.selected(LOW),
    "everything": lambda a, _, __: a.selected(EVERYTHING),
    "nothing": lambda a, _, __: a.selected(NOTHING),
    "under keys": by_keys(("a",)),
    "under keys of two columns": by_keys(("a", "b")),
    "under keys of another type": lambda a, b, k: a.matching(("a",), k.keys(("b",), b, ("a",))),
    "under groups": by_groups(("b",)),
    "under groups of two columns": by_groups(("b", "a")),
    "without keys": lambda a, b, k: a.matching(("a",), a.keys(("a",), a, ("a",)).without(k.keys(("a",), b, ("a",)))),
    "keys of both": lambda a, b, k: a.matching(("a",), b.groups(("a",)).plus(k.groups(("a",)))),
    "widest": lambda a, b, _: a.restamped(Tick(1)).positive().widest(b.restamped(Tick(1)).positive()),
    "typed": lambda a, _, __: a.typed(a.schema.set(0, pa.field("a", pa.int64()))),
    "taken twice": lambda a, _, __: a.typed(a.schema.set(1, pa.field("b", pa.int32())), ("a", "a")),
}


def some_entries(chance: random.Random) -> ArrowBag:
    rows = [
        (
            chance.choice((None, 0, 1, 2)),
            chance.choice((None, 0, 1, 2, 2**40)),
            chance.randint(1, 3),
            chance.choice((-2, -1, 1, 2)),
        )
        for _ in range(chance.choice((0, 1, 8)))
    ]
    kinds = {"a": pa.int32(), "b": pa.int64(), "_tick": pa.int64(), "_count": pa.int64()}
    return ArrowBag(
        pa.table({name: pa.array([row[n] for row in rows], kind) for n, (name, kind) in enumerate(kinds.items())})
    )


def entries(rows: pa.Table) -> Entries:
    """Return how often entries stand, which is more than what they add up to: nothing is netted here."""
    return Counter(tuple(row[name] for name in ("a", "b", "_tick", "_count")) for row in rows.to_pylist())


@pytest.mark.parametrize("seed", range(4))
def test_differential_every_operation_gives_the_same_held_stored_and_mixed(spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    held = [some_entries(chance) for _ in range(3)]
    stored = [StoredBag.of_held(spark, bag) for bag in held]
    forms = list(product((False, True), repeat=3)) if seed < 1 else [(True, True, True)]
    frames, expected = [], {}
    for name, operation in OPERATIONS.items():
        for form in forms:
            if not any(form):
                continue
            found = operation(*(stored[n] if is_stored else held[n] for n, is_stored in enumerate(form)))
            right = operation(*held)
            assert isinstance(right, ArrowBag)
            assert found.schema.names == right.schema.names
            assert found.schema.types == right.schema.types
            assert found.most >= len(right)
            if isinstance(found, ArrowBag):
                assert entries(found.table) == entries(right.table)
                continue
            label = f"{name} {form}"
            columns = [F.col(one).cast("bigint").alias(one) for one in ("a", "b", "_tick", "_count")]
            frames.append(found.frame.select(*columns, F.lit(label).alias("label")))
            expected[label] = entries(right.table)
    everything = frames[0]
    for frame in frames[1:]:
        everything = everything.unionByName(frame)
    rows = to_arrow(everything)
    for label, right in expected.items():
        assert entries(rows.filter(pa.compute.equal(rows["label"], label))) == right, label


def test_entries_keys_and_ticks_are_counted_where_that_is_asked(spark: SparkSession) -> None:
    held = some_entries(random.Random(5))
    stored = StoredBag.of_held(spark, held)
    assert len(held) == 8
    assert (len(stored), len(stored.net()), stored.net().most) == (8, len(held.net()), 8)
    assert stored.ticks() == held.ticks()
    assert len(stored.groups(("a",))) == len(held.groups(("a",)))
    assert not stored.plus(ArrowBag(held.table.slice(0, 0))).negated().selected(NOTHING).frame.take(1)


def test_values_stay_as_they_are(spark: SparkSession) -> None:
    """A stored bag joins and nets like a held one: NaN is one value, NULL another, and timestamps keep their zone."""
    rows = pa.table(
        {
            "f": pa.array([float("nan"), float("nan"), None, 1.0]),
            "t": pa.array([0, 0, 1, None], pa.timestamp("us")),
            "z": pa.array([0, 0, 1, None], pa.timestamp("us", tz="UTC")),
            "d": pa.array([10**12] * 4, pa.decimal128(38, 2)),
            "l": pa.array([[1, None], [1, None], None, []], pa.list_(pa.int32())),
            "_tick": pa.array([1] * 4, pa.int64()),
            "_count": pa.array([1] * 4, pa.int64()),
        }
    )
    stored = StoredBag.of_held(spark, ArrowBag(rows))
    back = to_arrow(stored.net().frame)
    assert sorted(back["_count"].to_pylist()) == [1, 1, 2]
    assert back.select(rows.column_names).cast(rows.schema).schema == rows.schema
    assert str(stored.net().frame.schema["t"].dataType) == "TimestampNTZType()"
    assert to_arrow(stored.matching(("f",), stored.keys(("f",), stored, ("f",))).frame).num_rows == 3
