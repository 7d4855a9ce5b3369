"""Where nodes are made: with neutral names, Spark's types, and each only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headwater.model.relation import Column, Relation, RelationName, SegmentName
from headwater.views.compile.expressions import (
    cast_to,
    column,
    columns_in,
    held_type,
    implied,
    is_linked,
    outer_names,
    settle,
)
from headwater.views.compile.never_null import is_never_null
from headwater.views.compile.plan import (
    ROWS,
    Block,
    Branch,
    Frame,
    Grouped,
    Joined,
    Node,
    PlannedOccurrence,
    Regrouped,
    SourceRelation,
    United,
    known_of,
    total_of,
)
from headwater.views.compile.reasons import LINKED, UNCOMMON, NoIncrementalForm
from headwater.views.steps.build_join import named_table, select_text
from headwater.views.steps.computed import Aggregates, First, Windows
from headwater.views.text.spark_text import quoted, spark_text
from headwater.views.text.value_kinds import ValueKind, value_of_type

Types = Callable[[str, Mapping[RelationName, Relation]], tuple[Column, ...]]
"""Gives the columns of a SELECT over relations, with Spark's types."""

_MAX_DIGITS = 38
_SUM_DIGITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftPart:
    """Values of a frame's rows, added to a union or taken away."""

    frame: Frame | Block
    values: tuple[exp.Expr, ...]
    sign: int


