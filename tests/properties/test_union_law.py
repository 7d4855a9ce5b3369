"""A union's law: signed sums on Arrow, against whole inputs in DuckDB, at every tick."""

from __future__ import annotations

from collections import Counter
from random import Random

from stamped_history import INPUT, check_every_tick, plain, random_history, run_on_duckdb

from headwater.deltas.on_arrow import ArrowBag
from headwater.model.relation import Column, Relation, SegmentName
from headwater.views.laws.union import change_union
from headwater.views.steps.derivation import Signed
from headwater.views.steps.segments import Segment
from headwater.views.steps.union_step import UnionStep
from headwater_lab.in_memory.bag import Row

PART, SOME, REST = (SegmentName(name=name) for name in ("part", "some", "rest"))
COLUMNS = tuple(Column(name=f"c{n}", type=one.type, native=one.type) for n, one in enumerate(INPUT.columns))
UNITED = Relation(name=SegmentName(name="united"), columns=COLUMNS)


def test_oracle_every_tick() -> None:
    """Take a part of some rows away from them and add it twice: what is taken is there at every tick."""
    signs = (Signed(input=PART, sign=1), Signed(input=SOME, sign=1), Signed(input=PART, sign=-1))
    step = UnionStep(inputs=(*signs, Signed(input=PART, sign=1)))
    segment = Segment(relation=UNITED, step=step, is_kept=False)
    for seed in range(40):
        random = Random(seed)
        part, some = random_history(random, 6), random_history(random, 6)
        changes = {PART: ArrowBag(part.changes(random)), SOME: ArrowBag(some.changes(random))}

        def whole(tick: int) -> Counter[Row]:
            tables = {"part": plain(part.at(tick)), "some": plain(some.at(tick))}  # noqa: B023 - called in this turn
            found = run_on_duckdb(segment.whole_sql({PART: "part", SOME: "some"}), tables)
            assert found.column_names == list(UNITED.column_names)
            return Counter(tuple(row.values()) for row in found.to_pylist())

        given = change_union(step, UNITED, changes).table
        check_every_tick(given, UNITED.column_names, whole, 6)


def test_a_minus_takes_copies_one_by_one() -> None:
    step = UnionStep(inputs=(Signed(input=REST, sign=-1), Signed(input=SOME, sign=1)))
    segment = Segment(relation=UNITED, step=step, is_kept=False)
    row = (None, "a", 1, None, None, 0.5)
    tables = {"some": plain(Counter({row: 5})), "rest": plain(Counter({row: 3}))}
    found = run_on_duckdb(segment.whole_sql({SOME: "some", REST: "rest"}), tables)
    assert found.num_rows == 2
