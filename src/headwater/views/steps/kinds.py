"""The kinds of step. A new kind is a file like `union_step.py` and an entry here. The compiler then may write it."""

from __future__ import annotations

from headwater.views.steps.group_step import GroupStep
from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.recompute_step import RecomputeStep
from headwater.views.steps.regroup_step import RegroupStep
from headwater.views.steps.segments import Step
from headwater.views.steps.union_step import UnionStep

KINDS: tuple[type[Step], ...] = (JoinStep, GroupStep, RegroupStep, UnionStep, RecomputeStep)
