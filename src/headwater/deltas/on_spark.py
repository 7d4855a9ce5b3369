"""Run SQL over Arrow tables on Spark: Arrow in, Arrow out, one job where the data is small.

A batch's tables are small, so the fixed costs of a Spark job are what matters:
- a session of its own for small batches, kept, with one shuffle partition. Inputs of one partition
  leave the planner no reason to exchange anything: hash joins without a broadcast, one stage, one task;
- the text of a query must not change from batch to batch: Spark compiles code for it, literals included, and keeps the
  code by its text. Compiling costs more than running. So tables have the same names in every batch, and the next
  batch's take the place of the last one's: dropping them would cost as much as making them;
- the optimizer infers no constraints: for a group of five totals that took longer than everything else together;
- the driver turns small tables into rows itself, one after the other; larger ones are turned into rows by tasks
  (`spark.sql.execution.arrow.localRelationThreshold`, set with the session), which halves a large batch's time. Spark
  does not know the size of those, so a hint makes it join them by hashing too, unless they are very many rows;
- every call into the JVM is a round trip, and on a busy machine it waits for its turn twice. PySpark's
  `createDataFrame` and `toArrow` read their settings with 50 of them; ours are pinned, so what they call is called.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import date
from functools import cache, reduce, wraps
from operator import and_, or_
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from headwater.deltas.extent import Extent
from headwater.deltas.prepared_query import PreparedQueries
from headwater.deltas.selection import COMPARE, Selection
from headwater.model.relation import COUNT

_PREPARED_ROWS = 10_000
"""Up to this many rows, what comes before a query's task takes longer than the task."""
_PREPARED_BYTES = 4 * 2**20
"""They travel with the task, so they must not be large either."""
_ONE_TASK_ROWS = 50_000
_HASHED_ROWS = 2_000_000
_MOST_LIMIT = 2**31 - 1
_ROWS_PER_PIECE = 65_536
_COPIES = "_copies"
_SHUFFLES_PER_CORE = 8
"""Into how many partitions many rows are divided at first; small ones are put together again."""
_numbers = itertools.count()
_names_in_use = threading.Lock()

_making = threading.RLock()

K = TypeVar("K", bound=Hashable)
P = ParamSpec("P")
T = TypeVar("T")


def made_once(make: Callable[P, T]) -> Callable[P, T]:
    """Let all threads have the same: frames of one session cannot be named in another."""
    kept = cache(make)

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> T:
        with _making:
            return kept(*args, **kwargs)  # type: ignore[arg-type]  # sessions and flags are hashable

    return made


def is_connect(spark: SparkSession) -> bool:
    """Tell whether a session is one of Spark Connect: its class is another, with the public methods only."""
    return not isinstance(spark, SparkSession)


