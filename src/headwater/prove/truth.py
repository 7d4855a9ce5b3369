"""What a view should be at every tick: its text over whole relations, in DuckDB, and on Spark where that differs.

DuckDB is fast and a second opinion; but a view is written in Spark's SQL. So where DuckDB cannot run a text, or says
something else than the view shows, Spark runs the author's text over the relations at that tick, and its word counts.
Aggregates of doubles are what they are defined to be in both engines, by the judge's own functions: what Spark's own
SUM gives depends on the order in which it meets the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlglot import exp

from headwater.deltas.compare import Row, hashable_row
from headwater.deltas.on_spark import to_dataframe
from headwater.judge.audit import AuditedChange
from headwater.judge.complete_orders import columns_by_relation, output_columns, read_text, with_complete_orders
from headwater.judge.exact_sum import EXACT
from headwater.judge.grade_changes import History
from headwater.judge.replay import ReplayedView, replay
from headwater.model.position import Tick
from headwater.model.relation import Relation, RelationName
from headwater.prove.chance import RELATIONS
from headwater.prove.trial import TrialView
from headwater.sources.scripted import Changes, Values, table_of
from headwater.views.laws.exact_sums import FloatAggregate, write_aggregates
from headwater.views.text.spark_text import spark_text

_PREFIX = "truth_"


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The sources' transactions, as they were scripted, and the tick that each of them got."""

    transactions: Sequence[tuple[str, Changes]]
    ticks: Sequence[tuple[Tick, str, int]]

    @cached_property
    def _by_tick(self) -> dict[Tick, Changes]:
        """The changes of every tick: the n-th transaction of a source has identity n."""
        numbers: Counter[str] = Counter()
        by_identity = {}
        for source, changes in self.transactions:
            numbers[source] += 1
            by_identity[source, numbers[source]] = changes
        return {tick: by_identity[source, identity] for tick, source, identity in self.ticks}

    def ticks_of(self, relations: Collection[RelationName]) -> set[Tick]:
        """Return the ticks at which one of these relations changed."""
        return {tick for tick, changes in self._by_tick.items() if any(name in changes for name in relations)}

    def by_duckdb(self, views: Sequence[TrialView], ticks: Mapping[str, Collection[Tick]]) -> dict[str, History]:
        """Return the right states of views at these ticks, by name. A view that DuckDB cannot run is left out."""
        return replay(
            relations=RELATIONS,
            views=[
                ReplayedView(
                    name=view.name,
                    sql=view.sql,
                    birth=min(ticks[view.name]),
                    lower=view.lower,
                    ticks=frozenset(ticks[view.name]),
                )
                for view in views
            ],
            history=self._audited,
            before=(),
            ticks=self.ticks,
            unable=lambda _: None,
        )

    @cached_property
    def _audited(self) -> list[AuditedChange]:
        """The transactions row by row, as a database's own triggers would have told."""
        numbers: Counter[str] = Counter()
        found = []
        for source, changes in self.transactions:
            numbers[source] += 1
            for relation in RELATIONS:
                found += _audited_rows(source, numbers[source], relation, changes)
        return found

    def on_spark(self, spark: SparkSession, view: TrialView, ticks: Sequence[Tick]) -> Iterator[Counter[Row]]:
        """Yield what the author's text gives at ticks, in their order, on Spark."""
        trees = _completed(view)
        texts: list[str] = []
        rows: dict[RelationName, Counter[Values]] = {relation.name: Counter() for relation in RELATIONS}
        done = Tick(0)
        for tick in ticks:
            for at in range(done + 1, tick + 1):
                for name, changes in self._by_tick.get(Tick(at), {}).items():
                    rows[name].update(dict(changes))
            done = tick
            for relation in RELATIONS:
                table = table_of(relation, list(rows[relation.name].elements()))
                to_dataframe(spark, table).createOrReplaceTempView(_placed(relation.name))
            texts = texts or _by_definition(spark, view, trees)
            for (lower_view, _), below in zip(view.lower, texts[:-1], strict=True):
                spark.sql(below).createOrReplaceTempView(lower_view)
            found = spark.sql(texts[-1]).toArrow()
            yield Counter(map(hashable_row, zip(*(column.to_pylist() for column in found.columns), strict=True)))


