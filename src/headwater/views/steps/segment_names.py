"""What a segment is called: after what it says, so that segments that mean the same have one name, in all views.

A segment means its step over its inputs, which have such names themselves, and its columns. The last segment of a view
goes by the view's own name instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from headwater.model.relation import Column, RelationName, SegmentName
from headwater.views.steps.segments import Segment, SegmentedView, Step

_DIGITS = 12


def segment_name(step: Step, columns: Sequence[Column]) -> RelationName:
    """Return the name of a segment that has this step and these columns."""
    return name_of_kind(step.kind, step, columns)


def name_of_kind(kind: str, step: Step, columns: Sequence[Column]) -> RelationName:
    """Return the name of a segment that is there for something special."""
    return SegmentName(name=f"{kind}_{_digest(_told(step, columns))[:_DIGITS]}")


def shape(view: SegmentedView) -> str:
    """Return what tells two ways to compute a view apart. Nothing where it is just a join."""
    if view.only_join is not None:
        return ""
    return _digest("\n".join(f"{segment.name} {segment.is_kept} {_meaning(segment)}" for segment in view.segments))


def _meaning(segment: Segment) -> str:
    return _told(segment.step, segment.relation.columns)


def _told(step: Step, columns: Sequence[Column]) -> str:
    return f"{step.identity} {[(column.name, column.type) for column in columns]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
