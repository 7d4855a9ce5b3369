"""Advice as data: what is worth keeping for a view, what it costs beside the alternatives, and what that rests on.

Costs are milliseconds of work per hour, as the cost model predicts them (`cost_model`).
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.advisor.candidates import AuxiliaryKind


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedTable:
    """A table of a set: a replica of a relation, or lineage of a segment. Without it, `saved` more would be spent."""

    kind: AuxiliaryKind
    of: str
    stored_bytes: int
    saved: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A set of tables, and what it costs."""

    tables: tuple[AdvisedTable, ...]
    maintaining: float
    tracing: float
    stored_bytes: int

    @property
    def total(self) -> float:
        """What is compared."""
        return self.maintaining + self.tracing


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRelation:
    """What advice knows of a relation."""

    relation: str
    reading: str
    rows: int
    row_bytes: float
    updates_per_hour: float
    rows_per_update: float
    trip_milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Advice on one view. Of `set_count` sets, `priced_count` were looked at."""

    view: str
    algorithm: str
    set_count: int
    priced_count: int
    recommended: Alternative
    today: Alternative
    nothing: Alternative
    everything: Alternative
    relations: tuple[MeasuredRelation, ...]
    traces_per_hour: float
    is_traced: bool
    """Whether the traces were counted or said, and not guessed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unadvised:
    """A view that leaves no choice, and why."""

    view: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceResult:
    """What `advise` answers. `written` are the changes that it made to the project file, as `[table] key = value`."""

    views: tuple[Advice, ...]
    unadvised: tuple[Unadvised, ...] = ()
    written: tuple[str, ...] = ()
