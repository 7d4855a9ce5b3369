"""Replay an independent history tick by tick, and recompute views at every tick from their original SQL.

    audited changes, by (source, transaction) ─┐
                                               ├──► base rows after tick t ──► the view's text in DuckDB ──► Δ(t)
    the order of ticks, from the change log  ──┘

The change log tells only in which order transactions were accepted. What they did comes from the sources' own triggers,
and what a view should be comes from another engine; so an error in capture, in rebasing or in Spark's plan cannot hide.

Every text is planned once and run at many ticks. DuckDB would plan it with the statistics of that moment, and a join
would then miss rows that came later and lie outside of them; so statistics are switched off.

The text is the author's; of its meaning only orders are changed that it leaves open (`complete_orders`).

Sums of doubles are exact and rounded once, as they are defined (`views.float_sums`), and computed by `exact_sum`, as
is what is made of them (`views.moments`): those of DuckDB depend on the order of rows. DuckDB says which sums are of
doubles.

Every transaction that was audited must have exactly one tick, and every tick an audited transaction; anything else is
an `UnfaithfulLog`. Transactions that are said to have been there before the log began have none: they make tick 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Self, TypeAlias

import sqlglot
from sqlglot import exp

from headwater.deltas.compare import Row, hashable_row
from headwater.errors import UnfaithfulLog
from headwater.judge.audit import AuditedChange
from headwater.judge.complete_orders import columns_by_relation, output_columns, read_text, with_complete_orders
from headwater.judge.exact_sum import EXACT
from headwater.judge.grade_changes import History
from headwater.model.position import Tick
from headwater.model.relation import DEFAULT_SCHEMA, Relation, RelationName
from headwater.views.laws.exact_sums import FloatAggregate, write_aggregates

if TYPE_CHECKING:
    import duckdb

_BY_STATISTICS = "statistics_propagation,compressed_materialization,join_filter_pushdown"
"""What DuckDB does by the values that are there when it plans."""

TransactionKey: TypeAlias = tuple[str, int]
"""A source, and what it calls a transaction."""

_TYPES = {
    "boolean": "BOOLEAN",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedView:
    """A view to recompute: its original text, and the tick it was born at.

    `lower` has (name, original text) pairs of the views that it reads, itself or through others, each after those that
    it reads.
    """

    name: str
    sql: str
    birth: Tick
    lower: tuple[tuple[str, str], ...] = ()
    ticks: frozenset[Tick] | None = None
    """The ticks whose states are needed; without them, every one."""


def replay(
    *,
    relations: Sequence[Relation],
    views: Sequence[ReplayedView],
    history: Sequence[AuditedChange],
    before: Collection[TransactionKey],
    ticks: Sequence[tuple[Tick, str, int]],
    progress: Callable[[Tick], None] = lambda _: None,
    unable: Callable[[str], None] | None = None,
) -> dict[str, History]:
    """Return what every view should have been at its birth, and what should have changed at each tick after.

    `history` holds each source's entries in the order its triggers wrote them; `ticks` gives every accepted transaction
    as (tick, source, identity), in the order of ticks, the parts of a global one with the same tick; `progress` is
    called for every tick that was replayed, `unable` for every view that DuckDB cannot run, which is then left out;
    without it, DuckDB's error is raised.
    """
    by_transaction: dict[TransactionKey, list[AuditedChange]] = defaultdict(list)
    for change in history:
        by_transaction[change.source, change.identity].append(change)
    require_faithful(by_transaction.keys(), before, [(source, identity) for _, source, identity in ticks])
    with BaseRelations(relations) as stage:
        for key in before:
            stage.apply(by_transaction.get(key, ()))
        recomputed: dict[str, RecomputedView] = {}
        for view in views:
            with _left_out(recomputed, view.name, unable):
                recomputed[view.name] = RecomputedView(stage, view)
                recomputed[view.name].look(Tick(0), set(recomputed[view.name].relations))
        for tick, parts in groupby(ticks, key=itemgetter(0)):
            changed = set()
            for _, source, identity in parts:
                changed |= stage.apply(by_transaction[source, identity])
            for name, one in list(recomputed.items()):
                with _left_out(recomputed, name, unable):
                    one.look(tick, changed)
            progress(tick)
        return {name: one.history() for name, one in recomputed.items()}


@contextmanager
def _left_out(recomputed: dict[str, RecomputedView], view: str, unable: Callable[[str], None] | None) -> Iterator[None]:
    """Leave out a view that DuckDB cannot run, if the caller collects those."""
    import duckdb  # noqa: PLC0415 - only a replay needs it

    try:
        yield
    except duckdb.Error:
        if unable is None:
            raise
        recomputed.pop(view, None)
        unable(view)


def require_faithful(
    audited: Collection[TransactionKey], before: Collection[TransactionKey], accepted: Sequence[TransactionKey]
) -> None:
    """Refuse a log in which some transaction is missing, stands twice, or was never there.

    >>> require_faithful({("shop", 1), ("shop", 2)}, {("shop", 1)}, [("shop", 2)])
    >>> require_faithful({("shop", 1), ("shop", 2)}, {("shop", 1)}, [("shop", 2), ("shop", 2)])
    Traceback (most recent call last):
    headwater.errors.UnfaithfulLog: ...
    """
    counts = Counter(accepted)
    found = {
        "missing": sorted(set(audited) - set(before) - counts.keys()),
        "more than once": sorted(key for key, count in counts.items() if count > 1),
        "never audited": sorted(counts.keys() - set(audited)),
        "older than the log": sorted(counts.keys() & set(before)),
    }
    wrong = [f"{what}: {_several(keys)}" for what, keys in found.items() if keys]
    if wrong:
        raise UnfaithfulLog(
            "the change log does not hold every transaction exactly once",
            code="HW-701",
            detail="; ".join(wrong),
            hint="this is a bug of Headwater: please report it",
        )


def _several(keys: Sequence[TransactionKey]) -> str:
    shown = ", ".join(f"{source}:{identity}" for source, identity in keys[:3])
    return shown if len(keys) <= 3 else f"{shown} and {len(keys) - 3} more"  # noqa: PLR2004 - as many as are shown


class BaseRelations:
    """The base relations in DuckDB, after the transactions that were applied so far. A context manager."""

    def __init__(self, relations: Sequence[Relation]) -> None:
        """Make the relations, empty."""
        import duckdb  # noqa: PLC0415 - only a replay needs it
        from duckdb.func import FunctionNullHandling  # noqa: PLC0415 - as above

        self.connection: duckdb.DuckDBPyConnection = duckdb.connect()
        run = self.connection.execute
        run("SET TimeZone = 'UTC'")
        run("SET threads = 1")  # small tables: more threads only wait for each other
        run(f"SET disabled_optimizers = '{_BY_STATISTICS}'")
        for source in dict.fromkeys(relation.name.source for relation in relations):
            run(f"ATTACH ':memory:' AS {quoted_name(source)}")
        for relation in relations:
            run(
                f"CREATE SCHEMA IF NOT EXISTS {quoted_name(relation.name.source)}.{quoted_name(_schema(relation.name))}"
            )
            columns = ", ".join(f"{quoted_name(column.name)} {duckdb_type(column.type)}" for column in relation.columns)
            run(f"CREATE TABLE {place_of(relation.name)} ({columns})")
        self._relations = {relation.name: relation for relation in relations}
        self.columns = columns_by_relation(relations)
        for relation in relations:
            run(f"PREPARE {quoted_name(f'into {relation.name}')} AS {_insert_sql(relation)}")
            run(f"PREPARE {quoted_name(f'from {relation.name}')} AS {_delete_sql(relation)}")
        numbers, special = duckdb.list_type(duckdb.sqltypes.DOUBLE), FunctionNullHandling.SPECIAL
        for function in dict.fromkeys(EXACT.values()):
            self.connection.create_function(
                function.__name__,
                function,
                [numbers for _ in signature(function).parameters],
                duckdb.sqltypes.DOUBLE,
                null_handling=special,
            )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Let DuckDB go."""
        self.connection.close()

    def add_views(self, above: str, lower: Mapping[str, exp.Expr]) -> str:
        """Make the views that another one reads in DuckDB, and return the schema that holds them."""
        if not lower:
            return "main"
        schema = f"below_{above}"
        self.connection.execute(f"CREATE SCHEMA {quoted_name(schema)}")
        self.connection.execute(f"SET search_path = '{schema}'")
        for name, tree in lower.items():
            text = self.text(tree)
            self.connection.execute(f"CREATE VIEW {quoted_name(schema)}.{quoted_name(name)} AS {text}")
        return schema

    def text(self, tree: exp.Expr) -> str:
        """Return a query of Spark's as DuckDB's, with its sums of doubles as they are defined. All names are quoted."""
        return write_aggregates(tree, self._are_floating, _exact_call).sql(dialect="duckdb", identify=True)

    def _are_floating(self, text: str) -> list[bool]:
        import duckdb  # noqa: PLC0415 - as above

        asked = sqlglot.parse_one(text, read="spark").sql(dialect="duckdb", identify=True)
        try:
            described = self.connection.execute(f"DESCRIBE {asked}").fetchall()
        except duckdb.Error:
            return []
        return [kind in {"FLOAT", "DOUBLE"} for _, kind, *_ in described]

    def apply(self, changes: Sequence[AuditedChange]) -> set[RelationName]:
        """Do what one transaction did, and return the relations it did something to."""
        applied = set()
        for change in changes:
            relation = self._relations.get(change.relation)
            if relation is None:
                continue
            applied.add(change.relation)
            if change.old is not None:
                [gone] = self._execute(f"from {relation.name}", relation, change.old).fetchone() or (0,)
                assert gone == 1, f"an audited row was there before it went: {change}"
            if change.new is not None:
                self._execute(f"into {relation.name}", relation, change.new)
        return applied

    def _execute(self, prepared: str, relation: Relation, row: Mapping[str, str | None]) -> duckdb.DuckDBPyConnection:
        literals = ", ".join(_literal(row[column.name]) for column in relation.columns)
        return self.connection.execute(f"EXECUTE {quoted_name(prepared)}({literals})")


