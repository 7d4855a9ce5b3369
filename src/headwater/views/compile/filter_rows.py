"""WHERE and ON: conditions are added to the join. Those with queries inside become joins themselves.

Plain conditions come first, then queries that only add to the join, and last those that need a union (NOT EXISTS), so
that these see as few rows as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from headwater.views.compile.attach_queries import attach_queries
from headwater.views.compile.expressions import conjuncts, has_query, settle
from headwater.views.compile.find_members import find_test, keep_members, keep_strangers
from headwater.views.compile.names import Context, Sight
from headwater.views.compile.plan import Frame
from headwater.views.compile.unknown_tests import move_not_to_tests


def filter_rows(frame: Frame, conditions: Sequence[exp.Expr], sight: Sight, context: Context) -> Frame:
    """Return the frame with conditions, whose names are found, made true."""
    conditions = [part for condition in conditions for part in conjuncts(move_not_to_tests(condition))]
    frame = add_conditions(frame, [condition for condition in conditions if not has_query(condition)])
    tests = [(condition, find_test(condition)) for condition in conditions if has_query(condition)]
    for condition, test in tests:
        if test is None:
            [value], frame = attach_queries([condition], frame, sight, context, decides=True)
            frame = add_conditions(frame, [value])
    for _, test in tests:
        if test is not None and not test.negated:
            frame = keep_members(frame, test, sight, context)
    for _, test in tests:
        if test is not None and test.negated:
            frame = keep_strangers(frame, test, sight, context)
    return frame


def add_conditions(frame: Frame, conditions: Sequence[exp.Expr]) -> Frame:
    """Return the frame with conditions without queries."""
    settled = tuple(settle(condition, frame.columns) for condition in conditions)
    return replace(frame, conditions=frame.conditions + settled)
