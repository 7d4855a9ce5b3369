"""What keeps a row out of a view."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headwater.deltas.on_arrow import ArrowRestriction
from headwater.model.relation import RelationName


class ObstacleKind(Enum):
    """Kinds of obstacles."""

    NO_ROW = "no such row"
    NO_PARTNER = "no partner"
    CONDITION = "a condition is not true"
    VALUE = "another value"
    TAKEN_AWAY = "a partner that must not be"
    NOT_FIRST = "not among the first"
    UNKNOWN = "computed as a whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Rows of a relation that are not there."""

    relation: RelationName
    within: ArrowRestriction


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """The first thing on the way that keeps a row out, in a sentence. `missing` rows of a relation would remove it."""

    kind: ObstacleKind
    text: str
    missing: Missing | None = None