class RecomputedView:
    """One view's right states, as changes."""

    def __init__(self, stage: BaseRelations, view: ReplayedView) -> None:
        """Plan the view's text, once."""
        self.view = view
        self._run = stage.connection.execute
        relation_columns = dict(stage.columns)
        below = {}
        for name, sql in view.lower:
            below[name] = with_complete_orders(read_text(sql), relation_columns)
            relation_columns[(name,)] = output_columns(below[name], relation_columns)
        own = with_complete_orders(read_text(view.sql), relation_columns)
        self.relations = {
            _relation_name(table) for tree in (*below.values(), own) for table in tree.find_all(exp.Table)
        }
        path = stage.add_views(view.name, below)
        self._run(f"SET search_path = '{path}'")
        self._prepared = quoted_name(f"view {view.name}")
        self._run(f"PREPARE {self._prepared} AS {stage.text(own)}")
        self._is_stale = True
        self._state: Counter[Row] = Counter()
        self._start: Counter[Row] = Counter()
        self._changes: dict[Tick, Counter[Row]] = {}

    def look(self, tick: Tick, changed: set[RelationName]) -> None:
        """Recompute the view after a tick, if the tick is needed and something that the view reads has changed."""
        self._is_stale |= bool(changed & self.relations)
        is_asked = self.view.ticks is None or tick in self.view.ticks
        if not (self._is_stale and is_asked):
            return
        self._is_stale = False
        before, self._state = self._state, self.rows()
        if tick <= self.view.birth:
            self._start = self._state
            return
        other = {row for row, _ in before.items() ^ self._state.items()}
        if other:
            self._changes[tick] = Counter({row: self._state[row] - before[row] for row in other})

    def rows(self) -> Counter[Row]:
        """Return what the view's text gives over the relations as they are now."""
        return _bag(self._run(f"EXECUTE {self._prepared}"))

    def history(self) -> History:
        """Return its states so far."""
        return History(birth=self.view.birth, start=self._start, changes=self._changes)


