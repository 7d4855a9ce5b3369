"""Orders that a text leaves open are completed by all columns of the row: then the answer depends on the rows alone.

    row_number() OVER (PARTITION BY e.id ORDER BY e.at DESC)   becomes   ... ORDER BY e.at DESC, e.val)
    SELECT a, b FROM ... ORDER BY c LIMIT 3                    becomes   ... ORDER BY c, 1, 2 LIMIT 3

The law
1. The row of a window is what FROM gives: all columns of everything that it names, in the order that it names them.
   Of a SELECT that groups it is the group: what it is grouped by, and for ROLLUP and its like GROUPING of that.
   The row of LIMIT is the row that the query gives.
2. What is added orders ascending, NULLs first. Rows that are equal in all columns are equal: no matter which of
   them comes first, the window's rows are the same bag.
3. Columns that others determine are left out, which changes nothing: a relation's columns once its key is there.
4. What depends on peers alone stays as it is: RANK and its like, aggregates over RANGE frames. A RANGE frame takes in
   all peers of the row that it ends at, so FIRST_VALUE and its like over one become what gives the same over ROWS.

| over ORDER BY o, RANGE from ... to ... | FIRST_VALUE | LAST_VALUE | NTH_VALUE |
|---|---|---|---|
| the first row, the current one | first of the partition | last of the peers | n-th of the partition, if in it |
| the current row, the last one | first of the peers | last of the partition | refused |
| the first row, the last one | first of the partition | last of the partition | n-th of the partition |

The tree is rewritten once, before anything else is done with it: the text that a view is born from, its segments and so
its batches and its lineage all say the same. Judges have a rewriting of their own (`judge.complete_orders`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headwater.model.relation import Relation, RelationName
from headwater.views.compile.query_rows import Level, QueryRows, RowColumns, UnknownColumnsError, group_keys, is_grouped
from headwater.views.text import support
from headwater.views.text.spark_text import spark_text
from headwater.views.text.statement import Statement

_NUMBER_ROWS = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead)
_PICK_ROWS = (exp.FirstValue, exp.LastValue, exp.NthValue)
_SEE_PEERS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
_FIRST, _HERE, _LAST = "UNBOUNDED PRECEDING", "CURRENT ROW", "UNBOUNDED FOLLOWING"
_BOUNDS = {_FIRST: ("UNBOUNDED", "PRECEDING"), _HERE: (_HERE, None), _LAST: ("UNBOUNDED", "FOLLOWING")}
_WHOLE = (_FIRST, _LAST)


def complete_orders(statement: Statement, catalog: Mapping[RelationName, Relation]) -> Statement:
    """Return a statement, and the upstream views that it names, with all orders completed."""
    views: dict[str, RowColumns] = {}
    lower: tuple[Statement, ...] = ()
    for one in statement.lower:
        completed = replace(_completed(one, catalog, views), lower=lower)
        lower += (completed,)
        try:
            views[one.name] = QueryRows(statement=one, catalog=catalog, views=views).of(one.tree)
        except UnknownColumnsError:
            continue
    return replace(_completed(statement, catalog, views), lower=lower)


def _completed(
    statement: Statement, catalog: Mapping[RelationName, Relation], views: Mapping[str, RowColumns]
) -> Statement:
    tree = statement.tree.copy()
    rows = QueryRows(statement=statement, catalog=catalog, views=views)
    for query in list(tree.find_all(exp.Query)):
        if isinstance(query, exp.Select):
            _complete_windows(query, rows)
        if query.args.get("limit") or query.args.get("offset"):
            _complete_limit(query, rows)
    return statement if tree == statement.tree else replace(statement, tree=tree, completed=spark_text(tree))


def _complete_limit(query: exp.Query, rows: QueryRows) -> None:
    """Order a query with LIMIT by all that it gives, after what it says itself."""
    order = query.args.get("order")
    said = [one.this for one in order.expressions] if order else []
    if any(isinstance(one, exp.Var) for one in said):
        return  # ORDER BY ALL
    first: exp.Expr = query
    while isinstance(first, (exp.Subquery, exp.SetOperation)):
        first = first.this
    try:
        outputs = rows.outputs(first)
    except UnknownColumnsError as unknown:
        raise _refused(rows.statement, query, unknown) from None
    open_places = [place for place, item in enumerate(outputs, 1) if not _is_ordered(place, item, said)]
    if not open_places:
        return
    for clause in ("sort", "cluster", "distribute"):  # orders within parts of the rows, which ORDER BY rules out
        query.set(clause, None)
    added = [_ascending(exp.Literal.number(place)) for place in open_places]
    query.set("order", exp.Order(expressions=[*(order.expressions if order else ()), *added]))


def _is_ordered(place: int, item: exp.Expr, said: Sequence[exp.Expr]) -> bool:
    """Tell whether an output is ordered by: by its number, by its name, or as it is."""
    name = item.alias_or_name.lower()
    return any(
        (isinstance(one, exp.Literal) and not one.is_string and one.name == str(place))
        or (isinstance(one, exp.Column) and not one.table and one.name.lower() == name)
        for one in said
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ties:
    """What completes the orders of one SELECT: (value, what it belongs to, whether all that is known then)."""

    level: Level | None
    keys: tuple[exp.Expr, ...]
    has_sets: bool
    statement: Statement

    @property
    def has_equal_rows(self) -> bool:
        return self.level.has_equal_rows if self.level is not None else self.has_sets

    def after(self, call: exp.Expr, said: Sequence[exp.Expr]) -> list[exp.Expr]:
        """Return what has to follow values that a window partitions and orders by, so that only equal rows tie."""
        if self.level is None:
            missing = [key for key in self.keys if key not in said]
            grouping = [exp.Grouping(expressions=[key.copy()]) for key in self.keys] if self.has_sets else []
            return [*(key.copy() for key in missing), *grouping]
        level, added = self.level, []
        known = {level.find(one) for one in said}
        for named in level.scope.named:
            unique = level.unique[named.alias]
            for place, one in enumerate(named.relation.columns):
                if unique is not None and all((named.alias, name) in known for name in unique):
                    break
                if (named.alias, one.name.lower()) not in known:
                    known.add((named.alias, one.name.lower()))
                    added.append(self._column(call, named.alias, one.name, place))
        return added

    def _column(self, call: exp.Expr, alias: str, name: str, place: int) -> exp.Expr:
        is_nameless = alias.startswith("_") and alias[1:].isdigit()
        if name == f"_{place}":
            because = f"column {place + 1} of {'a query in FROM' if is_nameless else alias} has no name"
            raise self.statement.refusal(
                support.OPEN_ORDER, call, because=because, hint="give the column a name with AS"
            )
        column = exp.column(
            exp.to_identifier(name, quoted=True), table=None if is_nameless else exp.to_identifier(alias, quoted=True)
        )
        level = self.level
        if is_nameless and level is not None and level.find(column) is None:
            raise self.statement.refusal(
                support.OPEN_ORDER,
                call,
                because=f'"{name}" may be one of several',
                hint="give the query a name with AS",
            )
        return column


def _complete_windows(select: exp.Select, rows: QueryRows) -> None:
    """Rewrite the calls of one SELECT whose value depends on the order of rows."""
    calls = [
        node
        for node in select.find_all(exp.Window)
        if node.arg_key != "windows"
        and node.find_ancestor(exp.Select) is select
        and not isinstance(node.this, _SEE_PEERS)
    ]
    named = {one.this.name.lower(): one for one in select.args.get("windows") or ()}
    due = [(call, spelled) for call in calls if _needs_order(spelled := _spelled_out(call, named))]
    if not due:
        return
    ties = _read_ties(select, due[0][0], rows)
    if ties is None:
        return
    orders = {}
    for call, spelled in due:
        partition = list(spelled.args.get("partition_by") or ())
        added = ties.after(call, [*partition, *(one.this for one in _ordered(spelled))])
        if not added and not _ordered(spelled):
            added = partition  # it has one row alone; Spark wants to read an order all the same
        completed = [*_ordered(spelled), *map(_ascending, added)]
        written = _written(spelled, completed, added, rows.statement, call) if added else call
        if _tells_equal_rows_apart(spelled):
            orders[frozenset(partition), tuple(completed)] = call
        if written is not call:
            call.replace(written)
    if ties.has_equal_rows and len(orders) > 1:
        raise rows.statement.refusal(support.SEVERAL_ORDERS, list(orders.values())[1])


def _read_ties(select: exp.Select, call: exp.Expr, rows: QueryRows) -> _Ties | None:
    """Return what completes orders of a SELECT. Nothing where it has one row at most."""
    statement = rows.statement
    try:
        if is_grouped(select):
            groups = group_keys(select, rows.outputs(select), rows)
            if not groups.keys:
                return None
            return _Ties(level=None, keys=groups.keys, has_sets=groups.has_sets, statement=statement)
        if select.args.get("from_") is None:
            return None
        return _Ties(level=rows.level(select), keys=(), has_sets=False, statement=statement)
    except UnknownColumnsError as unknown:
        raise _refused(statement, call, unknown) from None


def _needs_order(call: exp.Window) -> bool:
    """Tell whether the value of a call depends on the order of rows within its frame."""
    if isinstance(call.this, (*_NUMBER_ROWS, *_PICK_ROWS)):
        return True
    kind, *frame = _frame(call)
    return kind == "ROWS" and tuple(frame) != _WHOLE


def _tells_equal_rows_apart(call: exp.Window) -> bool:
    """Tell whether a call may have two values for two equal rows."""
    kind, *frame = _frame(call)
    return isinstance(call.this, _NUMBER_ROWS) or (kind == "ROWS" and tuple(frame) != _WHOLE)


def _spelled_out(call: exp.Window, named: Mapping[str, exp.Window]) -> exp.Window:
    """Return a call with the windows that it names written out."""
    result = call.copy()
    passed: set[str] = set()
    while (name := result.alias.lower()) in named and name not in passed:
        passed.add(name)
        window = named[name]
        result.set("alias", window.args["alias"].copy() if window.args.get("alias") else None)
        for part in ("partition_by", "order", "spec"):
            if not result.args.get(part):
                found = window.args.get(part)
                result.set(part, [one.copy() for one in found] if isinstance(found, list) else found and found.copy())
    return result


def _ordered(call: exp.Window) -> list[exp.Expr]:
    order = call.args.get("order")
    return list(order.expressions) if order else []


def _frame(call: exp.Window) -> tuple[str, str, str]:
    """Return the kind of a call's frame, and where it begins and ends."""
    spec = call.args.get("spec")
    if spec is None:
        return "RANGE", _FIRST, _HERE if call.args.get("order") else _LAST
    return str(spec.args.get("kind") or "RANGE").upper(), _bound(spec, "start") or _FIRST, _bound(spec, "end") or _HERE


