"""Judge the demo: what the views showed at every tick, against what the sources' own triggers say they should have.

The change log is asked only for the order of transactions. Base rows come from the audit triggers, right states from
the views' original text in DuckDB, shown states from the warehouse as a reader would read it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.deltas.compare import Row, hashable_row
from headwater.judge.audit import AuditedChange
from headwater.judge.grade_changes import History, grade_changes
from headwater.judge.replay import ReplayedView, TransactionKey, replay
from headwater.judge.result import DUCKDB, CheckResult, ViewCheck
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Relation
from headwater.warehouse.query import Warehouse


def recompute(
    *,
    spark: SparkSession,
    warehouse: Warehouse,
    relations: Sequence[Relation],
    history: Sequence[AuditedChange],
    before: Collection[TransactionKey],
    progress: Callable[[Tick], None],
) -> CheckResult:
    """Recompute every view at every tick, and grade what the warehouse shows."""
    entries = tuple(warehouse.catalog().views.values())
    last = warehouse.log.last_tick
    with ThreadPoolExecutor(1) as aside:  # Spark reads what was shown while DuckDB recomputes what should have been
        reading = aside.submit(lambda: [stored_history(spark, warehouse, entry.name, last) for entry in entries])
        expected = replay(
            relations=relations,
            views=[
                ReplayedView(name=entry.name, sql=entry.sql, birth=entry.birth, lower=entry.lower) for entry in entries
            ],
            history=history,
            before=before,
            ticks=[(tick, one.source, one.identity) for tick, one in warehouse.log.transactions(None, Tick(0), last)],
            progress=progress,
        )
    return CheckResult(
        views=tuple(
            ViewCheck(
                view=entry.name,
                promised=Guarantee(entry.guarantee),
                tick=last,
                verdict=(verdict := grade_changes(expected[entry.name], stored, through=last)),
                judged_by={DUCKDB: verdict.states_checked},
            )
            for entry, stored in zip(entries, reading.result(), strict=True)
        )
    )


def stored_history(spark: SparkSession, warehouse: Warehouse, view: str, through: Tick) -> History:
    """Return what readers can see of a view: its rows at its birth, and what changed at each later tick."""
    entry = warehouse.view(view)
    birth = entry.birth
    few = warehouse.few_rows(view, birth, [name for name, _ in entry.schema])
    first = warehouse.view_entries(spark, view, birth).toArrow() if few is None else few.counted
    later = warehouse.few_changes(view, birth, through)
    if later is None:
        later = warehouse.changes_dataframe(spark, view, birth, through).toArrow()
    start: Counter[Row] = Counter()
    for row, count in zip(_rows(first.drop_columns([COUNT])), first[COUNT].to_pylist(), strict=True):
        start[row] += count
    changes: dict[Tick, Counter[Row]] = defaultdict(Counter)
    ticks, counts = (later[column].to_pylist() for column in (TICK, COUNT))
    for tick, count, row in zip(ticks, counts, _rows(later.drop_columns([TICK, COUNT])), strict=True):
        changes[Tick(tick)][row] += count
    return History(birth=birth, start=Counter({row: n for row, n in start.items() if n}), changes=changes)


def _rows(table: pa.Table) -> list[Row]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return list(map(hashable_row, rows)) if any(map(pa.types.is_nested, table.schema.types)) else list(rows)
