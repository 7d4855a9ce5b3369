"""Base relations in DuckDB go from tick to tick as the log says, and hold no more the longer the log is."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from headwater.judge.base_walk import LoggedRelationRows, NotJudgedHere
from headwater.judge.replay import BaseRelations
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Column, Relation, RelationName

R = Relation(
    name=RelationName(source="shop", name="r"),
    columns=(Column(name="k", type="int", native="int4"), Column(name="x", type="string", native="text")),
)


def table(rows: list[tuple[int, int, str | None, int]]) -> pa.Table:
    ticks, keys, texts, counts = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.table(
        {
            "k": pa.array(keys, pa.int32()),
            "x": pa.array(texts, pa.string()),
            TICK: pa.array(ticks, pa.int64()),
            COUNT: pa.array(counts, pa.int64()),
        }
    )


def held(base: BaseRelations) -> Counter[tuple[object, ...]]:
    return Counter(base.connection.execute("SELECT k, x FROM shop.main.r").fetchall())


def test_a_walk_gives_every_state_whatever_the_parts() -> None:
    for seed in range(5):
        random = Random(seed)
        state: Counter[tuple[int, str | None]] = Counter()
        states, rows = [Counter(state)], []
        for tick in range(1, 31):
            change: Counter[tuple[int, str | None]] = Counter()
            for _ in range(random.randrange(3)):
                present = sorted((state + Counter()).elements(), key=str)
                row = random.choice(present) if present and random.random() < 0.5 else None
                change[row or (random.randrange(3), random.choice(("a", None)))] += -1 if row else 1
                state.update(change)
                rows += [(tick, *one, count) for one, count in change.items() if count]
                change.clear()
            state += Counter()
            states.append(Counter(state))
        start = random.randrange(15)
        cuts = sorted(random.sample(range(len(rows)), 4))
        later = [row for row in rows if row[0] > start]
        parts = [
            table([row for row in later if a <= rows.index(row) < b])
            for a, b in zip([0, *cuts], [*cuts, 999], strict=True)
        ]
        assert sum(part.num_rows for part in parts) == len(later)
        with BaseRelations([R]) as base:
            walk = LoggedRelationRows(base, R, ("k", "x"), 0, iter([part for part in parts if part.num_rows]))
            shown = table([(0, *row, 1) for row in states[-1].elements()]).drop_columns([TICK, COUNT])
            back = table([(tick, k, x, -count) for tick, k, x, count in later])
            walk.begin(iter([shown]), iter([back]), 1_000)
            assert held(base) == states[start]
            for tick in range(start + 1, 31):
                moved = walk.go_to(Tick(tick), 1_000)
                assert moved == any(row[0] == tick for row in rows)
                assert held(base) == states[tick]


def test_a_log_that_takes_away_what_was_not_there_is_not_followed() -> None:
    with BaseRelations([R]) as base:
        walk = LoggedRelationRows(base, R, ("k", "x"), 0, iter([table([(1, 1, "a", 1), (2, 2, "a", -1)])]))
        walk.begin(iter(()), iter(()), 10)
        assert walk.go_to(Tick(1), 10)
        with pytest.raises(NotJudgedHere):
            walk.go_to(Tick(2), 10)


def test_memory_does_not_grow_with_ticks() -> None:
    def parts() -> object:
        for first in range(0, 400, 50):
            rows = []
            for tick in range(first + 1, first + 51):
                rows += [(tick, tick % 20, "old" if tick <= 20 else "new", 1)]
                rows += [(tick, tick % 20, "old" if tick <= 40 else "new", -1)] if tick > 20 else []
            yield table(rows)

    sizes = []
    with BaseRelations([R]) as base:
        walk = LoggedRelationRows(base, R, ("k", "x"), 0, parts())  # type: ignore[arg-type]
        walk.begin(iter(()), iter(()), 100)
        for tick in range(1, 401):
            walk.go_to(Tick(tick), 100)
            if tick in (100, 390):
                [size] = base.connection.execute("SELECT max(rowid) FROM shop.main.r").fetchone() or (0,)
                sizes.append(size)
        assert sum(held(base).values()) == 20
    assert sizes[1] <= sizes[0] + 10, "what went is let go"
