"""Install what a published algorithm found: the sum of its terms on Spark, in one job for any number of terms.

The twin of `headwater_lab/in_memory/install`. An install that goes by keys also looks rows up in the view itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from headwater.deltas.lookup import RowRequest, look_up, restricted
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import run_stamped, stamped_names
from headwater.deltas.stored_bag import ALL_ROWS, held
from headwater.engine.state.live_view import LiveView
from headwater.engine.state.stored_segment import StoredSegment
from headwater.engine.state.view_lookup import stored_view
from headwater.maintenance.published.messages import Install
from headwater.maintenance.published.terms import Term
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.views.laws.join import TERM, terms_sql
from headwater.views.steps.join import JoinView
from headwater.views.steps.keys import key_outputs, shown_places


def install_on_spark(
    spark: SparkSession, view: LiveView, installs: Sequence[Install[ArrowBag]], few_rows: int
) -> pa.Table:
    """Return the signed rows by which installs change a view, one after another, stamped with their ticks."""
    schema = view.table.changes.schema()
    gained = _sum_of_terms(spark, view.resolved.join, schema, view.frontier, installs)
    if not any(install.distinct or install.removed or install.modified for install in installs):
        return gained.table
    table = stored_view(spark, view.resolved.view, view.table, view.frontier, few_rows, ALL_ROWS)
    changed = ArrowBag(schema.empty_table())
    for install in installs:
        of_tick = ArrowBag(gained.table.filter(pc.equal(gained.table[TICK], install.upto)))
        removed = _held(table, view, changed, install, install.removed)
        if install.distinct:
            of_tick = _not_there_yet(table, view, install, of_tick, changed, removed)
        changed = changed.plus(removed.negated())
        for alias, rows in install.modified.items():
            changed = changed.plus(_modification(table, view, changed, install, alias, rows))
        changed = changed.plus(of_tick)
    return changed.net().table


def _modification(
    table: StoredSegment, view: LiveView, before: ArrowBag, install: Install[ArrowBag], alias: str, new: ArrowBag
) -> ArrowBag:
    """Return what changes where rows of a view show new columns of an occurrence, under keys that stay."""
    join, names = view.resolved.join, view.table.schema.names
    key, columns = join.occurrence(alias).relation.key, _key_columns(join, alias)
    old = _held(table, view, before, install, {alias: new.keys(key, new, key)}).net()
    by_key = {tuple(row[column] for column in key): row for row in new.table.to_pylist()}
    found = [by_key[keys] for keys in zip(*(old.table[column].to_pylist() for column in columns), strict=True)]
    rows = old.table
    for place, column in shown_places(join, alias).items():
        field = rows.schema.field(names[place])
        values = pa.array([row[column] for row in found], new.table.schema.field(column).type).cast(field.type)
        rows = rows.set_column(rows.column_names.index(field.name), field, values)
    return ArrowBag(rows).plus(old.negated()).net()


def _sum_of_terms(
    spark: SparkSession, view: JoinView, schema: pa.Schema, lo: Tick, installs: Sequence[Install[ArrowBag]]
) -> ArrowBag:
    """Run the view's own conditions over the rows of all terms at once. Ticks are counted from `lo` on Spark."""
    numbered = [(Tick(install.upto - lo), term) for install in installs for term in install.terms]
    if not numbered:
        return ArrowBag(schema.empty_table())
    names = stamped_names(occurrence.alias for occurrence in view.occurrences)
    tables = {
        name: pa.concat_tables([_rows(term, alias, tick, number) for number, (tick, term) in enumerate(numbered)])
        for alias, name in names.items()
    }
    found = run_stamped(spark, terms_sql(view, names), tables)
    ticks = pc.add(found[TICK], pa.scalar(lo, pa.int64()))
    stamped = found.set_column(found.column_names.index(TICK), TICK, ticks)
    return ArrowBag(stamped.select(schema.names).cast(schema))


def _rows(term: Term[ArrowBag], alias: str, tick: Tick, number: int) -> pa.Table:
    bag = term.bound[alias].restamped(tick).net()
    return bag.table.append_column(TERM, pa.repeat(pa.scalar(number, pa.int64()), len(bag)))


def _not_there_yet(
    table: StoredSegment,
    view: LiveView,
    install: Install[ArrowBag],
    gained: ArrowBag,
    before: ArrowBag,
    removed: ArrowBag,
) -> ArrowBag:
    """Return the rows, each once, that an install adds to a view in which no row is there twice.

    `before` is what the installs before it changed; the view's table does not hold that yet.
    """
    first = view.resolved.join.occurrences[0].alias
    columns = _key_columns(view.resolved.join, first)
    keys = {first: gained.keys(columns, gained, columns)}
    there = _held(table, view, before, install, keys).plus(removed.negated()).net()
    there = _with_counts(there, 1)
    return there.widest(_with_counts(gained, 1)).plus(there.negated())


def _with_counts(bag: ArrowBag, count: int) -> ArrowBag:
    """Return the rows of positive count, each as often as said."""
    kept = bag.table.filter(pc.greater(bag.table[COUNT], 0))
    ones = pa.repeat(pa.scalar(count, pa.int64()), kept.num_rows)
    return ArrowBag(kept.set_column(kept.column_names.index(COUNT), COUNT, ones))


def _held(table: StoredSegment, view: LiveView, before: ArrowBag, install: Install[ArrowBag], keys: Any) -> ArrowBag:
    """Return the rows that a view holds before an install under some keys of its occurrences, stamped with its tick."""
    schema = view.table.changes.schema()
    found = ArrowBag(schema.empty_table())
    for alias, values in keys.items():
        if len(values):
            columns = _key_columns(view.resolved.join, alias)
            within = restricted(columns, values)
            request = RowRequest(relation=table.relation.name, wanted=tuple(view.table.schema.names), within=within)
            stored = ArrowBag(held(look_up(table, request).rows).table.select(schema.names).cast(schema))
            rows = stored.plus(before.matching(columns, values)).restamped(install.upto).net()
            found = found.widest(rows)
    return found


def _key_columns(view: JoinView, alias: str) -> tuple[str, ...]:
    return tuple(view.outputs[place].name for place in key_outputs(view, alias))
