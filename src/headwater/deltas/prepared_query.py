"""A query over small tables that Spark plans once, and then runs again and again over other rows.

For a small batch, what comes before the task costs far more than the task: parsing, analysing, optimising, planning,
and registering tables. The text of a step is the same in every batch, and so is its plan. So the plan is kept, down to
the RDD whose only job gives Arrow bytes. A run puts the batch's rows in the place of the last ones and starts it:

    rows of a table ──► the one partition of its RDD ──► travel with the task ──► law ──► Arrow bytes

Invariants
1. A kept plan keeps nothing of the rows that it ran over. So it has no exchange, no broadcast and no sub-query, which
   Spark computes once per plan: an exchange into one partition gives way to reading all partitions in one task, and a
   plan with anything that is not in `_STATELESS` is not kept.
2. One thread at a time runs a kept query: rows are in its tables from before the job begins until it has ended.
3. Nothing in a plan is a value of the time or of chance: Spark puts the time into a plan when it makes it.
4. Nothing in a plan depends on the rows: tables are RDDs of unknown size, joined as hints say.
5. If a kept query fails, its text is run as it is. So errors, and who is to blame for them, are Spark's own.

It uses methods of Spark that are public in Java and not documented. They are tried once per session, with rows of
which the result is known. Where they are missing or do something else, every query is run by its text.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

_MOST_QUERIES = 4_000
_STATELESS = frozenset(
    {
        *("CoalesceExec", "ExpandExec", "FilterExec", "GenerateExec", "InputAdapter", "LocalTableScanExec"),
        *("OneRowRelationExec", "ProjectExec", "RDDScanExec", "SortExec", "UnionExec", "WholeStageCodegenExec"),
        *("HashAggregateExec", "ObjectHashAggregateExec", "SortAggregateExec"),
        *("ShuffledHashJoinExec", "SortMergeJoinExec", "CartesianProductExec"),
        *("WindowExec", "WindowGroupLimitExec", "LocalLimitExec", "GlobalLimitExec"),
    }
)
"""Steps of a physical plan that compute their rows again each time they run."""
_LEFT_BYTES = 65_536
"""Up to this many bytes of a table stay until the next ones come: taking them away would be one more call."""
_EXCHANGE = "ShuffleExchangeExec"
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.exchange.reuse": "false",
    "spark.sql.execution.arrow.localRelationThreshold": "0",
}
"""What kept plans need: decided once, one partition, and tables that are RDDs however few rows they have."""
_TIME_WORDS = re.compile(r"'\s*(now|today|tomorrow|yesterday|epoch)\s*'", re.IGNORECASE)
"""Texts that Spark reads as a time once it plans a query that casts them."""
_TRIAL = "SELECT k, sum(w) AS w FROM (SELECT a.k, a.w * b.w AS w FROM one AS a JOIN two AS b ON a.k = b.k) GROUP BY k"
_log = logging.getLogger(__name__)

Shape: TypeAlias = tuple[str, tuple[tuple[str, pa.Schema], ...]]


class _CannotBeKeptError(Exception):
    """A plan has state, or Spark is another one than expected."""


@dataclass(slots=True, kw_only=True)
class _Input:
    """A table of a kept query: the partition that has its rows, and their types on the way to Spark."""

    partition: Any
    types: pa.Schema
    has_rows: bool = False


@dataclass(slots=True, kw_only=True)
class _PreparedQuery:
    """A kept plan with its tables."""

    inputs: Mapping[str, _Input]
    rows: Any
    """The RDD of Arrow record batches."""
    types: pa.Schema
    lock: threading.Lock = field(default_factory=threading.Lock)


class PreparedQueries:
    """The kept queries of one session of Spark.

    Any thread may run them. Different ones run at the same time.
    """

    def __init__(self, session: SparkSession) -> None:
        """Keep nothing yet. The session is for kept queries only, and its settings are changed for them."""
        self._session = session
        self._planning = threading.Lock()
        self._known: OrderedDict[Shape, _PreparedQuery | None] = OrderedDict()
        """None stands for a query that was met once, or cannot be kept."""
        self._refused: set[Shape] = set()
        self._settings: Any = None
        self._empty: Any = None
        self._context: Any = None
        self._works: bool | None = None

    def make_ready(self) -> None:
        """Try Spark with a small query now. Spark loads and compiles for it what any first query needs."""
        with self._planning:
            if self._works is None:
                self._works = self._try()

    def run(self, sql: str, tables: Mapping[str, pa.Table], *, will_come_again: bool = False) -> pa.Table | None:
        """Return what a query gives that was met before, or will come again. None: it has to be run by its text."""
        shape = (sql, tuple((name, table.schema) for name, table in tables.items()))
        if self._works is False or not tables or shape in self._refused:
            return None  # without tables it has no other rows to run over again
        try:
            query = self._query(shape, will_come_again=will_come_again)
            return None if query is None else self._run(query, tables)
        except (_CannotBeKeptError, Py4JError, PySparkException, pa.ArrowException, TypeError, AttributeError) as error:
            _log.debug("a query is run by its text: %s", error)
            return None

    def _query(self, shape: Shape, *, will_come_again: bool) -> _PreparedQuery | None:
        """Return a kept query. Of one that may never come again it is only noted that it came."""
        known = self._known.get(shape)
        if known is not None:
            with suppress(KeyError):  # another thread may have let it go just now
                self._known.move_to_end(shape)
            return known
        with self._planning:
            if shape not in self._known:
                self._known[shape] = None
                if len(self._known) > _MOST_QUERIES:
                    self._known.popitem(last=False)
                if not will_come_again:
                    return None
            if self._works is None:
                self._works = self._try()
            if not self._works:
                return None
            try:
                self._known[shape] = query = self._known[shape] or self._planned(shape)
            except (_CannotBeKeptError, Py4JError, PySparkException):
                if len(self._refused) >= _MOST_QUERIES:
                    self._refused.clear()
                self._refused.add(shape)
                raise
            return query

    def _try(self) -> bool:
        """Tell whether this Spark does what is expected of it: a kept plan gives the rows of its tables of now."""
        self._settings = self._session._jvm.java.util.Properties()  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no other way to it
        for key, value in _SETTINGS.items():
            self._session.conf.set(key, value)
        for key, value in self._session.conf.getAll.items():
            if key.startswith("spark.sql."):
                self._settings.setProperty(key, value)
        types = pa.schema([("k", pa.int64()), ("w", pa.int64())])
        try:
            query = self._planned((_TRIAL, (("one", types), ("two", types))))
            for count in (3, 0, 2):
                one = pa.table([list(range(count)), [2] * count], schema=types)
                two = pa.table([list(range(count)) * 2, [count] * count * 2], schema=types)
                found = self._run(query, {"one": one, "two": two}).sort_by("k").to_pydict()
                if found != {"k": list(range(count)), "w": [4 * count] * count}:
                    return False
        except (_CannotBeKeptError, Py4JError, PySparkException, pa.ArrowException, TypeError, AttributeError) as error:
            _log.debug("no plans of small queries are kept: %s", error)
            return False
        return True

    def _planned(self, shape: Shape) -> _PreparedQuery:
        """Plan a query over tables that are empty."""
        sql, tables = shape
        session, java = self._session, self._session._jvm  # noqa: SLF001 - as above
        inputs = {name: self._input(name, schema) for name, schema in tables}
        frame = session.sql(sql)
        jvm_frame: Any = frame._jdf  # noqa: SLF001 - as above; names of a frame are its columns to mypy
        self._require_repeatable(sql, jvm_frame.queryExecution().analyzed())
        plan = jvm_frame.queryExecution().executedPlan()
        if not plan.subqueriesAll().isEmpty():
            raise _CannotBeKeptError("sub-queries are computed once per plan")
        java.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # type: ignore[union-attr]  # noqa: SLF001 - as above
        rows = jvm_frame.toArrowBatchRdd(self._stateless(plan))
        return _PreparedQuery(inputs=inputs, rows=rows, types=_arrow_types(frame))

    def _require_repeatable(self, sql: str, analyzed: Any) -> None:
        """Refuse a query whose result follows not from its rows alone."""
        java: Any = self._session._jvm  # noqa: SLF001 - as above
        of_the_time = java.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
        if not analyzed.deterministic() or analyzed.containsPattern(of_the_time) or _TIME_WORDS.search(sql):
            raise _CannotBeKeptError("the time or chance is in it")

    def _input(self, name: str, schema: pa.Schema) -> _Input:
        """Register an empty table whose rows can be put in place later."""
        session, java = self._session, self._session._jvm  # noqa: SLF001 - as above
        struct = from_arrow_schema(schema, prefer_timestamp_ntz=False)
        types = to_arrow_schema(struct, error_on_duplicated_field_names_in_struct=True, timezone="UTC")
        nothing = self._sequence([pa.RecordBatch.from_pylist([], schema=types)])
        made = java.PythonSQLUtils.toDataFrame(nothing.iterator(), struct.json(), session._jsparkSession)  # type: ignore[union-attr]  # noqa: SLF001 - as above
        partitions = made.logicalPlan().rdd().dependencies().head().rdd().partitions()
        if len(partitions) != 1:
            raise _CannotBeKeptError("a table has one partition")
        frame = DataFrame(made, session)
        frame.coalesce(1).hint("shuffle_hash").createOrReplaceTempView(name)
        return _Input(partition=partitions[0], types=types)

    def _stateless(self, plan: Any) -> Any:
        """Return a plan without exchanges: each gives way to one task that reads all partitions."""
        kind = plan.getClass().getSimpleName()
        children = plan.children()
        kept = [self._stateless(children.apply(place)) for place in range(children.size())]
        java: Any = self._session._jvm  # noqa: SLF001 - as above
        if kind == _EXCHANGE:
            if plan.outputPartitioning().numPartitions() != 1:
                raise _CannotBeKeptError("an exchange is into one partition")
            return java.org.apache.spark.sql.execution.CoalesceExec(1, kept[0])
        if kind not in _STATELESS:
            raise _CannotBeKeptError(f"{kind} may keep what it computed")
        if not kept:
            return plan
        sequence = self._nothing()
        for child in reversed(kept):
            sequence = getattr(sequence, "$colon$colon")(child)
        return plan.withNewChildren(sequence)

    def _run(self, query: _PreparedQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
        batches = {name: _batches(table, query.inputs[name].types) for name, table in tables.items()}
        if self._context is None:
            self._context = self._session._jsparkSession.sparkContext()  # noqa: SLF001 - as above
        with query.lock:
            self._context.getLocalProperties().putAll(self._settings)  # tasks read the session's settings there
            for name, some in batches.items():
                self._place(query.inputs[name], some)
            collected = query.rows.collect()
            found = [collected[place] for place in range(len(collected))]
            for name, table in tables.items():
                if table.nbytes > _LEFT_BYTES:
                    self._place(query.inputs[name], [])
        read = [pa.ipc.read_record_batch(pa.py_buffer(one), query.types) for one in found]
        return pa.Table.from_batches(read, query.types)

    def _place(self, table: _Input, batches: list[pa.RecordBatch]) -> None:
        """Put rows in the place of those that a table had."""
        if batches or table.has_rows:
            table.has_rows = True
            getattr(table.partition, "values_$eq")(self._sequence(batches))
            table.has_rows = bool(batches)

    def _sequence(self, batches: list[pa.RecordBatch]) -> Any:
        """Return record batches as Spark passes them on: a Scala list of bytes."""
        sequence = self._nothing()
        for batch in reversed(batches):
            sequence = getattr(sequence, "$colon$colon")(batch.serialize().to_pybytes())
        return sequence

    def _nothing(self) -> Any:
        if self._empty is None:
            java: Any = self._session._jvm  # noqa: SLF001 - as above
            self._empty = getattr(getattr(java.scala.collection.immutable, "Nil$"), "MODULE$")
        return self._empty


def _batches(table: pa.Table, types: pa.Schema) -> list[pa.RecordBatch]:
    """Return rows with the types that Spark expects."""
    typed = table if table.schema == types else table.cast(types)
    return list(typed.combine_chunks().to_batches()) if typed.num_rows else []


def _arrow_types(frame: DataFrame) -> pa.Schema:
    """Return the types that Spark gives a frame's rows in Arrow."""
    schema = frame.schema
    return to_arrow_schema(schema, error_on_duplicated_field_names_in_struct=True, timezone="UTC")
