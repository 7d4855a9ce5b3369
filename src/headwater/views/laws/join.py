"""The law of maintenance as one SQL query: a view's changes per tick, from stamped rows.

Every row of a relation carries a stamp `_tick` (`lo` if it was there before the batch, else the tick of its
transaction) and a signed `_count`. Joins, selections and bag projections are linear in each input, so

    ΔV(s) = Σ over joinable combinations of rows whose largest stamp is s,  counts multiplied

and one query gives ΔV(s) for every tick s of a batch:

    SELECT <outputs>, GREATEST(o0._tick, o1._tick, ...) AS _tick, o0._count * o1._count * ... AS _count
    FROM o0 JOIN o1 ON ... WHERE ... AND GREATEST(...) > lo          -- summed per row and tick, zeros dropped

Phantoms. Stamps also combine rows that never met:

    tick   5              7
    R      -(1, 10)                       R's row leaves at 5,
    S                     +(1, 0)         its partner arrives at 7; together they were never there

The combinations (old R, S@7) and (R@5, S@7) both appear at tick 7, as +1 and -1. They cancel, but `x / y` on either
raises. So if any condition or output may raise, raw columns are joined on the other conditions and netted first; what
is left are real rows, and only on them the rest is evaluated.

Invariants
1. What may raise is evaluated on netted rows only. Spark pushes filters on grouping columns below an aggregation, so
   such a filter also asks for the netted count, which exists only above it (CASE WHEN `_count` <> 0 THEN ...).
2. No name in the query can collide: relations are o0, o1, ..., their columns o0_c0, ..., outputs v0, v1, ...
3. A view is born from its author's text with other table names (`renamed_sql`), after the texts of the views that it
   names, with orders completed that they leave open (`compile.complete_orders`), and nothing more. Judges complete them
   in their own way.

Spark's GROUP BY makes -0.0 and 0.0 one value, and all NaN one value; so does comparing bags of rows, and -0.0 in a
source is kept as 0.0. A view that tells -0.0 from 0.0 (by casting it to a string, say) may therefore differ from
recomputation in that.
A fallible condition on one relation is evaluated after the joins, on rows that have partners; Spark, running the
original text, is free to evaluate it before and to raise on a row without a partner. Ours raises less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headwater.model.relation import COUNT, TICK, RelationName
from headwater.views.steps.join import Condition, JoinView, Occurrence
from headwater.views.text.scope import relation_name
from headwater.views.text.spark_text import quoted, spark_text
from headwater.views.text.statement import read_statement

TERM = "_term"
_WEIGHT = "_weight"


def law_sql(view: JoinView, tables: Mapping[RelationName, str], lo: int) -> str:
    """Return the query that gives a view's changes at every tick after `lo`.

    `tables` names a table or temporary view per relation, with the relation's pruned columns, `_tick` and `_count`
    (both bigint). The result has the view's columns, `_tick` and `_count`; no row has a count of zero, and no two rows
    are equal in all but the count.
    """
    return _changes(view, {o.alias: tables[o.relation.name] for o in view.occurrences}, lo, same=())


def combined_sql(view: JoinView, tables: Mapping[RelationName, str], lo: int) -> str:
    """Return the query that gives the same as the law, but not netted: equal rows of one tick may come and go.

    It shuffles no row by all its values. It is for views in which nothing may raise, and for batches in which one
    occurrence changes: then every combination is of rows that were there together.
    """
    assert not view.fallible, "what may raise is evaluated on netted rows"
    by_alias = {o.alias: tables[o.relation.name] for o in view.occurrences}
    joined = _values(view, by_alias, lo, same=())
    return _outputs(view, f"{_WEIGHT} AS {COUNT}", joined)


def terms_sql(view: JoinView, tables: Mapping[str, str]) -> str:
    """Return the query that gives the sum of terms: products of one bag of rows per occurrence.

    `tables` names a table per occurrence, with its columns, `_tick`, `_count` and `_term` (bigint): rows of one term
    join only each other, and all have the tick (after 0) that the term's rows come or go at.
    """
    return _changes(view, tables, 0, same=(TERM,))


def _changes(view: JoinView, tables: Mapping[str, str], lo: int, *, same: tuple[str, ...]) -> str:
    """Return the changes after `lo` from a table per occurrence. Rows join only if they agree in the `same` columns."""
    if view.fallible:
        return _net_then_evaluate(view, tables, lo, same)
    return _netted_outputs(view, _values(view, tables, lo, same=same))


def renamed_sql(sql: str, tables: Mapping[RelationName, str], *, name: str = "", path: str = "") -> str:
    """Return a text with the names of relations replaced. A name of one part is of a query that WITH names.

    A relation without an alias gets its own name as alias, so that the rest of the text still finds it.
    """
    text = sql
    for start, end, replacement in reversed(renamings(sql, tables, name=name, path=path)):
        text = text[:start] + replacement + text[end:]
    return text


def renamings(
    sql: str, tables: Mapping[RelationName, str], *, name: str = "", path: str = ""
) -> list[tuple[int, int, str]]:
    """Return what is replaced to rename relations: from which character, up to which, by what, in this order."""
    statement = read_statement(sql, name=name, path=path)
    changes: list[tuple[int, int, str]] = []
    for table in statement.tree.find_all(exp.Table):
        if not table.db:
            continue
        parts = [part.meta for part in table.parts]
        alias = "" if table.alias else f" AS {quoted(table.name)}"
        text = quoted(tables[relation_name(table, statement)]) + alias
        changes.append((parts[0]["start"], parts[-1]["end"] + 1, text))
    for column in statement.tree.find_all(exp.Column):
        if len(column.parts) > 2:  # noqa: PLR2004 — source.table.column: after the replacement only table.column is there
            first, table_part = column.parts[0].meta, column.parts[-2]
            changes.append((first["start"], table_part.meta["end"] + 1, quoted(table_part.name)))
    changes += [(t.start, t.end + 1, " ") for t in statement.tokens if t.token_type is TokenType.SEMICOLON]
    return sorted(changes)


def _values(view: JoinView, tables: Mapping[str, str], lo: int, *, same: tuple[str, ...]) -> str:
    """Return the query that gives the outputs of every combination."""
    columns = _joined_columns(view)
    values = [f"{spark_text(_renamed(output.expression, columns))} AS v{n}" for n, output in enumerate(view.outputs)]
    return _combinations(view, tables, lo, same, values=values, conditions=view.conditions, columns=columns)


def _net_then_evaluate(view: JoinView, tables: Mapping[str, str], lo: int, same: tuple[str, ...]) -> str:
    late = [condition for condition in view.conditions if condition.fallible]
    early = tuple(condition for condition in view.conditions if not condition.fallible)
    columns = _joined_columns(view)
    raw = {
        (column.table, column.name): f"o{place}_c{occurrence.columns.index(column.name)}"
        for column in _columns_of([*(c.expression for c in late), *(output.expression for output in view.outputs)])
        for place, occurrence in enumerate(view.occurrences)
        if occurrence.alias == column.table
    }
    carried = [f"{spark_text(columns[key])} AS {name}" for key, name in raw.items()]
    joined = _combinations(view, tables, lo, same, values=carried, conditions=early, columns=columns)
    rows = _netted(list(raw.values()), joined)
    after = {key: exp.column(name) for key, name in raw.items()}
    values = [f"{spark_text(_renamed(output.expression, after))} AS v{n}" for n, output in enumerate(view.outputs)]
    select = _lines("SELECT", [*values, TICK, f"{COUNT} AS {_WEIGHT}"]) + f"\nFROM (\n{_indent(rows)}\n) AS netted"
    if late:
        tests = " AND ".join(f"({spark_text(_renamed(condition.expression, after))})" for condition in late)
        select += f"\nWHERE CASE WHEN {COUNT} <> 0 THEN {tests} ELSE FALSE END"
    return _netted_outputs(view, select)


def _combinations(
    view: JoinView,
    tables: Mapping[str, str],
    lo: int,
    same: tuple[str, ...],
    *,
    values: list[str],
    conditions: tuple[Condition, ...],
    columns: Mapping[tuple[str, str], exp.Column],
) -> str:
    """Return the join of all occurrences with the largest stamp and the product of counts of each combination."""
    places = {occurrence.alias: place for place, occurrence in enumerate(view.occurrences)}
    order = _join_order(view, conditions)
    ticks = [f"o{place}.{TICK}" for place in range(len(places))]
    tick = f"GREATEST({', '.join(ticks)})" if len(ticks) > 1 else ticks[0]
    weight = " * ".join(f"o{place}.{COUNT}" for place in range(len(places)))
    bound: set[str] = set()
    source: list[str] = []
    filters: list[str] = []
    waiting = list(conditions)
    for occurrence in order:
        bound.add(occurrence.alias)
        ready = [condition for condition in waiting if condition.aliases <= bound]
        waiting = [condition for condition in waiting if condition not in ready]
        texts = [f"({spark_text(_renamed(condition.expression, columns))})" for condition in ready]
        place = places[occurrence.alias]
        table = f"{quoted(tables[occurrence.alias])} AS o{place}"
        if source:
            texts = [f"o{place}.{column} = o{places[order[0].alias]}.{column}" for column in same] + texts
        if not source:
            source.append(f"FROM {table}")
            filters += texts
        elif texts:
            source.append(f"JOIN {table} ON {' AND '.join(texts)}")
        else:
            source.append(f"CROSS JOIN {table}")
    select = _lines("SELECT", [*values, f"{tick} AS {TICK}", f"{weight} AS {_WEIGHT}"])
    return "\n".join([select, *source, f"WHERE {' AND '.join([*filters, f'{tick} > {lo}'])}"])


def _join_order(view: JoinView, conditions: tuple[Condition, ...]) -> list[Occurrence]:
    """Return the occurrences so that each is linked to the ones before: by an edge if possible, else by a condition."""
    remaining = list(view.occurrences)
    order = [remaining.pop(0)]
    while remaining:
        bound = {occurrence.alias for occurrence in order}
        by_edge = [o for o in remaining if _has_edge(view, o.alias, bound)]
        linked = [o for o in remaining if any(o.alias in c.aliases and c.aliases & bound for c in conditions)]
        following = [*by_edge, *linked, *remaining][0]
        order.append(following)
        remaining.remove(following)
    return order


def _has_edge(view: JoinView, alias: str, bound: set[str]) -> bool:
    return any({edge.left, edge.right} & bound and alias in {edge.left, edge.right} for edge in view.edges)


def _netted_outputs(view: JoinView, combinations: str) -> str:
    return _outputs(view, COUNT, _netted([f"v{n}" for n in range(len(view.outputs))], combinations))


def _outputs(view: JoinView, count: str, rows: str) -> str:
    renamed = [f"v{n} AS {quoted(output.name)}" for n, output in enumerate(view.outputs)]
    return _lines("SELECT", [*renamed, TICK, count]) + f"\nFROM (\n{_indent(rows)}\n) AS changed"


def _netted(columns: list[str], combinations: str) -> str:
    keys = [*columns, TICK]
    select = _lines("SELECT", [*keys, f"SUM({_WEIGHT}) AS {COUNT}"])
    group = f"GROUP BY {', '.join(keys)}\nHAVING SUM({_WEIGHT}) <> 0"
    return f"{select}\nFROM (\n{_indent(combinations)}\n) AS combined\n{group}"


def _joined_columns(view: JoinView) -> dict[tuple[str, str], exp.Column]:
    return {
        (occurrence.alias, name): exp.column(exp.to_identifier(name, quoted=True), table=f"o{place}")
        for place, occurrence in enumerate(view.occurrences)
        for name in occurrence.columns
    }


def _columns_of(expressions: Iterable[exp.Expr]) -> list[exp.Column]:
    return [column for expression in expressions for column in expression.find_all(exp.Column)]


def _renamed(expression: exp.Expr, columns: Mapping[tuple[str, str], exp.Column]) -> exp.Expr:
    def rename(node: exp.Expr) -> exp.Expr:
        return columns[node.table, node.name].copy() if isinstance(node, exp.Column) else node

    return expression.transform(rename)


def _lines(word: str, items: list[str]) -> str:
    return f"{word} {', '.join(items)}"


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
