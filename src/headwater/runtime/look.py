"""Look rows up in a view's own table: what a self-maintaining algorithm reads before it asks a source.

One Spark job for each look: the table's rows at the tick that is committed, joined with the keys. What was installed
since and is not committed is not seen; the answer says so, and is rebased from the committed tick on. On a fast network
this is dearer than asking the source: it saves messages, not time.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.deltas.on_arrow import ArrowBag, ArrowKeys
from headwater.maintenance.messages import Answered, Fragment, Part, Query
from headwater.maintenance.questions import Probe, SawTicks
from headwater.position import Tick
from headwater.relation import COUNT, TICK
from headwater.runtime.install import stored_rows
from headwater.runtime.live_view import LiveView
from headwater.views.keys import row_outputs
from headwater.views.normal_form import JoinView
from headwater.warehouse.kept_table import KeptTable


def look_on_spark(spark: SparkSession, view: LiveView, join: JoinView, query: Query[ArrowBag]) -> Answered[ArrowBag]:
    """Answer a query to the view itself, as of the tick that its table is committed to."""
    fragments = tuple((_found(spark, view, join, part),) for part in query.parts)
    return Answered(number=query.number, fragments=fragments, sight=SawTicks(upto=view.lo))


def _found(spark: SparkSession, view: LiveView, join: JoinView, part: Part[ArrowBag]) -> Fragment[ArrowBag]:
    """Return the rows of an occurrence that a view shows under some keys, each once, and the keys that were found."""
    (step,) = part.steps
    assert isinstance(part.keys, ArrowKeys), "a look goes by keys"
    name = join.occurrence(step.alias).relation.name
    rows = shown_rows(spark, view.table, view.lo, join, step.alias, step.columns, part.keys)
    keys = rows.keys(step.columns, rows, step.columns)
    return Fragment(probe=Probe(relation=name, wanted=join.relations[name], columns=step.columns, keys=keys), rows=rows)


def shown_rows(
    spark: SparkSession,
    table: KeptTable,
    tick: Tick,
    join: JoinView,
    alias: str,
    columns: tuple[str, ...],
    keys: ArrowKeys,
) -> ArrowBag:
    """Return the rows of an occurrence that a view's table shows under some keys, each once, at a tick."""
    relation = join.occurrence(alias).relation
    wanted = join.relations[relation.name]
    names = [join.outputs[place].name for place in row_outputs(join, alias)]
    stored = stored_rows(spark, table, tick, tuple(names[wanted.index(column)] for column in columns), keys).table
    shown = pa.table([stored[name] for name in names], names=list(wanted)).cast(relation.arrow_schema(wanted))
    for name in (TICK, COUNT):
        shown = shown.append_column(name, stored[name])
    return each_once(ArrowBag(shown))


def each_once(rows: ArrowBag) -> ArrowBag:
    """Return every row that is there, once."""
    once = rows.net().table
    ones = pa.repeat(pa.scalar(1, pa.int64()), once.num_rows)
    return ArrowBag(once.set_column(once.column_names.index(COUNT), COUNT, ones))