def _bag(result: duckdb.DuckDBPyConnection) -> Counter[Row]:
    """Return the rows of a result. Moments with a zone by way of Arrow: DuckDB's own way needs another library."""
    if any(str(column[1]) == "TIMESTAMP WITH TIME ZONE" for column in result.description or ()):
        columns = result.to_arrow_table().columns
        rows: list[Row] = list(zip(*(column.to_pylist() for column in columns), strict=True))
    else:
        rows = result.fetchall()
    try:
        return Counter(rows)
    except TypeError:  # a list has no hash
        return Counter(map(hashable_row, rows))


def _exact_call(found: FloatAggregate) -> exp.Expr:
    """Return the call of DuckDB's that gives an aggregate of doubles: of the lists of all values."""
    over = f" OVER {found.over('duckdb')}" if found.window else ""
    distinct = "DISTINCT " if found.is_distinct else ""
    values = [f"CAST({argument.sql(dialect='duckdb')} AS DOUBLE)" for argument in found.arguments]
    listed = ", ".join(f"LIST({distinct}{value}){over}" for value in values)
    return sqlglot.parse_one(f"{EXACT[found.function].__name__}({listed})", read="duckdb")


def _insert_sql(relation: Relation) -> str:
    return f"INSERT INTO {place_of(relation.name)} VALUES ({', '.join(_parameter(c.type) for c in relation.columns)})"


