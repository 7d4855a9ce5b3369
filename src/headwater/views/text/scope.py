"""Which names mean what in a view: its relations by alias, and the columns that can be seen from each place.

Names follow Spark: columns and aliases are found in any case; `JOIN ... USING (k)` makes the two k one, which stands
first in `*` and is found without an alias; the right-hand k stays reachable as `alias.k`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from headwater.model.relation import Relation, RelationName, written_name
from headwater.views.text import support
from headwater.views.text.nearest import nearest
from headwater.views.text.statement import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A relation under the alias by which the view's expressions know it.

    `qualifiers` are what may stand before a column of it, in lower case: its alias, or if it was given none any end of
    its full name.
    """

    alias: str
    relation: Relation
    qualifiers: frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleColumn:
    """A column that can be seen from some place. `unusable` is the source's type if we cannot hold it, else empty."""

    alias: str
    column: str
    unusable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """The columns seen from one place: `plain` ones by `*` and by bare name, `hidden` ones by alias only."""

    plain: tuple[VisibleColumn, ...]
    hidden: tuple[VisibleColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The statement, its relations in textual order, and what is visible after each of them was joined."""

    statement: Statement
    named: tuple[Named, ...]
    visible: tuple[Visible, ...]

    @property
    def everything(self) -> Visible:
        """What the SELECT list and WHERE see."""
        return self.visible[-1]


def relation_name(table: exp.Table, statement: Statement) -> RelationName:
    """Return which relation a name in FROM means, before anybody knows whether it exists."""
    parts = [part.name for part in table.parts]
    match parts:
        case [source, name]:
            return written_name(source, name)
        case [source, schema, name]:
            return written_name(source, name, schema)
        case _:
            common = {named.alias for named in table.root().find_all(exp.CTE)}
            known = sorted(common | {lower.name for lower in statement.lower})
            because = f'"{".".join(parts)}"{nearest(parts[0], known)}'
            raise statement.refusal(support.RELATION_NAME, table, because=because)


def relations_in(tree: exp.Expr) -> tuple[exp.Table, ...]:
    """Return the relations that a query of any depth names, in textual order. Names that WITH gives are none.

    >>> import sqlglot
    >>> sql = "WITH c AS (SELECT 1 FROM a.r) SELECT 1 FROM c WHERE EXISTS (SELECT 1 FROM b.s)"
    >>> [table.sql() for table in relations_in(sqlglot.parse_one(sql))]
    ['a.r', 'b.s']
    """
    common = {named.alias.lower() for named in tree.find_all(exp.CTE)}
    found = [
        table
        for table in tree.find_all(exp.Table)
        if not isinstance(table.this, exp.Func) and (table.db or table.name.lower() not in common)
    ]
    return tuple(sorted(found, key=lambda table: table.parts[0].meta.get("start", 0)))


def relations_read(statement: Statement) -> Iterator[tuple[exp.Table, Statement]]:
    """Yield the relations that a view reads, itself or through upstream views, each with the text that names it."""
    for text in (*statement.lower, statement):
        views = {lower.name for lower in text.lower}
        for table in relations_in(text.tree):
            if table.db or table.name.lower() not in views:
                yield table, text


def name_table(table: exp.Table, relation: Relation) -> Named:
    """Return a relation under the name that FROM gives it."""
    full = tuple(part.name.lower() for part in table.parts)
    ends = frozenset(full[-length:] for length in range(1, len(full) + 1))
    alias = table.alias or table.name
    return Named(alias=alias, relation=relation, qualifiers=frozenset({(alias.lower(),)}) if table.alias else ends)


def column_of(seen: VisibleColumn) -> exp.Column:
    """Return the column as expressions of the normal form write it.

    >>> column_of(VisibleColumn(alias="s", column="Price")).sql(dialect="spark")
    '`s`.`Price`'
    """
    return exp.column(exp.to_identifier(seen.column, quoted=True), table=exp.to_identifier(seen.alias, quoted=True))


def qualifier_of(column: exp.Column) -> tuple[str, ...]:
    """Return what stands before the column's own name.

    >>> qualifier_of(exp.column("x", table="sales", db="shop"))
    ('shop', 'sales')
    """
    return tuple(part.name for part in column.parts[:-1])


def find_plain(visible: Visible, identifier: exp.Expr, statement: Statement, *, hint: str = "") -> VisibleColumn:
    """Return the one column that a bare name means."""
    name = identifier.name
    found = [seen for seen in visible.plain if seen.column.lower() == name.lower()]
    return _the_only(found, name, visible.plain, identifier, statement, hint=hint)


def find_qualified(
    visible: Visible, alias: str, identifier: exp.Expr, statement: Statement, *, at: exp.Expr | None = None
) -> VisibleColumn:
    """Return the one column that a name after an alias means."""
    name = identifier.name
    candidates = [seen for seen in (*visible.hidden, *visible.plain) if seen.alias == alias]
    found = [seen for seen in candidates if seen.column.lower() == name.lower()]
    return _the_only(found, f"{alias}.{name}", tuple(candidates), at or identifier, statement)


def find_alias(scope: Scope, visible: Visible, parts: tuple[str, ...], at: exp.Expr) -> str:
    """Return the alias that a qualifier means: an alias, or the full name of a relation that was given none."""
    wanted = tuple(part.lower() for part in parts)
    reachable = {seen.alias for seen in (*visible.plain, *visible.hidden)}
    for named in scope.named:
        if named.alias in reachable and wanted in named.qualifiers:
            return named.alias
    spelled = ".".join(parts)
    raise scope.statement.refusal(
        support.UNKNOWN_COLUMN,
        at,
        because=f'nothing here goes by the name "{spelled}"{nearest(spelled, sorted(reachable))}',
        hint=_hint_for(wanted, scope, at),
    )


def _hint_for(wanted: tuple[str, ...], scope: Scope, at: exp.Expr) -> str:
    """Return what to write instead of a qualifier that means nothing, if that is known."""
    for named in scope.named:
        if named.relation.name.name.lower() == wanted[-1] != named.alias.lower():
            return f"write {named.alias}.{at.name}: the relation has an alias, and goes by that alone"
        if wanted[:-1] in named.qualifiers and wanted[-1] in {one.lower() for one in named.relation.column_names}:
            return (
                f"nothing can be taken out of the column {wanted[-1]}: let the source do that, in a column of its own"
            )
    for join in scope.statement.tree.args.get("joins") or ():
        if {join.kind, join.side} & {"SEMI", "ANTI"} and join.this.alias_or_name.lower() == wanted[-1]:
            return "a SEMI or ANTI JOIN gives columns of its left side alone: write JOIN, or leave this column out"
    return ""


def look_up(
    name: RelationName, table: exp.Table, statement: Statement, catalog: Mapping[RelationName, Relation]
) -> Relation:
    """Return the relation of that name, or refuse the view."""
    if name in catalog:
        return catalog[name]
    sources = sorted({known.source for known in catalog})
    if name.source not in sources:
        because = f'"{name.source}"{nearest(name.source, sources)}'
        raise statement.refusal(support.UNKNOWN_SOURCE, table, because=because)
    known = sorted(str(known) for known in catalog if known.source == name.source)
    raise statement.refusal(support.UNKNOWN_RELATION, table, because=f'"{name}"{nearest(str(name), known)}')


def look_up_all(statement: Statement, catalog: Mapping[RelationName, Relation]) -> dict[RelationName, Relation]:
    """Return the relations that a view's text names, whether they turn out to be read or not. All must be there."""
    found = {}
    for table, text in relations_read(statement):
        name = relation_name(table, text)
        found[name] = look_up(name, table, text, catalog)
    return found


def see_columns(named: Named) -> Visible:
    """Return what is seen of one relation alone."""
    return Visible(plain=_columns(named), hidden=())


def _columns(named: Named) -> tuple[VisibleColumn, ...]:
    usable = tuple(VisibleColumn(alias=named.alias, column=column.name) for column in named.relation.columns)
    unusable = named.relation.unusable
    return usable + tuple(VisibleColumn(alias=named.alias, column=name, unusable=native) for name, native in unusable)


def see_joined(left: Visible, right: Named, using: list[exp.Expr], statement: Statement) -> Visible:
    """Return what is seen after a relation was joined to others. USING makes two columns one."""
    new = see_columns(right)
    left_keys = tuple(find_plain(left, key, statement) for key in using)
    right_keys = tuple(find_plain(new, key, statement) for key in using)
    return Visible(
        plain=left_keys
        + tuple(seen for seen in left.plain if seen not in left_keys)
        + tuple(seen for seen in new.plain if seen not in right_keys),
        hidden=right_keys + left.hidden,
    )


def _the_only(
    found: list[VisibleColumn],
    name: str,
    candidates: tuple[VisibleColumn, ...],
    at: exp.Expr,
    statement: Statement,
    *,
    hint: str = "",
) -> VisibleColumn:
    match found:
        case [seen] if seen.unusable:
            because = f'in its source, "{seen.alias}.{seen.column}" has the type {seen.unusable}'
            raise statement.refusal(support.UNUSABLE_TYPE, at, because=because)
        case [seen] if seen.column.lower() in support.RESERVED_NAMES:
            raise statement.refusal(support.RESERVED_COLUMN, at, because=f'"{seen.alias}.{seen.column}"')
        case [seen]:
            return seen
        case []:
            known = sorted({seen.column for seen in candidates})
            because = f'"{name}"{nearest(name.rpartition(".")[2], known)}'
            raise statement.refusal(support.UNKNOWN_COLUMN, at, because=because, hint=hint)
        case _:
            ways = ", ".join(f"{seen.alias}.{seen.column}" for seen in found)
            raise statement.refusal(support.AMBIGUOUS_COLUMN, at, because=f'"{name}" may be {ways}')
