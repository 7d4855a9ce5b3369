"""Regroups of every kind, and their law checked against recomputation from whole inputs, at every tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from stamped_history import INPUT, History, Run, check_every_tick, counted, plain, random_history, run_on_duckdb

from headwater.deltas.order import By
from headwater.model.relation import Column, Relation, SegmentName
from headwater.views.laws.extremes import extremes_law_sql
from headwater.views.laws.regroup import regroup_law_sql
from headwater.views.steps.computed import Aggregates, First, Windows
from headwater.views.steps.regroup_step import RegroupStep
from headwater.views.steps.segments import Segment
from headwater_lab.in_memory.bag import Row

Law = Callable[[RegroupStep, Relation, Relation, str, str], str]

OUTPUT = SegmentName(name="regrouped")


def regroup(keys: tuple[str, ...], computed: Aggregates | Windows | First, **types: str) -> Segment:
    """Return a regroup of the input of histories; `types` are those of the outputs."""
    columns = [*((key, INPUT.column(key).type) for key in keys), *types.items()]
    described = tuple(Column(name=name, type=kind, native=kind) for name, kind in columns)
    match computed:
        case First():
            described = INPUT.columns
        case Windows():
            described = described[len(keys) :]
    step = RegroupStep(input=INPUT.name, keys=keys, computed=computed)
    return Segment(relation=Relation(name=OUTPUT, columns=described), step=step, is_kept=True)


MINIMA = Aggregates(outputs=(("least", "MIN(x)"), ("most", "MAX(d)"), ("last", "MAX(g)")))
MIXED = Aggregates(outputs=(("n", "COUNT(*)"), ("xs", "COUNT(DISTINCT x)"), ("least", "MIN(d) FILTER (WHERE x > 0)")))
ALL = "x, d, w, f, g, k"
RANKED = Windows(
    outputs=(
        ("x", "x"),
        ("place", f"ROW_NUMBER() OVER (PARTITION BY {{partition}} ORDER BY {ALL})"),
        ("n", "COUNT(x) OVER (PARTITION BY {partition})"),
    )
)
ORDER = (By("x", is_descending=True, are_nulls_first=False), *map(By, "dwfgk"))
CASES = [
    regroup((), MINIMA, least="int", most="decimal(12,2)", last="string"),
    regroup(("k",), MINIMA, least="int", most="decimal(12,2)", last="string"),
    regroup((), MIXED, n="bigint", xs="bigint", least="decimal(12,2)"),
    regroup(("g", "k"), MIXED, n="bigint", xs="bigint", least="decimal(12,2)"),
    regroup((), RANKED, x="int", place="int", n="bigint"),
    regroup(("k",), RANKED, x="int", place="int", n="bigint"),
    regroup((), First(order=ORDER, limit=3)),
    regroup(("g",), First(order=ORDER, limit=2, offset=1)),
]


LAWS = {
    "regroup": [(regroup_law_sql, segment) for segment in CASES],
    "extremes": [(extremes_law_sql, segment) for segment in CASES[:2]],
}


def check(history: History, segment: Segment, random: Random, run: Run, law: Law) -> None:
    step = segment.step
    assert isinstance(step, RegroupStep)
    sql = law(step, INPUT, segment.relation, "changes", "old_rows")
    changes = history.changes(random)
    given = run(sql, {"changes": changes, "old_rows": counted(history.before)})
    names = segment.relation.column_names
    check_every_tick(
        given, names, lambda tick: recomputed(segment, history.at(tick), run_on_duckdb), len(history.ticks)
    )


def recomputed(segment: Segment, rows: Counter[Row], run: Run) -> Counter[Row]:
    found = run(segment.whole_sql({INPUT.name: "whole"}), {"whole": plain(rows)})
    return Counter(tuple(row[name] for name in segment.relation.column_names) for row in found.to_pylist())


def check_many(law: str, run: Run, seeds: range, tick_count: int = 6) -> None:
    for seed in seeds:
        random = Random(seed)
        law_sql, segment = LAWS[law][seed % len(LAWS[law])]
        check(random_history(random, tick_count), segment, random, run, law_sql)