def _delete_sql(relation: Relation) -> str:
    """Delete one row that is just this one: a bag may hold it several times."""
    same = " AND ".join(f"{quoted_name(c.name)} IS NOT DISTINCT FROM {_parameter(c.type)}" for c in relation.columns)
    place = place_of(relation.name)
    return f"DELETE FROM {place} WHERE rowid = (SELECT min(rowid) FROM {place} WHERE {same})"


def _literal(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def _parameter(spark_type: str) -> str:
    """Return the SQL that reads a bound text as a value of a type. PostgreSQL writes bytes in hex, after two signs."""
    return "unhex(substr(?, 3))" if spark_type == "binary" else f"CAST(? AS {duckdb_type(spark_type)})"


def duckdb_type(spark_type: str) -> str:
    """Return DuckDB's name for a type.

    >>> duckdb_type("array<decimal(10,2)>")
    'DECIMAL(10,2)[]'
    """
    if spark_type.startswith("array<"):
        return f"{duckdb_type(spark_type[6:-1])}[]"
    return _TYPES.get(spark_type, spark_type.upper())


def _relation_name(table: exp.Table) -> RelationName:
    """Return what a view's text names as source.table or source.schema.table."""
    if table.catalog:
        return RelationName(source=table.catalog, schema=table.db, name=table.name)
    return RelationName(source=table.db, name=table.name)


def place_of(name: RelationName) -> str:
    """Return a relation's name in DuckDB."""
    return f"{quoted_name(name.source)}.{quoted_name(_schema(name))}.{quoted_name(name.name)}"


def _schema(name: RelationName) -> str:
    """Return the schema in DuckDB, whose default schema is `main`."""
    return "main" if name.schema == DEFAULT_SCHEMA else name.schema


def quoted_name(name: str) -> str:
    """Return a name in quotes."""
    return '"' + name.replace('"', '""') + '"'
