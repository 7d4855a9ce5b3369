"""What a view should be at every tick: its text over whole relations, in DuckDB, and on Spark where that differs.

DuckDB is fast and a second opinion; but a view is written in Spark's SQL. So where DuckDB cannot run a text, or says
something else than the view shows, Spark runs the author's text over the relations at that tick, and its word counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import sqlglot
from pyspark.sql import SparkSession
from sqlglot import exp

from headwater.deltas.on_spark import to_dataframe
from headwater.judge.audit import AuditedChange
from headwater.judge.compare import Row
from headwater.judge.grade_changes import History
from headwater.judge.replay import ReplayedView, replay
from headwater.judge.settle_orders import settled_text
from headwater.position import Tick
from headwater.prove.chance import RELATIONS
from headwater.relation import Relation, RelationName
from headwater.sources.scripted import Changes, Values, table_of

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

    def by_duckdb(self, views: Mapping[str, str], births: Mapping[str, Tick]) -> dict[str, History]:
        """Return what views should have been, by name; one that DuckDB cannot run is left out."""
        import duckdb  # noqa: PLC0415 - only who proves needs it

        asked = [ReplayedView(name=name, sql=sql, birth=births[name]) for name, sql in views.items()]
        known = [view for view in asked if _runs(view)]
        try:
            return self._replayed(known)
        except duckdb.Error:  # one of them fails on rows; the others are asked for one by one
            found: dict[str, History] = {}
            for view in known:
                with suppress(duckdb.Error):
                    found |= self._replayed([view])
            return found

    def _replayed(self, views: Sequence[ReplayedView]) -> dict[str, History]:
        return replay(relations=RELATIONS, views=views, history=self._audited, before=(), ticks=self.ticks)

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

    def on_spark(self, spark: SparkSession, sql: str, tick: Tick) -> Counter[Row]:
        """Return what the author's text gives at a tick, on Spark."""
        for relation in RELATIONS:
            rows: Counter[Values] = Counter()
            for at, changes in self._by_tick.items():
                if at <= tick:
                    rows.update(dict(changes.get(relation.name, {})))
            table = table_of(relation, list(rows.elements()))
            to_dataframe(spark, table).createOrReplaceTempView(_placed(relation.name))
        found = spark.sql(_renamed(settled_text(sql, RELATIONS))).toArrow()
        return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _runs(view: ReplayedView) -> bool:
    """Tell whether DuckDB can run a text at all: over tables without rows."""
    import duckdb  # noqa: PLC0415 - as above

    try:
        replay(relations=RELATIONS, views=[view], history=(), before=(), ticks=())
    except duckdb.Error:
        return False
    return True


def states(history: History, through: Tick) -> Iterator[tuple[Tick, Counter[Row]]]:
    """Yield the ticks of a history with their states; a state is valid until the next one is asked for."""
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


def _renamed(sql: str) -> str:
    tree = sqlglot.parse_one(sql, read="spark")
    for table in list(tree.find_all(exp.Table)):
        if table.db:
            name = RelationName(source=table.db, name=table.name)
            new = exp.to_table(_placed(name))
            new.set("alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name)))
            table.replace(new)
    return tree.sql(dialect="spark")


def _placed(name: RelationName) -> str:
    return f"{_PREFIX}{name.source}_{name.name}"


def _audited_rows(source: str, identity: int, relation: Relation, changes: Changes) -> list[AuditedChange]:
    found = []
    for row, count in sorted(changes.get(relation.name, {}).items(), key=lambda one: one[1]):
        told = {
            column.name: None if value is None else str(value)
            for column, value in zip(relation.columns, row, strict=True)
        }
        change = AuditedChange(
            source=source,
            identity=identity,
            relation=relation.name,
            old=told if count < 0 else None,
            new=told if count > 0 else None,
        )
        found += [change] * abs(count)
    return found