def to_dataframe(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a DataFrame.

    Chunks are combined first: PySpark 4.3 silently drops the rows after an empty chunk, and fails over an array column
    without any.
    """
    whole = table.combine_chunks() if table.num_rows else table.schema.empty_table()
    if is_connect(spark):  # it infers no types from a table without rows
        types = None if whole.num_rows else from_arrow_schema(whole.schema, prefer_timestamp_ntz=False)
        return spark.createDataFrame(whole, types)
    return spark._create_from_arrow_table(  # noqa: SLF001 - what `createDataFrame` calls, without its 33 round trips
        whole,
        table.schema.names,
        timezone="UTC",
        prefer_timestamp_ntz=False,
        prefers_large_var_types=False,
        arrow_batch_size=_ROWS_PER_PIECE,
    )


def to_arrow(frame: DataFrame) -> pa.Table:
    """Run a query and return its rows."""
    if is_connect(frame.sparkSession):
        return frame.toArrow()
    collect = frame._collect_as_arrow  # noqa: SLF001 - as above, for `toArrow`
    return pa.Table.from_batches(collect(empty_list_if_zero_records=False))  # type: ignore[operator]  # typed as a column: names of a frame are its columns unless PySpark declares them


def collect_few(frame: DataFrame, few: int) -> pa.Table | None:
    """Run a query and return its rows, None if they are more than few. No more are fetched."""
    found = to_arrow(frame.limit(few + 1) if few < _MOST_LIMIT else frame)
    return found if found.num_rows <= few else None


def small_session(spark: SparkSession) -> SparkSession:
    """Return the session for queries over few rows."""
    return _session(spark, small=True)


@made_once
def large_session(spark: SparkSession) -> SparkSession:
    """Return the session for queries over frames: it decides as it goes how rows are divided and joined."""
    session = session_like(spark)
    if not is_connect(spark):
        session.conf.set("spark.sql.adaptive.enabled", value=True)
        session.conf.set("spark.sql.shuffle.partitions", _SHUFFLES_PER_CORE * spark.sparkContext.defaultParallelism)
    return session


def to_small_dataframe(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return a small table as one partition, so that nothing need be exchanged where it is joined."""
    return to_dataframe(session, table).coalesce(1).hint("shuffle_hash")


def quoted(columns: Iterable[str]) -> list[str]:
    """Return column names as Spark's expressions need them, whatever characters are in them.

    >>> quoted(["id", "a.b", "tick`s"])
    ['`id`', '`a.b`', '`tick``s`']
    """
    return ["`" + column.replace("`", "``") + "`" for column in columns]


def under_keys(spark: SparkSession, frame: DataFrame, keys: pa.Table) -> DataFrame:
    """Return the rows whose columns hold one of the keys, which have the columns' names. NULL is NULL."""
    renamed = keys.rename_columns([f"key_{place}" for place in range(keys.num_columns)])
    same = [F.col(name).eqNullSafe(F.col(f"key_{place}")) for place, name in enumerate(quoted(keys.column_names))]
    return frame.join(F.broadcast(to_dataframe(spark, renamed)), reduce(and_, same), "left_semi")


def passing(extent: Extent) -> Column:
    """Return the test whether a row is in an extent: never true of a row whose NULL it would have to compare."""
    lists = [reduce(and_, map(_passing_one, selections), F.lit(True)) for selections in extent.any_of]
    return reduce(or_, lists, F.lit(False))


def _passing_one(selection: Selection) -> Column:
    [column] = quoted([selection.column])
    values = [_literal(value) for value in selection.values]
    if selection.compare == "equal":
        return F.col(column).isin(*values)
    compared: Column = COMPARE[selection.compare](F.col(column), values[0])
    return compared


def _literal(value: object) -> Column:
    """Return a constant. A date by its text: on its way through Java's own dates one before 1582 becomes another."""
    return F.lit(value.isoformat()).cast("date") if isinstance(value, date) else F.lit(value)


NEGATIVE = "a row would have to exist fewer than zero times"
"""What Spark says where the changes of a table contradict its checkpoint."""


def unfold(counted: DataFrame, columns: list[str]) -> DataFrame:
    """Return each row as often as its count says. A count below zero contradicts what was there and stops the query."""
    copies = F.when(F.col(COUNT) < 0, F.raise_error(F.lit(NEGATIVE))).otherwise(
        F.array_repeat(F.lit(0), F.col(COUNT).cast("int"))
    )
    return counted.withColumn(_COPIES, F.explode(copies)).select(*quoted(columns))


def fresh_name(prefix: str) -> str:
    """Return a name for a temporary view that no other thread uses."""
    return f"{prefix}_{next(_numbers)}"


def stamped_names(keys: Iterable[K]) -> dict[K, str]:
    """Return the names that the tables of a stamped query have, the same in every batch.

    >>> stamped_names(["orders", "customers"])
    {'orders': 'stamped_0', 'customers': 'stamped_1'}
    """
    return {key: f"stamped_{number}" for number, key in enumerate(keys)}


def make_ready(spark: SparkSession) -> None:
    """Let Spark load and compile what the first small query needs, in another thread, while something else is done."""
    if not is_connect(spark):
        threading.Thread(target=_prepared(spark).make_ready, name="first query", daemon=True).start()


def run_stamped(
    spark: SparkSession, sql: str, tables: Mapping[str, pa.Table], *, will_come_again: bool = False
) -> pa.Table:
    """Run a query over tables given by the names it uses (`stamped_names`), and return its rows.

    A query over few rows is planned once (`prepared_query`). Of others, small tables stay where they are until the next
    ones take their names; large ones are let go.
    """
    rows = sum(table.num_rows for table in tables.values())
    size = sum(table.nbytes for table in tables.values())
    if rows <= _PREPARED_ROWS and size <= _PREPARED_BYTES and not is_connect(spark):
        found = _prepared(spark).run(sql, tables, will_come_again=will_come_again)
        if found is not None:
            return found
    small = rows <= _ONE_TASK_ROWS
    session = _session(spark, small=small)
    with _names_in_use:
        try:
            for name, table in tables.items():
                frame = to_dataframe(session, table)
                placed = frame.coalesce(1) if small else frame
                (placed.hint("shuffle_hash") if rows <= _HASHED_ROWS else placed).createOrReplaceTempView(name)
            asked = session.sql(sql)
            if is_connect(spark):  # it looks at a text only when its rows are asked for
                return to_arrow(asked)
        finally:
            if not small:
                for name in tables:
                    session.catalog.dropTempView(name)
    return to_arrow(asked)


def select_over(spark: SparkSession, sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return what a SELECT gives over frames, by the names that it uses. None of them stays in the session.

    Spark Connect looks at a text only when its rows are asked for. So there the frames go along with the text, and a
    text that cannot be run is found by asking for its columns.
    """
    if is_connect(spark):
        given: dict[str, Any] = {f"given_{number}": frame for number, frame in enumerate(frames.values())}
        named = (f"{quoted([name])[0]} AS (SELECT * FROM {{{key}}})" for name, key in zip(frames, given, strict=True))
        text = sql.replace("{", "{{").replace("}", "}}")
        found = spark.sql(f"WITH {', '.join(named)} (\n{text}\n)", **given) if frames else spark.sql(sql)
        assert found.schema is not None, "Spark tells the columns of what it can run"
        return found
    with _names_in_use:  # a text is looked at as soon as it is given
        try:
            for name, frame in frames.items():
                frame.createOrReplaceTempView(name)
            return spark.sql(sql)
        finally:
            for name in frames:
                spark.catalog.dropTempView(name)


def session_like(spark: SparkSession) -> SparkSession:
    """Return a new session with the settings of this one. Over Spark Connect, where each is kept for long, this one."""
    if is_connect(spark):
        return spark
    session = spark.newSession()
    for key, value in _own_settings(spark).items():
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value)
    return session


@made_once
def _own_settings(spark: SparkSession) -> Mapping[str, str | None]:
    """Return the settings that a new session does not have by itself. None stands for one that only it has."""
    new, own = spark.newSession().conf.getAll, spark.conf.getAll
    return {key: own.get(key) for key in {**new, **own} if new.get(key) != own.get(key)}


@made_once
def _prepared(spark: SparkSession) -> PreparedQueries:
    session = session_like(spark)
    session.conf.set("spark.sql.constraintPropagation.enabled", value=False)
    return PreparedQueries(session)


@made_once
def _session(spark: SparkSession, *, small: bool) -> SparkSession:
    session = session_like(spark)
    if not is_connect(spark):
        session.conf.set("spark.sql.shuffle.partitions", 1 if small else spark.sparkContext.defaultParallelism)
    session.conf.set("spark.sql.constraintPropagation.enabled", value=False)
    return session