def _completed(view: TrialView) -> list[exp.Expr]:
    """Return the queries of the views that a view reads, and its own, with all orders, over the placed relations."""
    relation_columns = columns_by_relation(RELATIONS)
    trees = []
    for name, sql in (*view.lower, (view.name, view.sql)):
        tree = with_complete_orders(read_text(sql), relation_columns)
        relation_columns[name,] = output_columns(tree, relation_columns)
        trees.append(_renamed(tree))
    return trees


def _by_definition(spark: SparkSession, view: TrialView, trees: Sequence[exp.Expr]) -> list[str]:
    """Return the texts of queries with their aggregates of doubles as they are defined, for Spark."""
    for function in set(EXACT.values()):
        spark.udf.register(_placed_function(function), _of_rows(function), "double")

    def are_floating(text: str) -> list[bool]:
        try:
            return [one.dataType.typeName() in {"float", "double"} for one in spark.sql(text).schema]
        except PySparkException:
            return []

    texts = []
    for name, tree in zip((*(name for name, _ in view.lower), None), trees, strict=True):
        texts.append(spark_text(write_aggregates(tree, are_floating, _exact_call)))
        if name is not None:
            spark.sql(texts[-1]).createOrReplaceTempView(name)
    return texts


def _of_rows(function: Callable[..., float | None]) -> Callable[[Sequence[Sequence[float | None]]], float | None]:
    """Return a function of lists of values as one of a list of rows: they keep a NULL beside its partner."""
    return lambda rows: function(*zip(*rows, strict=True)) if rows else None


def _exact_call(found: FloatAggregate) -> exp.Expr:
    """Return the call on Spark that gives an aggregate of doubles: of the list of all rows of its arguments."""
    over = f" OVER {found.over('spark')}" if found.window else ""
    distinct = "DISTINCT " if found.is_distinct else ""
    values = ", ".join(f"CAST({spark_text(argument)} AS DOUBLE)" for argument in found.arguments)
    called = _placed_function(EXACT[found.function])
    return sqlglot.parse_one(f"{called}(COLLECT_LIST({distinct}ARRAY({values})){over})", read="spark")


def _placed_function(function: Callable[..., float | None]) -> str:
    return f"{_PREFIX}{function.__name__}"


def states(history: History, through: Tick) -> Iterator[tuple[Tick, Counter[Row]]]:
    """Yield the ticks of a history with their states. A state is valid until the next one is asked for."""
    state = Counter(history.start)
    for tick in range(history.birth, through + 1):
        for row, count in history.changes.get(Tick(tick), {}).items() if tick > history.birth else ():
            state[row] += count
            if not state[row]:
                del state[row]
        yield Tick(tick), state


def state_at(history: History, tick: Tick) -> Counter[Row]:
    """Return the state of a history at a tick."""
    state = Counter(history.start)
    for at, changes in history.changes.items():
        if at <= tick:
            state.update(dict(changes))
    return Counter({row: count for row, count in state.items() if count})


def _renamed(tree: exp.Expr) -> exp.Expr:
    """Return the query with the names that relations have here. The rest of a FROM item stays."""
    for table in list(tree.find_all(exp.Table)):
        if table.db:
            name = RelationName(source=table.db, name=table.name)
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
            table.set("this", exp.to_identifier(_placed(name)))
            table.set("db", None)
    return tree


def _placed(name: RelationName) -> str:
    return f"{_PREFIX}{name.source}_{name.name}"


def _audited_rows(source: str, identity: int, relation: Relation, changes: Changes) -> list[AuditedChange]:
    found = []
    for row, count in sorted(changes.get(relation.name, {}).items(), key=lambda one: one[1]):
        values = {
            column.name: None if value is None else str(value)
            for column, value in zip(relation.columns, row, strict=True)
        }
        change = AuditedChange(
            source=source,
            identity=identity,
            relation=relation.name,
            old=values if count < 0 else None,
            new=values if count > 0 else None,
        )
        found += [change] * abs(count)
    return found