@dataclass(slots=True, kw_only=True)
class Draft:
    """The nodes made so far, and the numbers given out.

    `lower` are the upstream views that were read, as they were compiled. `origins` says of which one a node is made.
    `holds_untyped` says that some node holds NULLs that have no type in the text, and have one now.
    """

    types: Types
    holds_untyped: bool = False
    lower: list[Block] = field(default_factory=list)
    origins: dict[Node, str] = field(default_factory=dict)
    _origin: str = ""
    _made: dict[object, Node] = field(default_factory=dict)
    _numbers: dict[Node, int] = field(default_factory=dict)
    _types: dict[str, str] = field(default_factory=dict)
    """The types of expressions, by their texts with the type of every column in place of its alias."""
    _given: int = 0

    def number(self) -> int:
        """Return a number that was not given before."""
        self._given += 1
        return self._given

    @contextmanager
    def of_view(self, name: str) -> Iterator[None]:
        """Note of the nodes made in a block that they are of an upstream view."""
        before, self._origin = self._origin, name
        try:
            yield
        finally:
            self._origin = before

    def _make(self, key: object, node: Node) -> Node:
        self.origins[node] = self._origin
        return self._made.setdefault(key, node)

    def source(self, relation: Relation) -> Node:
        """Return the node that is a relation of a source."""
        return self._made.setdefault(("source", relation.name), SourceRelation(relation=relation))

    def occurrence(self, node: Node, written: str = "") -> PlannedOccurrence:
        """Return a new appearance of a node, and the author's alias for it if the view's own FROM names it."""
        return PlannedOccurrence(alias=f"o{self.number()}", node=node, written=written)

    def relation(self, node: Node) -> Relation:
        """Return a node as a relation, for Spark to type what reads it."""
        if isinstance(node, SourceRelation):
            return node.relation
        number = self._numbers.setdefault(node, len(self._numbers))
        return Relation(name=SegmentName(name=f"n{number}"), columns=node.columns)

    def types_of(self, occurrences: Sequence[PlannedOccurrence], values: Sequence[exp.Expr]) -> tuple[str, ...]:
        """Return the Spark types of expressions over occurrences. Spark is asked once about each that is no column.

        The types of its columns decide about the type of an expression, wherever it stands.
        """
        check_settled(values)
        by_alias = {occurrence.alias: occurrence.node for occurrence in occurrences}
        keys = {
            value: _typed_text(value, by_alias) for value in dict.fromkeys(values) if not isinstance(value, exp.Column)
        }
        unknown = {key: value for value, key in keys.items() if key not in self._types}
        if unknown:
            self._types |= zip(unknown, self._ask(by_alias, list(unknown.values())), strict=True)
        return tuple(
            _column_type(by_alias[value.table], value.name)
            if isinstance(value, exp.Column)
            else self._types[keys[value]]
            for value in values
        )

    def _ask(self, by_alias: Mapping[str, Node], values: Sequence[exp.Expr]) -> list[str]:
        """Return the types that Spark gives expressions, over the columns that they name and no others."""
        named = {(found.table, found.name): None for value in values for found in columns_in(value)}
        if not named:
            some, node = next(iter(by_alias.items()))
            named = {(some, node.columns[0].name): None}
        relations = {alias: self.relation(by_alias[alias]) for alias in dict.fromkeys(alias for alias, _ in named)}
        read = {(relations[alias].name, name) for alias, name in named}
        text = select_text(
            {alias: named_table(relation.name) for alias, relation in relations.items()},
            (),
            [(f"c{place}", value) for place, value in enumerate(values)],
        )
        asked = {
            relation.name: replace(
                relation, columns=tuple(one for one in relation.columns if (relation.name, one.name) in read), key=()
            )
            for relation in relations.values()
        }
        return [one.type for one in self.types(text, asked)]

    def join(
        self, occurrences: Sequence[PlannedOccurrence], conditions: Iterable[exp.Expr], values: Sequence[exp.Expr]
    ) -> tuple[Node, tuple[str, ...]]:
        """Return a node that has these values, and the columns that hold them.

        Values that are columns of one join or union need no node of their own.
        """
        conditions = implied(conditions)
        check_settled([*conditions, *values])
        only = occurrences[0].node if len(occurrences) == 1 else None
        if isinstance(only, (Joined, United)) and not conditions and all(isinstance(v, exp.Column) for v in values):
            return only, tuple(value.name for value in values)
        distinct = list(dict.fromkeys(values))
        node = self._joined(occurrences, conditions, distinct)
        return node, tuple(node.columns[distinct.index(value)].name for value in values)

    def _joined(
        self, occurrences: Sequence[PlannedOccurrence], conditions: tuple[exp.Expr, ...], values: list[exp.Expr]
    ) -> Node:
        neutral = {o.alias: f"o{place}" for place, o in enumerate(occurrences)}
        meant = {(o.alias, c.name): column(neutral[o.alias], c.name) for o in occurrences for c in o.node.columns}
        conditions = tuple(settle(condition, meant) for condition in conditions)
        outputs = tuple(settle(value, meant) for value in values) or (exp.Literal.number(1),)
        occurrences = tuple(replace(o, alias=neutral[o.alias]) for o in occurrences)
        key = (
            "join", tuple((o.node, o.is_test) for o in occurrences), tuple(map(spark_text, conditions)),
            tuple(map(spark_text, outputs)),
        )  # fmt: skip
        if key not in self._made:
            kinds = self.types_of(occurrences, outputs)
            types = [held_type(kind) for kind in kinds]
            self.holds_untyped |= types != list(kinds)
            outputs = tuple(
                value if kind == held and not isinstance(value, exp.Null) else cast_to(value, held)
                for value, kind, held in zip(outputs, kinds, types, strict=True)
            )
            columns = tuple(_column(f"c{place}", kind) for place, kind in enumerate(types))
            known = frozenset(
                c.name for c, v in zip(columns, outputs, strict=True) if is_never_null(v, occurrences, conditions)
            )
            self._make(
                key,
                Joined(
                    occurrences=occurrences, conditions=conditions, values=outputs, columns=columns, never_null=known
                ),
            )
        return self._made[key]

    def group(self, node: Node, keys: Sequence[str], totals: Sequence[str] = ()) -> Node:
        """Return the groups of a node's rows."""
        keys, totals = tuple(dict.fromkeys(keys)), tuple(dict.fromkeys(totals))
        key = ("group", node, keys, totals)
        if key not in self._made:
            counted = [(total_of(name), _total_type(_column_type(node, name))) for name in totals]
            counted += [(known_of(name), "bigint") for name in totals]
            columns = [*((name, _column_type(node, name)) for name in keys), (ROWS, "bigint"), *counted]
            never_null = {name for name in keys if name in node.never_null} | {ROWS, *(name for name, _ in counted)}
            grouped = Grouped(
                input=node,
                keys=keys,
                totals=totals,
                columns=tuple(_column(name, kind) for name, kind in columns),
                never_null=frozenset(never_null),
            )
            self._make(key, grouped)
        return self._made[key]

    def regroup(self, node: Node, keys: Sequence[str], computed: Aggregates | Windows | First, *, why: str) -> Node:
        """Return what is computed within partitions of a node's rows."""
        keys = tuple(dict.fromkeys(keys))
        key = ("regroup", node, keys, computed)
        if key not in self._made:
            columns = self._computed(node, keys, computed)
            self._make(key, Regrouped(input=node, keys=keys, computed=computed, why=why, columns=columns))
        return self._made[key]

    def _computed(
        self, node: Node, keys: tuple[str, ...], computed: Aggregates | Windows | First
    ) -> tuple[Column, ...]:
        if isinstance(computed, First):
            return node.columns
        own = tuple(node_column for node_column in node.columns if node_column.name in keys)
        own = tuple(sorted(own, key=lambda c: keys.index(c.name))) if isinstance(computed, Aggregates) else ()
        relation = self.relation(node)
        partition = ", ".join(map(quoted, keys)) or "1"
        values = [f"{text.replace('{partition}', partition)} AS {quoted(name)}" for name, text in computed.outputs]
        grouping = f" GROUP BY {partition}" if isinstance(computed, Aggregates) and keys else ""
        text = f"SELECT {', '.join(values)} FROM {named_table(relation.name)}{grouping}"
        typed = self.types(text, {relation.name: relation})
        if any(one.type != held_type(one.type) for one in typed):
            raise NoIncrementalForm(UNCOMMON, "a function of NULL, which has no type")
        return own + tuple(_column(name, one.type) for (name, _), one in zip(computed.outputs, typed, strict=True))

    def unite(self, branches: Sequence[tuple[Node, tuple[str, ...], int]]) -> Node:
        """Return the signed sum of branches whose columns have the same types, in order."""
        first, names, _ = branches[0]
        key = ("union", tuple(branches))
        if key not in self._made:
            columns = tuple(_column(f"c{n}", _column_type(first, name)) for n, name in enumerate(names))
            known = frozenset(
                c.name for n, c in enumerate(columns)
                if all(held[n] in node.never_null for node, held, sign in branches if sign > 0)
            )  # fmt: skip
            united = United(
                branches=tuple(Branch(node=node, names=held, sign=sign) for node, held, sign in branches),
                columns=columns,
                never_null=known,
            )
            self._make(key, united)
        return self._made[key]

    def unite_parts(self, parts: Sequence[DraftPart], kinds: Sequence[str]) -> Node:
        """Return the signed sum of joins, each value cast to the kind of its place where it has another."""
        held = [held_type(kind) for kind in kinds]
        self.holds_untyped |= held != list(kinds)
        return self.unite([(*self._join_part(part, held), part.sign) for part in parts])

    def _join_part(self, part: DraftPart, kinds: Sequence[str]) -> tuple[Node, tuple[str, ...]]:
        own = self.types_of(part.frame.occurrences, part.values)
        alike = [
            value if is_type == wanted else cast_to(value, wanted)
            for value, is_type, wanted in zip(part.values, own, kinds, strict=True)
        ]
        return self.join(part.frame.occurrences, part.frame.conditions, alike)

    def over(self, node: Node, meant: Mapping[tuple[str, str], str]) -> Frame:
        """Return a frame that reads one node. `meant` says which names of the text are which of its columns."""
        occurrence = self.occurrence(node)
        return Frame(
            occurrences=(occurrence,),
            conditions=(),
            columns={name: column(occurrence.alias, held) for name, held in meant.items()},
        )


def check_settled(expressions: Iterable[exp.Expr]) -> None:
    """See to it that a node speaks of its own inputs alone. What an outer query has is not there yet."""
    for expression in expressions:
        if is_linked(expression):
            raise NoIncrementalForm(LINKED, outer_names(expression))


def _typed_text(value: exp.Expr, by_alias: Mapping[str, Node]) -> str:
    """Return an expression's text with the type of every column in place of its alias."""
    meant = {
        (found.table, found.name): column(_column_type(by_alias[found.table], found.name), found.name)
        for found in columns_in(value)
    }
    return spark_text(settle(value, meant))


def _column(name: str, kind: str) -> Column:
    return Column(name=name, type=kind, native=kind)


def _column_type(node: Node, name: str) -> str:
    return next(found.type for found in node.columns if found.name == name)


def _total_type(kind: str) -> str:
    """Return the type that Spark gives SUM."""
    value = value_of_type(kind)
    if value.kind is ValueKind.DECIMAL:
        digits = min(_MAX_DIGITS, value.whole_digits + value.fraction_digits + _SUM_DIGITS)
        return f"decimal({digits},{value.fraction_digits})"
    return "bigint"
