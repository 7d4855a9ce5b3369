"""What keeps a row out of a view."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headwater.lineage.reading import Restriction
from headwater.relation import RelationName


class Kind(Enum):
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
    within: Restriction


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """The first thing on the way that keeps a row out, in a sentence; `missing` rows of a relation would remove it."""

    kind: Kind
    text: str
    missing: Missing | None = None
