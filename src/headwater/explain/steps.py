"""What each step of a view does, in the words of the view's author."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from headwater.deltas.order import Order
from headwater.model.relation import RelationName
from headwater.views.compile.expressions import column
from headwater.views.steps.explain import tested_conditions
from headwater.views.steps.join import JoinView
from headwater.views.steps.segments import SegmentedView
from headwater.views.text.author_spelling import AuthorSpelling
from headwater.views.text.author_words import AuthorWords

_LONGEST = 120
_MOST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWords:
    """A view's words for the columns of its steps."""

    view: SegmentedView
    words: AuthorWords
    spelling: AuthorSpelling

    @classmethod
    def of(cls, view: SegmentedView) -> Self:
        """Return the words of a view."""
        return cls(view=view, words=AuthorWords.of(view), spelling=AuthorSpelling.of(view))

    def columns(self, name: RelationName, held: Iterable[str]) -> str:
        """Return columns of a relation or segment as the author knows them."""
        return _listed([self._short(self.words.of_column(name, one)) for one in held])

    def joined(self, join: JoinView) -> list[str]:
        """Return what a join does, in lines."""
        lines = [
            "joins on "
            + " AND ".join(
                f"{self._said(join, edge.left, left)} = {self._said(join, edge.right, right)}"
                for left, right in edge.pairs
            )
            for edge in join.edges
        ]
        lines += [
            f"where {self._short(self.words.of_expression(one.expression, join))}{late}"
            for one, late in tested_conditions(join)
        ]
        given = [self._short(self.words.of_expression(output.expression, join)) for output in join.outputs]
        return [*dict.fromkeys(lines), f"gives {_listed(given)}"]

    def _said(self, join: JoinView, alias: str, name: str) -> str:
        return self._short(self.words.of_expression(column(alias, name), join))

    def ordered(self, name: RelationName, order: Order) -> str:
        """Return an order of a relation's or segment's rows."""
        return ", ".join(f"{self.columns(name, [by.column])}{' DESC' if by.is_descending else ''}" for by in order)

    def spelled(self, text: str) -> str:
        """Return a text with functions as the author spells them."""
        return self.spelling.words(text)

    def _short(self, text: str) -> str:
        words = self.spelling.words(text)
        return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"


def _listed(words: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(words))
    more = len(distinct) - _MOST
    return ", ".join(distinct[:_MOST]) + (f" and {more} more" if more > 0 else "")
