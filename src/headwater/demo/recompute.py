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

from headwater.guarantee import Guarantee
from headwater.judge.audit import AuditedChange
from headwater.judge.compare import Row
from headwater.judge.grade_changes import History, grade_changes
from headwater.judge.replay import ReplayedView, TransactionKey, replay
from headwater.position import Tick
from headwater.relation import COUNT, TICK, Relation
from headwater.results.checking import CheckResult, ViewCheck
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
        showing = aside.submit(lambda: [shown_history(spark, warehouse, entry.name, last) for entry in entries])
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
                verdict=grade_changes(expected[entry.name], shown, through=last),
            )
            for entry, shown in zip(entries, showing.result(), strict=True)
        )
    )


def shown_history(spark: SparkSession, warehouse: Warehouse, view: str, through: Tick) -> History:
    """Return what readers can see of a view: its rows at its birth, and what changed at each later tick."""
    birth = warehouse.view(view).birth
    start = Counter(_rows(warehouse.view_dataframe(spark, view, birth).toArrow()))
    table = warehouse.changes_dataframe(spark, view, birth, through).toArrow()
    changes: dict[Tick, Counter[Row]] = defaultdict(Counter)
    ticks, counts = (table[column].to_pylist() for column in (TICK, COUNT))
    for tick, count, row in zip(ticks, counts, _rows(table.drop_columns([TICK, COUNT])), strict=True):
        changes[Tick(tick)][row] += count
    return History(birth=birth, start=start, changes=changes)


def _rows(table: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
