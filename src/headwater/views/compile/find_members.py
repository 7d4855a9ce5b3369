"""EXISTS, IN, NOT EXISTS and NOT IN as conditions.

`x NOT IN (SELECT s ...)` is not the opposite of a partner: a NULL among the s, or x being NULL, makes it unknown, and
unknown is not true. So if NULL is possible, one row of facts about the query is joined as well:

    R is empty  OR  (no s is NULL AND x IS NOT NULL AND no s equals x)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from headwater.views.compile.draft import Draft
from headwater.views.compile.expressions import column, is_linked, settle
from headwater.views.compile.keep_matching import keep_matching, keep_unmatched, own_conditions
from headwater.views.compile.names import Context, Sight
from headwater.views.compile.never_null import is_never_null
from headwater.views.compile.plan import ROWS, Block, Frame, known_of
from headwater.views.compile.reasons import LINKED, UNCOMMON, NoIncrementalForm


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipTest:
    """A condition that asks whether a query has a row. For IN, one that equals the `wanted` values."""

    query: exp.Expr
    wanted: tuple[exp.Expr, ...]
    negated: bool


def find_test(condition: exp.Expr) -> MembershipTest | None:
    """Return what a condition asks, if it is nothing but a test for membership."""
    bare = condition.unnest()
    match bare:
        case exp.Not():
            inner = find_test(bare.this)
            return replace(inner, negated=not inner.negated) if inner else None
        case exp.Exists():
            return MembershipTest(query=bare.this, wanted=(), negated=False)
        case exp.In() if bare.args.get("query"):
            this = bare.this.unnest()
            wanted = tuple(this.expressions) if isinstance(this, exp.Tuple) else (this,)
            return MembershipTest(query=bare.args["query"], wanted=wanted, negated=False)
        case _:
            return None


def keep_members(frame: Frame, test: MembershipTest, sight: Sight, context: Context) -> Frame:
    """Return the frame with only the rows for which the query has a row."""
    block = compile_tested(test, sight, context)
    if is_always_there(block, test):
        return frame
    return keep_matching(frame, block, conditions_of(block, test, frame), context.draft)


def keep_strangers(frame: Frame, test: MembershipTest, sight: Sight, context: Context) -> Frame:
    """Return the frame with only the rows for which the query surely has none."""
    block = compile_tested(test, sight, context)
    if is_always_there(block, test):
        return replace(frame, conditions=(*frame.conditions, exp.false()))
    conditions = conditions_of(block, test, frame)
    if is_never_unknown(block, test, frame):
        return keep_unmatched(frame, block, conditions, context.draft)
    if len(test.wanted) == 1 and not any(is_linked(condition) for condition in block.conditions):
        frame = _with_facts(frame, block, settle(test.wanted[0], frame.columns), context.draft)
        return keep_unmatched(frame, block, conditions, context.draft)
    return keep_unmatched(frame, block, unknown_conditions(block, test, frame), context.draft)


def compile_tested(test: MembershipTest, sight: Sight, context: Context) -> Block:
    """Return the query. What EXISTS selects does not matter."""
    query = bare_query(test.query)
    if not test.wanted and isinstance(query, exp.Select) and query.args.get("from_") and not _is_grouped(query):
        query = query.copy()
        query.set("expressions", [exp.Literal.number(1)])
        query.set("distinct", None)
    inner = replace(context, around=(sight, *context.around), is_outermost=False)
    block = context.compile(query, inner)
    if test.wanted and len(test.wanted) != len(block.values):
        raise NoIncrementalForm(UNCOMMON, "IN with another number of columns")
    if block.empty is not None and test.wanted and any(is_linked(c) for c in block.conditions):
        raise NoIncrementalForm(LINKED, context.statement.words_of(query))
    return block


def bare_query(query: exp.Expr) -> exp.Expr:
    """Return a query without the parentheses around it, as far as nothing else is said there."""
    while isinstance(query, (exp.Paren, exp.Subquery)) and not any(
        value for part, value in query.args.items() if part != "this"
    ):
        query = query.this
    return query


def is_always_there(block: Block, test: MembershipTest) -> bool:
    """Tell whether EXISTS asks about an aggregate without GROUP BY, which always has its one row."""
    if block.empty is None or test.wanted:
        return False
    links = [condition for condition in block.conditions if is_linked(condition)]
    if links and own_conditions(block):
        raise NoIncrementalForm(LINKED, "HAVING in a sub-query without GROUP BY")
    return not own_conditions(block)


def conditions_of(block: Block, test: MembershipTest, frame: Frame) -> list[exp.Expr]:
    """Return what a partner must meet: the query's links, and equality with what is wanted."""
    links = [settle(condition, frame.columns) for condition in block.conditions if is_linked(condition)]
    wanted = [settle(value, frame.columns) for value in test.wanted]
    if not test.wanted:
        return links
    held = [settle(value, frame.columns) for value in block.values]
    return links + [exp.EQ(this=value, expression=other) for value, other in zip(held, wanted, strict=True)]


def unknown_conditions(block: Block, test: MembershipTest, frame: Frame) -> list[exp.Expr]:
    """Return what a partner must meet with which equality is true or unknown."""
    links = [settle(condition, frame.columns) for condition in block.conditions if is_linked(condition)]
    wanted = [settle(value, frame.columns) for value in test.wanted]
    return links + [
        exp.or_(
            exp.EQ(this=value.copy(), expression=other.copy()),
            exp.Is(this=value.copy(), expression=exp.null()),
            exp.Is(this=other.copy(), expression=exp.null()),
        )
        for value, other in zip([settle(value, frame.columns) for value in block.values], wanted, strict=True)
    ]


def is_never_unknown(block: Block, test: MembershipTest, frame: Frame) -> bool:
    """Tell whether NULL cannot get in the way."""
    wanted = [settle(value, frame.columns) for value in test.wanted]
    return all(is_never_null(value, frame.occurrences, frame.conditions) for value in wanted) and all(
        is_never_null(value, block.occurrences, block.conditions) for value in block.values[: len(wanted)]
    )


def _is_grouped(query: exp.Select) -> bool:
    clauses = any(query.args.get(clause) for clause in ("group", "having", "limit", "offset", "qualify"))
    return clauses or any(item.find(exp.AggFunc) for item in query.expressions)


def _with_facts(frame: Frame, block: Block, wanted: exp.Expr, draft: Draft) -> Frame:
    """Join what must be known of the query as a whole: tested before it is joined, so that counts do not matter."""
    indicator = exp.Case().when(exp.Not(this=exp.Is(this=block.values[0].copy(), expression=exp.null())), "1")
    node, [name] = draft.join(block.occurrences, own_conditions(block), [indicator])
    counted = draft.occurrence(draft.group(node, (), [name]))
    rows, known = column(counted.alias, ROWS), column(counted.alias, known_of(name))
    is_empty = exp.EQ(this=rows, expression=exp.Literal.number(0))
    has_null = exp.LT(this=known, expression=rows.copy())
    facts, [empty_name, null_name] = draft.join([counted], [], [is_empty, has_null])
    found = replace(draft.occurrence(facts), is_test=True)
    is_known = exp.Not(this=exp.Is(this=wanted.copy(), expression=exp.null()))
    condition = exp.or_(
        column(found.alias, empty_name), exp.and_(exp.Not(this=column(found.alias, null_name)), is_known)
    )
    return replace(frame, occurrences=(*frame.occurrences, found), conditions=(*frame.conditions, condition))
