"""What `trace`, `impact` and `why-not` answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.model.moment import AtPosition
from headwater.model.position import Position, Tick
from headwater.observe.status import Stop

if TYPE_CHECKING:  # verbs that show other results are quicker without
    from headwater.deltas.lookup import Origin
    from headwater.lineage.obstacles import Obstacle
    from headwater.lineage.traced import Traced


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRelation:
    """The rows of a relation that derived rows of a view, each once with how often the relation holds it (`_count`)."""

    relation: str
    origin: Origin
    rows: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceResult:
    """Rows of a view at a tick, each once with `_count`, and what they derive from: by relation, and as a tree."""

    view: str
    tick: Tick
    rows: pa.Table
    relations: tuple[TracedRelation, ...]
    tree: tuple[Traced, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """Rows of a relation or view that came (`_count` above 0) and went (below 0) in the ticks (after, upto]."""

    name: str
    after: Tick
    upto: Tick
    rows: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactResult:
    """What one tick changed: its transactions' own rows, and those of every view that had come so far.

    A view that need not show every tick shows this one together with others: its rows are of more ticks than one.
    `not_yet` are views that have not come to the tick, `not_born` those that came to be at it or after. The position
    that was `asked` for may lie after the end of the transaction: then it is the newest one up to there.
    """

    tick: Tick
    asked: AtPosition
    positions: tuple[Position, ...]
    committed_at: datetime
    relations: tuple[ChangedRows, ...]
    views: tuple[ChangedRows, ...]
    not_yet: tuple[str, ...] = ()
    not_born: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedRows:
    """The rows of a view at a tick that derive from rows of a relation (`of`), each once with `_count`."""

    view: str
    tick: Tick
    rows: pa.Table
    of: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class RowImpactResult:
    """What derives from the rows of a relation that have some values, in every view that reads the relation."""

    relation: str
    row: Mapping[str, object]
    views: tuple[DerivedRows, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A transaction that brings what is missing, and that the view has not come to."""

    tick: Tick
    position: Position
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNotResult:
    """What keeps a row out of a view at a tick: the first obstacle on every path to it. None if the row is there."""

    view: str
    tick: Tick
    row: Mapping[str, object]
    obstacles: tuple[Obstacle, ...]
    pending: tuple[Pending, ...] = ()
    stopped: Stop | None = None
