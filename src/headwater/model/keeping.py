"""How a view is kept, and when: what `maintenance =`, `group_tables =` and `refresh =` of a view may say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TypeAlias


class Maintenance(Enum):
    """Paper 002's kinds: recomputed or incremental, from replicas or by asking, or decided per batch."""

    SELF = "self"
    PROBE = "probe"
    RECOMPUTE_SELF = "recompute-self"
    RECOMPUTE_PROBE = "recompute-probe"
    RUNTIME = "runtime"

    @property
    def recomputes(self) -> bool:
        """Whether the view is computed from whole relations at every refresh."""
        return self in (Maintenance.RECOMPUTE_SELF, Maintenance.RECOMPUTE_PROBE)

    @property
    def reads_replicas(self) -> bool:
        """Whether all relations of the view are copied, so that no source is ever asked."""
        return self in (Maintenance.SELF, Maintenance.RECOMPUTE_SELF)


@dataclass(frozen=True, slots=True)
class AllGroupTables:
    """Every segment whose old rows are needed has its group table."""


@dataclass(frozen=True, slots=True)
class TheseGroupTables:
    """Of the segments whose old rows are needed, these have group tables. The others are computed where they can be."""

    names: tuple[str, ...]
    """As `explain` shows them."""


GroupTables: TypeAlias = AllGroupTables | TheseGroupTables


@dataclass(frozen=True, slots=True)
class Continuous:
    """The view is in every batch."""

    def __str__(self) -> str:
        """Return it as the project file writes it."""
        return "continuous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """The view is brought up to date when so long has passed since it was last."""

    seconds: float
    text: str
    """The length of time as it is written."""

    def __str__(self) -> str:
        """Return it as the project file writes it."""
        return f"every {self.text}"


@dataclass(frozen=True, slots=True)
class OnDemand:
    """The view is brought up to date on request."""

    def __str__(self) -> str:
        """Return it as the project file writes it."""
        return "on demand"


Refresh: TypeAlias = Continuous | Every | OnDemand


def next_refresh(refresh: Refresh, refreshed_at: datetime) -> datetime | None:
    """Return when a view that was refreshed at a time is to be refreshed next. None means always, or on demand.

    >>> next_refresh(Every(seconds=600, text="10 min"), datetime(2026, 1, 1, 12, 0))
    datetime.datetime(2026, 1, 1, 12, 10)
    """
    return refreshed_at + timedelta(seconds=refresh.seconds) if isinstance(refresh, Every) else None


class LineageKind(Enum):
    """What may be kept of a segment's join, beside its rows, so that they can be traced."""

    VIEW = "lineage"
    """The lineage view: every row of the join, with the columns of all its operands."""
    SPLIT = "split"
    """The split lineage tables: for every operand the rows that are in the join, each once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageWish:
    """An entry of a view's `keep`: a kind, of a segment by the name that `explain` shows."""

    kind: LineageKind
    of: str

    def __str__(self) -> str:
        """Return it as the project file writes it."""
        return f"{self.kind.value}:{self.of}"
