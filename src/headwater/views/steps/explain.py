"""A view's normal form as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from headwater.views.steps.join import Condition, Edge, JoinView
from headwater.views.text.spark_text import spark_text

LATE = "   (computed last: it may fail on rows that are gone)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDescription:
    """What a view reads, how its relations join, when each condition is tested, and what it gives."""

    name: str
    relations: tuple[str, ...]
    edges: tuple[str, ...]
    conditions: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        """Return the description as indented text."""
        sections = (
            ("reads", list(self.relations)),
            ("joins on", list(self.edges)),
            ("keeps rows where", [f"{text}{late}" for text, late in self.conditions]),
            ("gives", [name if name == text else f"{name} = {text}" for name, text in self.outputs]),
        )
        lines = [f"view {self.name}"]
        for title, items in sections:
            lines += [f"  {title}", *(f"    {item}" for item in items)] if items else []
        return "\n".join(lines)


def describe_view(view: JoinView) -> ViewDescription:
    """Return a view's join graph in words.

    The columns by which rows find their partners are shown once, as what the view joins on.
    """
    return ViewDescription(
        name=view.name,
        relations=tuple(
            f"{occurrence.relation.name} AS {occurrence.alias} ({', '.join(occurrence.columns)})"
            for occurrence in view.occurrences
        ),
        edges=tuple(_edge(edge) for edge in view.edges),
        conditions=tuple((_plain(c.expression), late) for c, late in tested_conditions(view)),
        outputs=tuple(
            (output.name, _plain(output.expression) + (LATE if output.fallible else "")) for output in view.outputs
        ),
    )


def _edge(edge: Edge) -> str:
    return " AND ".join(f"{edge.left}.{left} = {edge.right}.{right}" for left, right in edge.pairs)


def tested_conditions(view: JoinView) -> Iterator[tuple[Condition, str]]:
    """Yield the conditions that are more than what the view joins on, each with when it is tested if that is last."""
    for condition in view.conditions:
        if condition.fallible or not _is_probe_edge(condition.expression, view):
            yield condition, LATE if condition.fallible else ""


def _is_probe_edge(expression: exp.Expr, view: JoinView) -> bool:
    if not isinstance(expression, exp.EQ):
        return False
    bare = (expression.left.unnest(), expression.right.unnest())
    sides = frozenset((side.table, side.name) for side in bare if isinstance(side, exp.Column))
    pairs = {frozenset({(e.left, a), (e.right, b)}) for e in view.edges for a, b in e.pairs}
    return sides in pairs


def _plain(expression: exp.Expr) -> str:
    """Return an expression without the quotes that only odd names need."""
    unquoted = expression.copy()
    for identifier in unquoted.find_all(exp.Identifier):
        identifier.set("quoted", not identifier.name.isidentifier())
    return spark_text(unquoted)
