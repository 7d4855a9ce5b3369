"""From which columns of relations a view's column comes: copied, computed from some, or summed up from many rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage

from headwater.views.text.upstream_views import ViewText, whole_text


class OriginKind(Enum):
    """How a value comes from those of its relations' columns."""

    COPIED = "copied"
    COMPUTED = "computed"
    AGGREGATED = "aggregated"
    ROWS = "rows"
    """From whole rows, as COUNT(*) does, or it is not known from which columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOrigin:
    """Where a view's column comes from. `columns` are (relation, column) pairs, as texts write them."""

    kind: OriginKind
    columns: tuple[tuple[str, str], ...] = ()


def column_origins(
    sql: str, below: Sequence[ViewText], outputs: Sequence[str], relations: Mapping[str, Sequence[str]]
) -> dict[str, ColumnOrigin]:
    """Return where each output of a view comes from, through the views that it reads.

    `relations` has the columns of each relation, which tells what a name without a qualifier means.

    >>> sales = {"shop.sales": ["id", "city", "price", "count"]}
    >>> found = column_origins("SELECT city, SUM(price * count) AS paid, COUNT(*) AS n FROM shop.sales GROUP BY city",
    ...                        [], ["city", "paid", "n"], sales)
    >>> [(name, origin.kind.value, [column for _, column in origin.columns]) for name, origin in found.items()]
    [('city', 'copied', ['city']), ('paid', 'aggregated', ['count', 'price']), ('n', 'rows', [])]
    """
    schema: dict[str, dict[str, dict[str, str]]] = {}
    for relation, columns in relations.items():
        match relation.split("."):
            case [source, table]:
                schema.setdefault(source, {})[table] = dict.fromkeys(columns, "string")
            case _:  # sqlglot wants names of one depth; without its columns a relation is still followed
                pass
    text = whole_text(sql, below)
    return {name: _origin(name, text, schema) for name in outputs}


def _origin(name: str, text: str, schema: dict[str, dict[str, dict[str, str]]]) -> ColumnOrigin:
    try:
        root = lineage(name, text, schema, dialect="spark")
    except (SqlglotError, ValueError, KeyError):
        return ColumnOrigin(kind=OriginKind.ROWS)
    leaves = sorted({leaf for node in root.walk() if (leaf := _leaf(node)) is not None})
    if not leaves:
        return ColumnOrigin(kind=OriginKind.ROWS)
    inner = [one.expression for one in root.walk() if not isinstance(one.expression, exp.Table)]
    if any(one.find(exp.AggFunc) for one in inner):
        return ColumnOrigin(kind=OriginKind.AGGREGATED, columns=tuple(leaves))
    is_copied = len(leaves) == 1 and all(isinstance(one.unalias(), exp.Column) for one in inner)
    return ColumnOrigin(kind=OriginKind.COPIED if is_copied else OriginKind.COMPUTED, columns=tuple(leaves))


def _leaf(node: Node) -> tuple[str, str] | None:
    """Return the relation and the column that a node of sqlglot's lineage stands for, if it ends there."""
    if not isinstance(node.expression, exp.Table):
        return None
    relation = ".".join(part.name for part in node.expression.parts)
    return relation, node.name.rpartition(".")[2]
