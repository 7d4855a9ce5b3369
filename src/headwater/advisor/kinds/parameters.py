"""Paper 002's Table 1: what its formulas know about a view, with the paper's default values, and its four kinds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class MaintenanceKind(Enum):
    """The four kinds of maintenance: recomputed or incremental, from what is kept (self-maintained) or by asking."""

    SMR = "self-maintained recomputation"
    NSMR = "recomputation by asking"
    SMIM = "self-maintained, incremental"
    NSMIM = "incremental by asking"


class Case(Enum):
    """The cases that the paper's tables tell apart."""

    BEST = "best"
    AVERAGE = "average"
    WORST = "worst"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows accessed to bring one update, or several, into a view: where they are."""

    in_warehouse: float
    in_source: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.in_warehouse + self.in_source


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """A view over relations that are all alike, and its updates. Auxiliary views are replicas of the relations."""

    view_rows: float = 914
    """Card(V)."""
    view_row_size: float = 43
    """ts(V), bytes."""
    relation_count: int = 3
    """N."""
    auxiliary_count: int = 3
    """Nav."""
    relation_rows: float = 108_000_000
    """Card(r), and Card(AV)."""
    relation_row_size: float = 116
    """ts(r), and ts(AV), bytes."""
    selectivity: float = 0.003
    """σ."""
    join_factor: float = 0.73
    """j. For a known number of partners per row, j = partners / Card(r): then J is that number."""
    interfering: float = 0.5
    """I: updates that interfere with a query."""
    update_rows: float = 1
    """Card(U), and Card(ΔAV)."""
    update_count: float = 1
    """Nupdate."""

    @property
    def partners(self) -> float:
        """J = j · Card(r): how many rows of a relation a row joins. With the paper's defaults, 79 million of 108."""
        return self.join_factor * self.relation_rows

    @property
    def worst(self) -> Parameters:
        """Everything is selected, everything joins, and every relation has its replica."""
        return replace(self, selectivity=1.0, join_factor=1.0, auxiliary_count=self.relation_count)


def power_sum(ratio: float, count: int) -> float:
    """Return 1 + ratio + ratio² + …, with this many terms, or 0 without terms.

    >>> power_sum(10, 3), power_sum(10, 0)
    (111.0, 0.0)
    """
    return sum((ratio**power for power in range(count)), start=0.0)
