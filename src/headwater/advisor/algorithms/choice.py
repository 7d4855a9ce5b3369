"""What an algorithm chose, how it came to it, and what it cost to find."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.advisor.candidates import Auxiliary, Kept
from headwater.advisor.cost_model import CostModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One step of a search: a table was taken in or given up, and what the set cost after it."""

    table: Auxiliary
    is_added: bool
    total: float

    def __str__(self) -> str:
        """Return the table, with a minus if it was given up."""
        return str(self.table) if self.is_added else f"−{self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A set of auxiliary tables, its cost, the moves that led to it, and how many sets were priced on the way."""

    kept: Kept
    total: float
    priced_count: int
    moves: tuple[Move, ...] = ()


class Pricing:
    """Prices sets for one search: each once, and counted."""

    def __init__(self, model: CostModel) -> None:
        """Begin with nothing priced."""
        self._model = model
        self._totals: dict[Kept, float] = {}

    def total(self, kept: Kept) -> float:
        """Return what a set costs in all."""
        if kept not in self._totals:
            self._totals[kept] = self._model.total(kept)
        return self._totals[kept]

    def choice(self, kept: Kept, moves: tuple[Move, ...] = ()) -> Choice:
        """Return a set as the choice."""
        return Choice(kept=kept, total=self.total(kept), priced_count=len(self._totals), moves=moves)
