"""What a segment is called: after what it says, so that whatever means the same has one name, in whichever view it is.

A segment means its step over its inputs, which have such names themselves, and its columns. The last segment of a view
goes by the view's own name instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import assert_never

from headwater.relation import Column, RelationName
from headwater.views.normal_form import JoinView
from headwater.views.segments import (
    SEGMENTS,
    GroupStep,
    JoinStep,
    RecomputeStep,
    RegroupStep,
    Segment,
    SegmentedView,
    Step,
    UnionStep,
)

_DIGITS = 12


def segment_name(step: Step, columns: Sequence[Column]) -> RelationName:
    """Return the name of a segment that has this step and these columns."""
    return name_of_kind(kind_of(step), step, columns)


def name_of_kind(kind: str, step: Step, columns: Sequence[Column]) -> RelationName:
    """Return the name of a segment that is there for something special."""
    return RelationName(source=SEGMENTS, name=f"{kind}_{_digest(_told(step, columns))[:_DIGITS]}")


def shape(view: SegmentedView) -> str:
    """Return what tells two ways to compute a view apart; nothing where it is just a join."""
    if view.only_join is not None:
        return ""
    return _digest("\n".join(f"{segment.name} {segment.is_kept} {_meaning(segment)}" for segment in view.segments))


def kind_of(step: Step) -> str:
    """Return what a step is called."""
    match step:
        case JoinStep(view=join):
            return "join" if len(join.occurrences) > 1 else "selection"
        case GroupStep():
            return "group"
        case RegroupStep():
            return "regroup"
        case UnionStep():
            return "union"
        case RecomputeStep():
            return "recompute"
        case _:
            assert_never(step)


def _meaning(segment: Segment) -> str:
    return _told(segment.step, segment.relation.columns)


def _told(step: Step, columns: Sequence[Column]) -> str:
    said = _said(step.view) if isinstance(step, JoinStep) else repr(step)
    return f"{said} {[(column.name, column.type) for column in columns]}"


def _said(join: JoinView) -> str:
    """Return a join's text, and which of its occurrences only test: rows are the same, their lineage is not."""
    tests = [occurrence.alias for occurrence in join.occurrences if occurrence.is_test]
    return f"{join.sql} {tests}" if tests else join.sql


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