def _bound(spec: exp.Expr, which: str) -> str:
    value, side = spec.args.get(which), spec.args.get(f"{which}_side")
    said = value.sql(dialect="spark") if isinstance(value, exp.Expr) else str(value or "")
    return " ".join(part for part in (said, side or "") if part).upper()


def _written(
    call: exp.Window, completed: Sequence[exp.Expr], added: Sequence[exp.Expr], statement: Statement, at: exp.Expr
) -> exp.Expr:
    """Return a call over its completed order, in a frame that has the same rows."""
    kind, start, end = _frame(call)
    if not isinstance(call.this, _PICK_ROWS) or kind == "ROWS":
        return _over(call, completed)
    among_peers = [*(call.args.get("partition_by") or ()), *(one.this for one in _ordered(call))]
    match call.this, start, end:
        case (
            (_, "UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING")
            | (
                exp.FirstValue(),
                "UNBOUNDED PRECEDING",
                "CURRENT ROW",
            )
            | (exp.LastValue(), "CURRENT ROW", "UNBOUNDED FOLLOWING")
        ):
            return _over(call, completed, frame=_WHOLE)
        case (
            (_, "CURRENT ROW", "CURRENT ROW")
            | (exp.LastValue(), "UNBOUNDED PRECEDING", "CURRENT ROW")
            | (
                exp.FirstValue(),
                "CURRENT ROW",
                "UNBOUNDED FOLLOWING",
            )
        ):
            return _over(call, map(_ascending, added), partition=among_peers, frame=_WHOLE)
        case exp.NthValue(), "UNBOUNDED PRECEDING", "CURRENT ROW":
            count = call.copy()
            count.set("this", exp.Count(this=exp.Star(), big_int=True))
            wanted = exp.GTE(this=count, expression=call.this.args["offset"].copy())
            return exp.Case().when(wanted, _over(call, completed, frame=_WHOLE))
        case _:
            raise statement.refusal(support.FRAME_OF_DISTANCE, at)


def _over(
    call: exp.Window,
    order: Sequence[exp.Expr] | map[exp.Expr],
    *,
    partition: Sequence[exp.Expr] | None = None,
    frame: tuple[str, str] | None = None,
) -> exp.Window:
    """Return a call over another order, and another partition and ROWS frame if they are given."""
    result = call.copy()
    result.set("order", exp.Order(expressions=[one.copy() for one in order]))
    if partition is not None:
        result.set("partition_by", [one.copy() for one in partition])
    if frame is not None:
        (start, start_side), (end, end_side) = (_BOUNDS[bound] for bound in frame)
        spec = exp.WindowSpec(kind="ROWS", start=start, start_side=start_side, end=end, end_side=end_side)
        result.set("spec", spec)
    return result


def _ascending(value: exp.Expr) -> exp.Expr:
    return exp.Ordered(this=value.copy(), nulls_first=True)


def _refused(statement: Statement, at: exp.Expr, unknown: UnknownColumnsError) -> Exception:
    because = f"the columns of {unknown.item.sql(dialect='spark')} are not known"
    return statement.refusal(support.OPEN_ORDER, at, because=because, hint="name its columns: AS name(column, ...)")
