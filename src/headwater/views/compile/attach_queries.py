"""Queries that stand for a value: (SELECT ...), EXISTS and IN anywhere in an expression.

| query | becomes |
|---|---|
| an aggregate, not linked | a group of one row, joined |
| an aggregate, linked by equalities, in a comparison that NULL does not meet | a group per link, joined |
| the same elsewhere, or a COUNT | that, and for rows without a group the value that no rows give |
| any other query | its one value per link, or an error if there are several |
| EXISTS, IN | TRUE for rows that have a partner, FALSE for the others |
| NOT IN | FALSE for rows that have a partner, or one of which that is unknown; TRUE for the others |

Spark has no unknown truth here: where SQL would say NULL, IN and NOT IN are FALSE. So it is done here, where that makes
no difference or is what Spark does (`unknown_tests`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from headwater.views.compile.draft import Draft, DraftPart
from headwater.views.compile.expressions import (
    REJECT_NULL,
    SUBQUERIES,
    UNSETTLED,
    all_of,
    column,
    is_linked,
    is_surely_null,
    null_of,
    outer_names,
    replace_parts,
    settle,
    split_equality,
)
from headwater.views.compile.find_members import (
    MembershipTest,
    bare_query,
    compile_tested,
    conditions_of,
    find_test,
    is_always_there,
    is_never_unknown,
    unknown_conditions,
)
from headwater.views.compile.keep_matching import carried_columns, keep_matching, move_to, own_conditions
from headwater.views.compile.names import Context, Sight
from headwater.views.compile.plan import Block, Frame
from headwater.views.compile.reasons import LINKED, SINGLE_VALUE, UNCOMMON, NoIncrementalForm
from headwater.views.compile.unknown_tests import is_decided, move_not_to_tests
from headwater.views.steps.computed import Aggregates
from headwater.views.text.spark_text import quoted

_STRICT = (*REJECT_NULL, exp.Between, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Cast)


def attach_queries(
    expressions: Sequence[exp.Expr], frame: Frame, sight: Sight, context: Context, *, decides: bool = False
) -> tuple[list[exp.Expr], Frame]:
    """Return expressions with names in place of the queries inside, and the frame in which these names mean something.

    The expressions' own names are found already; those inside queries are found here. `decides` says of expressions
    that it makes no difference whether they are FALSE or unknown (`unknown_tests`).
    """
    results = []
    for written in expressions:
        expression = move_not_to_tests(written)
        named: dict[int, exp.Expr] = {}
        for node in _topmost(expression):
            name = (UNSETTLED, f"q{context.draft.number()}")
            if (test := find_test(node)) is not None:
                is_sure = is_decided(node, expression, root_decides=decides)
                frame = _attach_test(test, name, frame, sight, context, is_sure=is_sure)
            else:
                frame = _attach(node, name, frame, sight, context, rejects_null=_rejects_null(node, expression))
            named[id(node)] = column(*name)
        results.append(_replace_by_id(expression, named))
    return results, frame


def _replace_by_id(expression: exp.Expr, named: Mapping[int, exp.Expr]) -> exp.Expr:
    return replace_parts(expression, lambda node: named.get(id(node)))


def _topmost(expression: exp.Expr) -> list[exp.Expr]:
    def is_query(node: exp.Expr) -> bool:
        return isinstance(node, SUBQUERIES) or find_test(node) is not None

    return [node for node in expression.walk(prune=is_query) if is_query(node)]


def _rejects_null(node: exp.Expr, root: exp.Expr) -> bool:
    """Tell whether a condition is not TRUE if the value of a part is NULL."""
    if not isinstance(root.unnest(), (*REJECT_NULL, exp.Between)):
        return False
    above = node
    while above is not root:
        assert above.parent is not None, "a part of a condition stands below it"
        above = above.parent
        if not isinstance(above, _STRICT):
            return False
    return True


def _attach(
    node: exp.Expr, name: tuple[str, str], frame: Frame, sight: Sight, context: Context, *, rejects_null: bool
) -> Frame:
    query = bare_query(node)
    inner = replace(context, around=(sight, *context.around), is_outermost=False)
    block = context.compile(query, inner)
    if len(block.values) != 1:
        raise NoIncrementalForm(UNCOMMON, context.statement.words_of(query))
    if block.empty is None or own_conditions(block):
        block = _single_value(block, context.draft)
    assert block.empty is not None, "a value that no rows give is known for what is one value"
    links = [settle(condition, frame.columns) for condition in block.conditions if is_linked(condition)]
    if beyond := [condition for condition in links if is_linked(condition)]:
        raise NoIncrementalForm(LINKED, outer_names(beyond[0]))
    joined = Frame(
        occurrences=frame.occurrences + block.occurrences,
        conditions=(*frame.conditions, *links),
        columns={**frame.columns, name: block.values[0]},
    )
    if not links or (rejects_null and is_surely_null(block.empty[0])):
        return joined
    return _choose(frame, joined, name, block.values[0], block.empty[0], context.draft)


def _attach_test(
    test: MembershipTest, name: tuple[str, str], frame: Frame, sight: Sight, context: Context, *, is_sure: bool
) -> Frame:
    block = compile_tested(test, sight, context)
    if test.wanted and not is_sure and not is_never_unknown(block, test, frame):
        raise NoIncrementalForm(UNCOMMON, f"{'NOT ' if test.negated else ''}IN as a value that may be unknown")
    yes, no = exp.Boolean(this=not test.negated), exp.Boolean(this=test.negated)
    if is_always_there(block, test):
        return replace(frame, columns={**frame.columns, name: yes})
    in_doubt = test.negated and test.wanted and not is_never_unknown(block, test, frame)
    conditions = (unknown_conditions if in_doubt else conditions_of)(block, test, frame)
    matched = keep_matching(frame, block, conditions, context.draft)
    return _choose(frame, matched, name, yes, no, context.draft)


def _single_value(block: Block, draft: Draft) -> Block:
    """Return the query with one row per link, or one row if it has none.

    Several rows are an error, as in Spark: where a row reads them, not where nobody asks.
    """
    own = frozenset(o.alias for o in block.occurrences)
    links = [condition for condition in block.conditions if is_linked(condition)]
    pairs = [split_equality(link, own) for link in links]
    equalities = [pair for pair in pairs if pair is not None]
    if len(equalities) < len(pairs) or (block.empty is not None and links):
        raise NoIncrementalForm(LINKED, outer_names(all_of(links)))
    node, names = draft.join(
        block.occurrences, own_conditions(block), [*(mine for mine, _ in equalities), *block.values]
    )
    outputs = (("value", f"MAX({quoted(names[-1])})"), ("found", "COUNT(1)"))
    single = draft.regroup(node, names[:-1], Aggregates(outputs=outputs), why=SINGLE_VALUE.code)
    found = draft.occurrence(single)
    has_several = exp.GT(this=column(found.alias, "found"), expression=exp.Literal.number(1))
    message = exp.Literal.string("a sub-query that stands for a value has several rows")
    kind = next(one.type for one in single.columns if one.name == "value")
    value = exp.Case().when(has_several, exp.func("RAISE_ERROR", message)).else_(column(found.alias, "value"))
    return Block(
        occurrences=(found,),
        conditions=tuple(
            exp.EQ(this=column(found.alias, name), expression=other)
            for name, (_, other) in zip(names[:-1], equalities, strict=True)
        ),
        names=block.names,
        values=(value,),
        empty=(null_of(kind),),
    )


def _choose(
    frame: Frame, matched: Frame, name: tuple[str, str], value: exp.Expr, otherwise: exp.Expr, draft: Draft
) -> Frame:
    """Return the frame with a name for one value on matched rows, and for another on the rest.

    Every row of the frame is matched at most once.
    """
    carried = carried_columns(frame)
    kinds = draft.types_of(matched.occurrences, [*carried, value])
    plain = replace(frame, conditions=own_conditions(frame))
    found = replace(matched, conditions=own_conditions(matched))
    node = draft.unite_parts(
        [
            DraftPart(frame=found, values=(*carried, value), sign=1),
            DraftPart(frame=plain, values=(*carried, otherwise), sign=1),
            DraftPart(frame=found, values=(*carried, otherwise), sign=-1),
        ],
        kinds,
    )
    occurrence = draft.occurrence(node)
    moved = move_to(frame, occurrence, carried)
    return replace(moved, columns={**moved.columns, name: column(occurrence.alias, node.columns[-1].name)})
