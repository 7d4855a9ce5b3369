"""The rows that a query reads or gives, by its text alone: their columns, and which of them tell two rows apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headwater.model.relation import Column, Relation, RelationName, SegmentName
from headwater.views.compile.written import aggregates_in
from headwater.views.text.expand_stars import expand_stars
from headwater.views.text.scope import (
    Named,
    Scope,
    VisibleColumn,
    look_up,
    name_table,
    qualifier_of,
    relation_name,
    see_columns,
    see_joined,
)
from headwater.views.text.statement import Statement
from headwater.views.text.support import RESERVED_NAMES

Columns = frozenset[str]
"""Names of columns, in lower case."""


class UnknownColumnsError(Exception):
    """The columns of something that FROM reads do not follow from the text."""

    def __init__(self, item: exp.Expr) -> None:
        """Keep what FROM reads there."""
        super().__init__(item.sql(dialect="spark"))
        self.item = item


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """Names of columns in order, empty where there is none. No two rows agree in all columns of `unique`, if it is."""

    columns: tuple[str, ...]
    unique: Columns | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What one SELECT reads: what its FROM names, and which columns identify the rows of each."""

    scope: Scope
    unique: Mapping[str, Columns | None]

    @property
    def has_equal_rows(self) -> bool:
        """Whether two of its rows may be equal."""
        return any(columns is None for columns in self.unique.values())

    def find(self, node: exp.Expr) -> tuple[str, str] | None:
        """Return the alias and the column, in lower case, that a plain column means. None if it is anything else."""
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        parts, visible = tuple(part.lower() for part in qualifier_of(node)), self.scope.everything
        meant = {named.alias for named in self.scope.named if parts in named.qualifiers}
        reachable: Sequence[VisibleColumn] = (*visible.plain, *visible.hidden) if parts else visible.plain
        found = {
            (seen.alias, seen.column.lower())
            for seen in reachable
            if seen.column.lower() == node.name.lower() and (not parts or seen.alias in meant)
        }
        return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRows:
    """Answers for the queries of one statement. `views` are the rows of the upstream views that it may name.

    Answers are kept: queries that read queries ask for the same ones again and again.
    """

    statement: Statement
    catalog: Mapping[RelationName, Relation]
    views: Mapping[str, RowColumns]
    _found: dict[int, RowColumns] = field(default_factory=dict)
    _levels: dict[int, Level] = field(default_factory=dict)

    def of(self, query: exp.Expr) -> RowColumns:
        """Return the rows that a query gives."""
        if id(query) not in self._found:
            self._found[id(query)] = self._of(query)
        return self._found[id(query)]

    def _of(self, query: exp.Expr) -> RowColumns:
        match query:
            case exp.Subquery():
                return self.of(query.this)
            case exp.SetOperation():
                return self._of_set(query)
            case exp.Select():
                return self._of_select(query)
            case _:
                raise UnknownColumnsError(query)

    def outputs(self, select: exp.Expr) -> list[exp.Expr]:
        """Return what a SELECT gives, with its stars written out."""
        if not isinstance(select, exp.Select):
            raise UnknownColumnsError(select)
        if not any(item.is_star for item in select.expressions):
            return list(select.expressions)
        return list(expand_stars(select, self.level(select).scope).expressions)

    def level(self, select: exp.Select) -> Level:
        """Return what a SELECT reads."""
        if id(select) not in self._levels:
            self._levels[id(select)] = self._read(select)
        return self._levels[id(select)]

    def _read(self, select: exp.Select) -> Level:
        source = select.args.get("from_")
        joins = select.args.get("joins") or ()
        if source is None:
            raise UnknownColumnsError(select)
        named, unique = self._item(source.this, 0)
        items, uniques, visible = [named], {named.alias: unique}, [see_columns(named)]
        for place, join in enumerate(joins, 1):
            if {"SEMI", "ANTI"} & {join.kind, join.side}:
                continue
            named, unique = self._item(join.this, place)
            items.append(named)
            uniques[named.alias] = unique
            for one in _perhaps_missing(join.side, items):
                if not one.relation.key:  # its NULLs may say that there is no row, and may be values
                    uniques[one.alias] = None
            visible.append(see_joined(visible[-1], named, join.args.get("using") or [], self.statement))
        for lateral in select.args.get("laterals") or ():
            named, _ = self._item(lateral, len(items))
            items.append(named)
            uniques[named.alias] = None
            visible.append(see_joined(visible[-1], named, [], self.statement))
        scope = Scope(statement=replace(self.statement, tree=select), named=tuple(items), visible=tuple(visible))
        return Level(scope=scope, unique=uniques)

    def _item(self, item: exp.Expr, place: int) -> tuple[Named, Columns | None]:
        """Return what FROM reads at one place under its name, and what tells its rows apart."""
        listed = _listed(item)
        if isinstance(item, exp.Table) and not isinstance(item.this, exp.Func) and not listed:
            if item.args.get("joins") or item.args.get("pivots"):
                raise UnknownColumnsError(item)
            common = None if item.db else self._common(item)
            if common is None:
                relation = look_up(relation_name(item, self.statement), item, self.statement, self.catalog)
                usable = tuple(one for one in relation.columns if one.name.lower() not in RESERVED_NAMES)
                has_key = bool(relation.key) and set(relation.key) <= {one.name for one in usable}
                key = frozenset(name.lower() for name in relation.key) if has_key else None
                return name_table(item, replace(relation, columns=usable)), key
            return _named(item.alias or item.name, common.columns), common.unique
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query) and not item.args.get("joins"):
            rows = _renamed(self.of(item.this), listed)
            return _named(item.alias or f"_{place}", rows.columns), rows.unique
        if listed and item.alias:
            return _named(item.alias, listed), None
        raise UnknownColumnsError(item)

    def _common(self, table: exp.Table) -> RowColumns | None:
        """Return the rows of the query or upstream view that a bare name means."""
        inside: exp.Expr | None = None
        node = table.parent
        while node is not None:
            named = node.args.get("with_") or exp.With(expressions=[])
            for common in named.expressions:
                if common is inside and not named.args.get("recursive"):
                    break
                if common.alias.lower() == table.name.lower():
                    return _renamed(self.of(common.this), _listed(common))
            inside = node if isinstance(node, exp.CTE) else inside
            node = node.parent
        return self.views.get(table.name.lower())

    def _of_set(self, query: exp.SetOperation) -> RowColumns:
        left = self.of(query.this)
        if query.args.get("distinct"):
            return replace(left, unique=frozenset(name.lower() for name in left.columns) if all(left.columns) else None)
        return left if not isinstance(query, exp.Union) else replace(left, unique=None)

    def _of_select(self, select: exp.Select) -> RowColumns:
        outputs = self.outputs(select)
        columns = tuple(item.alias_or_name if isinstance(item, (exp.Alias, exp.Column)) else "" for item in outputs)
        if select.args.get("distinct"):
            return RowColumns(columns=columns, unique=frozenset(map(str.lower, columns)) if all(columns) else None)
        shown = {_bare(item): name.lower() for item, name in zip(outputs, columns, strict=True) if name}
        if is_grouped(select):
            groups = group_keys(select, outputs, self)
            keys = groups.keys
            unique = frozenset(shown[key] for key in keys) if all(key in shown for key in keys) else None
            return RowColumns(columns=columns, unique=None if groups.has_sets else unique)
        try:
            level = self.level(select)
        except UnknownColumnsError:
            return RowColumns(columns=columns, unique=None)
        seen = {found: name for value, name in shown.items() if (found := level.find(value)) is not None}
        wanted = [(alias, name) for alias, names in level.unique.items() for name in names or ()]
        is_unique = not level.has_equal_rows and all(one in seen for one in wanted)
        return RowColumns(columns=columns, unique=frozenset(seen[one] for one in wanted) if is_unique else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKeys:
    """What a SELECT groups by, all of it, and whether some rows are of a part of it only (ROLLUP and its like)."""

    keys: tuple[exp.Expr, ...]
    has_sets: bool


def is_grouped(select: exp.Select) -> bool:
    """Tell whether the rows of a SELECT are groups."""
    if select.args.get("group") or select.args.get("having"):
        return True
    order = select.args.get("order")
    parts = [*select.expressions, *(part for part in (order, select.args.get("qualify")) if part is not None)]
    return any(True for part in parts for _ in aggregates_in(part))


def group_keys(select: exp.Select, outputs: Sequence[exp.Expr], rows: QueryRows) -> GroupKeys:
    """Return what a SELECT groups by, with outputs' numbers and names written out."""
    group = select.args.get("group")
    if group is None:
        return GroupKeys(keys=(), has_sets=False)
    if group.args.get("all"):
        plain = [_bare(one) for one in outputs if not any(True for _ in aggregates_in(_bare(one)))]
        return GroupKeys(keys=tuple(one for one in plain if not one.find(exp.Window)), has_sets=False)
    by_name = {one.alias.lower(): one.this for one in outputs if isinstance(one, exp.Alias)}
    sets = [one for kind in ("grouping_sets", "rollup", "cube") for one in group.args.get(kind) or ()]
    listed = [one for item in (*group.expressions, *sets) for one in _members(item)]
    level = rows.level(select) if by_name and any(isinstance(one, exp.Column) for one in listed) else None

    def found(item: exp.Expr) -> exp.Expr:
        if isinstance(item, exp.Literal) and item.is_int and 1 <= int(item.name) <= len(outputs):
            return _bare(outputs[int(item.name) - 1])
        is_name = isinstance(item, exp.Column) and not item.table and item.name.lower() in by_name
        return by_name[item.name.lower()] if is_name and level is not None and level.find(item) is None else item

    keys = tuple(dict.fromkeys(found(item) for item in listed))
    special = any(isinstance(item, _SETS) for item in group.expressions)
    return GroupKeys(keys=keys, has_sets=bool(sets) or special)


def _perhaps_missing(side: str, items: Sequence[Named]) -> Sequence[Named]:
    """Return what a join, which added the last of these, fills with NULLs where no row matches."""
    return {"LEFT": items[-1:], "RIGHT": items[:-1], "FULL": items}.get(side, ())


_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)


def _members(item: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(item, (*_SETS, exp.Tuple)):
        for part in item.expressions:
            yield from _members(part)
    else:
        yield item.unnest()


def _bare(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item


def _named(alias: str, columns: Sequence[str]) -> Named:
    held = tuple(Column(name=name or f"_{place}", type="", native="") for place, name in enumerate(columns))
    relation = Relation(name=SegmentName(name=alias), columns=held)
    return Named(alias=alias, relation=relation, qualifiers=frozenset({(alias.lower(),)}))


def _renamed(rows: RowColumns, listed: tuple[str, ...]) -> RowColumns:
    if not listed:
        return rows
    if len(listed) != len(rows.columns):
        return RowColumns(columns=listed, unique=None)  # refused later, by what compiles or types the text
    called = {old.lower(): new.lower() for old, new in zip(rows.columns, listed, strict=True) if old}
    known = rows.unique is not None and all(name in called for name in rows.unique)
    return RowColumns(columns=listed, unique=frozenset(called[name] for name in rows.unique or ()) if known else None)


def _listed(item: exp.Expr) -> tuple[str, ...]:
    alias = item.args.get("alias")
    return tuple(one.name for one in alias.args.get("columns") or ()) if isinstance(alias, exp.TableAlias) else ()
