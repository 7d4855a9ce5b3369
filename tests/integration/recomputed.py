"""The views' original SQL on Spark, over rows that the sources' own triggers noted: a second opinion beside DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import sqlglot
from audited import AuditedWorld, relations, unticked
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from headwater.deltas.compare_frames import compare_frames
from headwater.judge.audit import RowText
from headwater.judge.complete_orders import judged_text
from headwater.judge.sample import spread
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import Relation, RelationName
from headwater.warehouse.query import Warehouse


def assert_spark_agrees(world: AuditedWorld, spark: SparkSession, states: int = 3) -> int:
    """Recompute every view at a few ticks, the newest among them; return how many states were compared."""
    warehouse = Warehouse.open(str(world.open().project.warehouse))
    entries = warehouse.catalog().views
    first = max(entry.birth for entry in entries.values())
    last = min(warehouse.frontier(name) for name in entries)
    compared = 0
    for tick in spread([Tick(tick) for tick in range(first, last + 1)], states):
        for name, frame in base_rows(world, warehouse, spark, tick).items():
            frame.createOrReplaceTempView(f"base_{name.source}_{name.name}")
        for name, entry in entries.items():
            if entry.guarantee != Guarantee.COMPLETE.value and tick != warehouse.frontier(name):
                continue
            right = spark.sql(over_base_rows(judged_text(entry.sql, relations(world))))
            differs = compare_frames(right, warehouse.view_dataframe(spark, name, tick))
            assert not differs, f"{name} at {tick}: {differs.text(5)}"
            compared += 1
    return compared


def over_base_rows(sql: str) -> str:
    """Return a view's SQL, whose orders are complete, with nothing changed but where its relations are found."""
    tree = sqlglot.parse_one(sql, read="spark")
    for table in [table for table in tree.find_all(exp.Table) if table.db]:  # others are named by WITH
        found = exp.to_table(f"base_{table.db}_{table.name}")
        found.set("alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name)))
        table.replace(found)
    return tree.sql(dialect="spark")


def base_rows(
    world: AuditedWorld, warehouse: Warehouse, spark: SparkSession, tick: Tick
) -> Mapping[RelationName, DataFrame]:
    """Return every relation's rows after the transactions up to a tick, as the triggers saw them come and go."""
    ticks = [(at, one.source, one.identity) for at, one in warehouse.log.transactions(None, Tick(0), tick)]
    later = [
        (at, one.source, one.identity) for at, one in warehouse.log.transactions(None, tick, warehouse.log.last_tick)
    ]
    history = [change for source in world.names for change in world.audited(source)]
    due = {(source, identity) for _, source, identity in ticks} | set(unticked(world, history, [*ticks, *later]))
    counts: dict[RelationName, Counter[tuple[str | None, ...]]] = {}
    described = {relation.name: relation for relation in relations(world)}
    for change in history:
        if (change.source, change.identity) in due:
            bag = counts.setdefault(change.relation, Counter())
            for row, sign in ((change.old, -1), (change.new, 1)):
                if row is not None:
                    bag[_texts(described[change.relation], row)] += sign
    return {name: _typed(spark, relation, counts.get(name, Counter())) for name, relation in described.items()}


def _texts(relation: Relation, row: RowText) -> tuple[str | None, ...]:
    return tuple(row[column] for column in relation.column_names)


def _typed(spark: SparkSession, relation: Relation, bag: Counter[tuple[str | None, ...]]) -> DataFrame:
    assert all(count >= 0 for count in bag.values()), "triggers see no row go that had not come"
    rows = [row for row, count in bag.items() for _ in range(count)]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(relation.columns)
    texts = pa.table(
        {name: pa.array(column, pa.string()) for name, column in zip(relation.column_names, columns, strict=True)}
    )
    frame = spark.createDataFrame(texts)
    return frame.selectExpr(
        *(f"CAST(`{column.name}` AS {column.type}) AS `{column.name}`" for column in relation.columns)
    )
