"""LEFT, RIGHT and FULL JOIN: the inner join, and the rows without a partner with NULL beside them.

L ⟕ R = L ⋈ R  +  (L − L ⋉ R) × NULLs
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from sqlglot import exp

from headwater.views.compile.draft import Draft, DraftPart
from headwater.views.compile.expressions import column, is_linked, null_of
from headwater.views.compile.keep_matching import keep_matching, own_conditions
from headwater.views.compile.plan import Frame
from headwater.views.compile.reasons import LINKED, NoIncrementalForm


class Side(Enum):
    """Whose rows all stay."""

    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"


def join_outer(left: Frame, right: Frame, on: Sequence[exp.Expr], side: Side, draft: Draft) -> Frame:
    """Return the outer join of two frames on settled conditions."""
    if any(is_linked(condition) for condition in on):
        raise NoIncrementalForm(LINKED, "ON")
    both = Frame(
        occurrences=left.occurrences + right.occurrences,
        conditions=left.conditions + right.conditions + tuple(on),
        columns={**left.columns, **right.columns},
    )
    mine, theirs = list(dict.fromkeys(left.columns.values())), list(dict.fromkeys(right.columns.values()))
    kinds = draft.types_of(both.occurrences, [*mine, *theirs])
    nothing = [null_of(kind) for kind in kinds]
    parts = [DraftPart(frame=both, values=(*mine, *theirs), sign=1)]
    if side in {Side.LEFT, Side.FULL}:
        values = (*mine, *nothing[len(mine) :])
        parts += without_partner(left, right, on, values, draft)
    if side in {Side.RIGHT, Side.FULL}:
        values = (*nothing[: len(mine)], *theirs)
        parts += without_partner(right, left, on, values, draft)
    united = draft.occurrence(draft.unite_parts(parts, kinds))
    held = [column(united.alias, one.name) for one in united.node.columns]
    columns = {name: held[mine.index(value)] for name, value in left.columns.items()}
    columns |= {name: held[len(mine) + theirs.index(value)] for name, value in right.columns.items()}
    return Frame(occurrences=(united,), conditions=(), columns=columns)


def without_partner(
    frame: Frame, other: Frame, on: Sequence[exp.Expr], values: tuple[exp.Expr, ...], draft: Draft
) -> list[DraftPart]:
    """Return values of the rows that have no partner: those of all rows, less those of the rows that have one."""
    matched = keep_matching(frame, other, on, draft)
    return [
        DraftPart(frame=replace(frame, conditions=own_conditions(frame)), values=values, sign=1),
        DraftPart(frame=replace(matched, conditions=own_conditions(matched)), values=values, sign=-1),
    ]
