"""Rows of L that have a partner in R (semi-join), and those that have none (anti-join), each as often as before.

    L ⋉ R = L ⋈ D         D: what a row of L must have to find a partner, each once
    L ▷ R = L − L ⋈ D     signed, so linear; right for any condition, also with NULLs

D is found in one of four ways, the cheapest that is right:

| conditions between L and R | D |
|---|---|
| r.x = l.a AND ..., and r.x is a key of R | R itself |
| r.x = l.a AND ... | DISTINCT r.x of R |
| none | one row, if R has any |
| any other θ | DISTINCT l.a of L ⋈θ R, where l.a are the columns of L in θ; joined null-safe |

For the last, L need not be all that was joined: the occurrences that θ speaks of are enough.

LEFT, RIGHT and FULL JOIN are the inner join, and the rows without a partner with NULL beside them:

    L ⟕ R = L ⋈ R  +  (L − L ⋉ R) × NULLs
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from sqlglot import exp

from headwater.views.compile.draft import Draft, DraftPart
from headwater.views.compile.expressions import (
    REJECT_NULL,
    column,
    columns_in,
    has_query,
    is_linked,
    null_of,
    outer_names,
    settle,
    split_equality,
    tables_in,
)
from headwater.views.compile.plan import ROWS, Block, Frame, Grouped, PlannedOccurrence, SourceRelation
from headwater.views.compile.reasons import LINKED, UNCOMMON, NoIncrementalForm


def keep_matching(frame: Frame, right: Frame | Block, conditions: Sequence[exp.Expr], draft: Draft) -> Frame:
    """Return the frame with only the rows that have a partner for which the conditions, all settled, are true."""
    sides = _Sides.of(right, conditions)
    frame = replace(frame, conditions=frame.conditions + sides.left)
    if linked := [condition for condition in sides.both if is_linked(condition)]:
        raise NoIncrementalForm(LINKED, outer_names(linked[0]))
    if not sides.both:
        return _if_any(frame, right, sides, draft)
    own = frozenset(o.alias for o in right.occurrences)
    pairs = [split_equality(condition, own) for condition in sides.both]
    equalities = [pair for pair in pairs if pair is not None]
    if len(equalities) < len(pairs):
        return _by_any_condition(frame, right, sides, draft)
    mine = [pair[0] for pair in equalities]
    if _is_key(right.occurrences, mine):
        return replace(
            frame,
            occurrences=frame.occurrences + right.occurrences,
            conditions=frame.conditions + sides.right + sides.both,
        )
    node, names = draft.join(right.occurrences, sides.right, mine)
    found = draft.occurrence(draft.group(node, names))
    tests = tuple(
        exp.EQ(this=column(found.alias, name), expression=other)
        for name, (_, other) in zip(names, equalities, strict=True)
    )
    return replace(frame, occurrences=(*frame.occurrences, found), conditions=frame.conditions + tests)


def keep_unmatched(frame: Frame, right: Frame | Block, conditions: Sequence[exp.Expr], draft: Draft) -> Frame:
    """Return the frame with only the rows that have no partner for which the conditions, all settled, are true."""
    if linked := [condition for condition in conditions if is_linked(condition)]:
        raise NoIncrementalForm(LINKED, outer_names(linked[0]))
    matched = keep_matching(frame, right, conditions, draft)
    carried: list[exp.Expr] = [*carried_columns(frame)] or [exp.Literal.number(1)]
    node = draft.unite(
        [
            (*draft.join(frame.occurrences, own_conditions(frame), carried), 1),
            (*draft.join(matched.occurrences, own_conditions(matched), carried), -1),
        ]
    )
    return move_to(frame, draft.occurrence(node), carried)


def own_conditions(frame: Frame | Block) -> tuple[exp.Expr, ...]:
    """Return the conditions that speak of no outer query."""
    return tuple(condition for condition in frame.conditions if not is_linked(condition))


def carried_columns(frame: Frame) -> list[exp.Column]:
    """Return the columns of occurrences that something after this frame may ask for."""
    asked = [*frame.columns.values(), *(condition for condition in frame.conditions if is_linked(condition))]
    aliases = {o.alias for o in frame.occurrences}
    return list(dict.fromkeys(c for value in asked for c in columns_in(value) if c.table in aliases))


def move_to(frame: Frame, occurrence: PlannedOccurrence, carried: Sequence[exp.Expr]) -> Frame:
    """Return the frame over a node that holds its rows. `carried` are what the node's first columns were before."""
    meant = {
        (was.table, was.name): column(occurrence.alias, now.name)
        for was, now in zip(carried, occurrence.node.columns, strict=False)
        if isinstance(was, exp.Column)
    }
    links = tuple(settle(condition, meant) for condition in frame.conditions if is_linked(condition))
    columns = {name: settle(value, meant) for name, value in frame.columns.items()}
    return Frame(occurrences=(occurrence,), conditions=links, columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """Conditions, by whom they speak of: the left side alone, the right side alone, both."""

    left: tuple[exp.Expr, ...]
    right: tuple[exp.Expr, ...]
    both: tuple[exp.Expr, ...]

    @staticmethod
    def of(right: Frame | Block, conditions: Sequence[exp.Expr]) -> _Sides:
        if any(has_query(condition) for condition in conditions):
            raise NoIncrementalForm(UNCOMMON, "a query inside ON")
        own = frozenset(o.alias for o in right.occurrences)
        tables = [(condition, tables_in(condition)) for condition in conditions]
        mine = own_conditions(right)
        return _Sides(
            left=tuple(c for c, found in tables if not found & own),
            right=mine + tuple(c for c, found in tables if found and found <= own),
            both=tuple(c for c, found in tables if found & own and found - own),
        )


def _is_key(occurrences: Sequence[PlannedOccurrence], values: Sequence[exp.Expr]) -> bool:
    """Tell whether no two rows agree in these values."""
    if len(occurrences) != 1:
        return False
    node = occurrences[0].node
    held = {value.name for value in values if isinstance(value, exp.Column)}
    if isinstance(node, Grouped):
        return held >= set(node.keys)
    return isinstance(node, SourceRelation) and bool(node.relation.key) and held >= set(node.relation.key)


def _if_any(frame: Frame, right: Frame | Block, sides: _Sides, draft: Draft) -> Frame:
    """Join one row that is there if the right side has any: counted, then tested, so that the count does not matter."""
    node, _ = draft.join(right.occurrences, sides.right, [exp.Literal.number(1)])
    counted = draft.occurrence(draft.group(node, ()))
    test = exp.GT(this=column(counted.alias, ROWS), expression=exp.Literal.number(0))
    one, _ = draft.join([counted], [test], [exp.Literal.number(1)])
    return replace(frame, occurrences=(*frame.occurrences, draft.occurrence(one)))


def _by_any_condition(frame: Frame, right: Frame | Block, sides: _Sides, draft: Draft) -> Frame:
    own = {o.alias for o in right.occurrences}
    asked = list(dict.fromkeys(c for both in sides.both for c in columns_in(both) if c.table not in own))
    near = [replace(o, is_test=True) for o in frame.occurrences if o.alias in {c.table for c in asked}]
    aliases = {o.alias for o in near}
    local = [c for c in own_conditions(frame) if tables_in(c) and tables_in(c) <= aliases]
    node, names = draft.join([*near, *right.occurrences], [*local, *sides.right, *sides.both], asked)
    found = draft.occurrence(draft.group(node, names))
    never = {
        c for both in sides.both if isinstance(both, REJECT_NULL) for c in (both.left.unnest(), both.right.unnest())
    }
    tests = tuple(
        (exp.EQ if one in never else exp.NullSafeEQ)(this=one.copy(), expression=column(found.alias, name))
        for one, name in zip(asked, names, strict=True)
    )
    return replace(frame, occurrences=(*frame.occurrences, found), conditions=frame.conditions + tests)


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
