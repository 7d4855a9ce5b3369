"""Rows of a view are modified by key as its twin in memory modifies them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from small_views import relation, setting

from headwater.deltas.lookup import RowResult, SawTicks
from headwater.deltas.on_arrow import ArrowBag
from headwater.engine.published import install as installing
from headwater.maintenance.published.messages import Install
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater_lab.in_memory.bag import InMemoryBag
from headwater_lab.in_memory.install import install_in_memory

R, S = relation("one.r(k, a)", key=("k",)), relation("two.s(k, b)", key=("k",))
SQL = "SELECT r.k, r.a, s.b, r.k + 1 AS more FROM one.r r, two.s s WHERE r.a = s.k"
WORLD = setting(SQL, {R: [(1, 5), (2, 5), (3, 6)], S: [(5, 7), (6, 8)]})


def table(columns: tuple[str, ...], rows: list[tuple[int, ...]], tick: int) -> pa.Table:
    values = [pa.array([row[place] for row in rows], pa.int32()) for place in range(len(columns))]
    stamps = [pa.array([number] * len(rows), pa.int64()) for number in (tick, 1)]
    return pa.table([*values, *stamps], [*columns, TICK, COUNT])


def test_the_rows_under_a_key_show_the_new_columns() -> None:
    view, names = WORLD.view, tuple(output.name for output in WORLD.view.outputs)
    stored = ArrowBag(table(names, [(1, 5, 7, 2), (2, 5, 7, 3), (3, 6, 8, 4)], 4))

    def lookup(requests: Any) -> list[Any]:
        return [
            RowResult(rows=stored.matching(one.columns, one.keys), sight=SawTicks(upto=Tick(4))) for one in requests
        ]

    schema = stored.schema
    changes = SimpleNamespace(schema=lambda: schema)
    plain = pa.schema([field for field in schema if field.name not in (TICK, COUNT)])
    live: Any = SimpleNamespace(
        resolved=SimpleNamespace(join=view), table=SimpleNamespace(changes=changes, schema=plain)
    )
    kept: Any = SimpleNamespace(relation=SimpleNamespace(name="v"), lookup=lookup)
    new = ArrowBag(table(("k", "b"), [(5, 9)], 5))
    before = ArrowBag(table(names, [(4, 5, 7, 5)], 5))  # an install before this one added a row
    install: Install[ArrowBag] = Install(upto=Tick(5), modified={"s": new})
    found = installing._modification(kept, live, before, install, "s", new).table
    rows = {tuple(row[name] for name in names): row[COUNT] for row in found.to_pylist()}
    assert set(found[TICK].to_pylist()) == {5}
    state = WORLD.recomputed(WORLD.rows)
    state[4, 5, 7, 5] += 1
    twin: Install[InMemoryBag] = Install(upto=Tick(5), modified={"s": InMemoryBag.of(("k", "b"), [(5, (5, 9), 1)])})
    after = install_in_memory(view, state, twin)
    after.subtract(state)
    assert rows == {row: count for row, count in after.items() if count}
    assert rows[1, 5, 9, 2] == 1
