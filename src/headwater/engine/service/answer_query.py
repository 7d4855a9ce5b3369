"""`query`: one SELECT over views, all at one tick. What can be refused is refused before Spark starts.

A query over one view that is plain enough (`views.plain_query`) is answered from its files by this process; any other
is run by Spark, which has to be started first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import InvalidView
from headwater.model.moment import Moment
from headwater.model.position import Tick
from headwater.views.text.plain_query import plain_query
from headwater.views.text.reader_query import ReaderQuery
from headwater.warehouse.query import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuery:
    """A query that was found to be in order, and the tick at which the views are read that it names."""

    query: ReaderQuery
    warehouse: Warehouse
    read: tuple[str, ...]
    tick: Tick


def ask(warehouse: Warehouse, query: ReaderQuery, moment: Moment | None) -> ResolvedQuery:
    """Find out which tick a query reads. A view that is not there, or not readable then, is refused."""
    for name in query.views:
        warehouse.view(name)
    read = tuple(name for name in query.named if name in warehouse.catalog().views)
    tick = min((warehouse.resolve_at(name, moment) for name in read), default=warehouse.head().tick)
    return ResolvedQuery(query=query, warehouse=warehouse, read=read, tick=tick)


def answer(question: ResolvedQuery, spark: Callable[[], SparkSession]) -> pa.Table:
    """Return the rows of a query."""
    rows = _without_spark(question)
    return _collected(answer_dataframe(question, spark())) if rows is None else rows


def answer_dataframe(question: ResolvedQuery, spark: SparkSession) -> DataFrame:
    """Return a query as a Spark DataFrame."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - small reads do without PySpark

    from headwater.deltas.on_spark import select_over, session_like  # noqa: PLC0415 - as above
    from headwater.spark.view_errors import said_by_spark  # noqa: PLC0415 - as above

    session, warehouse = session_like(spark), question.warehouse
    frames = {name: warehouse.view_dataframe(session, name, question.tick) for name in question.read}
    try:
        return select_over(session, question.query.sql, frames)
    except PySparkException as error:
        raise InvalidView(
            "Spark cannot run the query",
            code="HW-126",
            detail=said_by_spark(error),
            hint=f"the warehouse has the views: {', '.join(sorted(warehouse.catalog().views)) or 'none'}",
        ) from None


def _without_spark(question: ResolvedQuery) -> pa.Table | None:
    """Return the rows of a query if it is plain, and its view not too large to be read here."""
    query, warehouse = question.query, question.warehouse
    if len(question.read) != 1:
        return None
    plain = plain_query(query, warehouse.kept_table(question.read[0]).schema)
    if plain is None:
        return None
    if plain.counts_all:
        return plain.counts(warehouse.row_count(question.read[0], question.tick))
    found = warehouse.few_rows(question.read[0], question.tick, plain.needed)
    return None if found is None else plain.rows(found.counted)


def _collected(frame: DataFrame) -> pa.Table:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as above

    from headwater.spark.view_errors import query_stopped  # noqa: PLC0415 - as above

    try:
        return frame.toArrow()
    except PySparkException as error:
        if (told := query_stopped(error)) is None:
            raise
        raise told from None
