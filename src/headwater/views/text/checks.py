"""What is refused by the statement alone, before any relation is known.

`VIEW_CHECKS` refuse what depends on when or where a view runs, and what is not understood with certainty. They run in
order: what explains most comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headwater.views.text import support
from headwater.views.text.bounds import excess_of_joins
from headwater.views.text.functions import (
    AGGREGATE_FUNCTIONS,
    MAKE_ROWS,
    NOT_REPEATABLE_FUNCTIONS,
    READER_FUNCTIONS,
    SCALAR_FUNCTIONS,
    WINDOW_FUNCTIONS,
    is_called,
    spelled_name,
)
from headwater.views.text.other_forms import FUNCTION_HINTS, TIMELY_WITHOUT_ARGUMENTS, describe_form
from headwater.views.text.scope import relations_in
from headwater.views.text.statement import Span, Statement
from headwater.views.text.written_call import find_call

_OPERATORS = (
    exp.Add, exp.Alias, exp.And, exp.Between, exp.BitwiseAnd, exp.BitwiseNot, exp.BitwiseOr, exp.BitwiseXor,
    exp.Boolean, exp.Bracket, exp.Case, exp.Cast, exp.Column, exp.DPipe, exp.DataType, exp.DataTypeParam, exp.Div,
    exp.EQ, exp.Escape, exp.GT, exp.GTE, exp.HexString, exp.ILike, exp.Identifier, exp.If, exp.In, exp.IntDiv,
    exp.Interval, exp.Is, exp.LT, exp.LTE, exp.Like, exp.Literal, exp.Mod, exp.Mul, exp.NEQ, exp.Neg, exp.Not,
    exp.Null, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Or, exp.Paren, exp.RawString, exp.RegexpLike, exp.Star, exp.Sub,
    exp.TryCast, exp.Var,
)  # fmt: skip

_CLAUSE_PARTS = (
    exp.CTE, exp.Cluster, exp.Cube, exp.Distinct, exp.Distribute, exp.Except, exp.Exists, exp.Fetch, exp.Filter,
    exp.From, exp.Group, exp.GroupingSets, exp.Having, exp.Hint, exp.Intersect, exp.Join, exp.JoinHint, exp.Lateral,
    exp.Limit, exp.Offset, exp.Order, exp.Ordered, exp.Qualify, exp.Rollup, exp.Select, exp.Sort, exp.Subquery,
    exp.Table, exp.TableAlias, exp.Tuple, exp.Union, exp.Values, exp.Version, exp.Where, exp.Window,
    exp.WindowSpec, exp.With, exp.WithinGroup,
)  # fmt: skip

_KNOWN = (*_OPERATORS, *_CLAUSE_PARTS, exp.Func)
_FUNCTIONS = frozenset({*SCALAR_FUNCTIONS, *AGGREGATE_FUNCTIONS, *WINDOW_FUNCTIONS})
_DAY_OF_TODAY = re.compile(
    r"""['"]\s*(now|today|tomorrow|yesterday)\s*([A-Za-z]{1,3}|(utc|gmt|ut)?[+-][\d:]+|[a-z_]+/\S+)?\s*['"]""",
    re.IGNORECASE,
)
"""Texts that Spark takes for a time, seen from the moment it plans a query, wherever one is compared with a time."""
_HOUR_OF_TODAY = re.compile(r"\s*T?\d{1,2}:\d{1,2}(:[\d.]+)?\s*(\D\S*)?", re.IGNORECASE)
"""A text that, as a timestamp, is that time of the day on which Spark reads it."""
_TIMESTAMPS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
_UNSURE_ESCAPE = re.compile(r"\\(?:\\|['\"nrt%_])|(\\)")


def is_a_query(statement: Statement) -> None:
    """Refuse what is no query."""
    if not isinstance(statement.tree, exp.Query):
        raise statement.refusal(support.NOT_A_QUERY, statement.tree)


def is_within_bounds(statement: Statement) -> None:
    """Refuse what joins too much."""
    statement.refuse(excess_of_joins(statement.tokens))


def reads_whole_tables(statement: Statement) -> None:
    """Refuse TABLESAMPLE, which gives other rows every time, and ROWS FROM, which Spark does not have."""
    if sample := statement.tree.find(exp.TableSample):
        span = statement.span_of_words(TokenType.TABLE_SAMPLE) or statement.span_of(sample)
        hint = "filter by a column instead: WHERE pmod(id, 10) = 0 keeps every tenth row, the same ones every time"
        raise statement.refusal(
            support.NOT_REPEATABLE, span, because="TABLESAMPLE takes other rows every time", hint=hint
        )
    for table in statement.tree.find_all(exp.Table):
        if table.args.get("rows_from"):
            raise statement.refusal(support.CLAUSE, table, because="ROWS FROM")
        if version := table.args.get("version"):
            because = f"{version.name} AS OF" if version.name else "AS OF"
            hint = "remove it: a view follows its relations; `headwater query --at` reads an earlier state"
            raise statement.refusal(support.CLAUSE, version, because=because, hint=hint)


def reads_relations(statement: Statement) -> None:
    """Refuse a view that reads no relation at all."""
    if not relations_in(statement.tree):
        raise statement.refusal(support.NO_RELATION, statement.span_of_words(TokenType.SELECT))


def has_no_parameters(statement: Statement) -> None:
    """Refuse :name, ? and ${name}."""
    if parameter := statement.tree.find(exp.Placeholder, exp.Parameter, exp.SessionParameter):
        words = (TokenType.PLACEHOLDER, TokenType.PARAMETER, TokenType.COLON)
        raise statement.refusal(
            support.PARAMETER,
            statement.span_of(parameter) or statement.span_of_words(*words),
            because=said if (said := parameter.sql(dialect="spark")) in statement.sql else "",
        )


def calls_known_functions(statement: Statement) -> None:
    """Refuse functions that are not known to depend on their arguments alone."""
    _refuse_other_functions(statement, _FUNCTIONS)


def calls_functions_for_readers(statement: Statement) -> None:
    """Refuse functions that neither a view may call nor who reads views."""
    _refuse_other_functions(statement, _FUNCTIONS | READER_FUNCTIONS.keys())


def _refuse_other_functions(statement: Statement, known: frozenset[str]) -> None:
    for call in statement.tree.find_all(exp.Func):
        if isinstance(call, (*_OPERATORS, *MAKE_ROWS, exp.Collate, exp.Exists, exp.Filter)) or not is_called(call):
            continue
        if "start" not in call.meta and call.sql_name().lower() in known:
            continue
        name = spelled_name(call, statement.sql)
        if name in known:
            continue
        span = _span_of_call(statement, call) or statement.span_of_text(name)
        if name in NOT_REPEATABLE_FUNCTIONS and not (name in TIMELY_WITHOUT_ARGUMENTS and _is_given_something(call)):
            raise statement.refusal(support.NOT_REPEATABLE, span, because=f"{name}()")
        hint = FUNCTION_HINTS.get(name, "")
        raise statement.refusal(support.UNKNOWN_FUNCTION, span, because=f"{name}()", hint=hint)


def _is_given_something(call: exp.Func) -> bool:
    return any(part is not call and "start" in part.meta for part in call.walk())


def _span_of_call(statement: Statement, call: exp.Func) -> Span | None:
    found = None if "start" in call.meta else find_call(call, statement.sql)
    return statement.span_of(call) if found is None else Span(start=found[1], end=found[2])


def writes_no_time_of_today(statement: Statement) -> None:
    """Refuse 'today' and the like, and timestamps without a day: Spark takes the day on which it reads them."""
    for token in statement.tokens:
        text = statement.sql[token.start : token.end + 1]
        if token.token_type is TokenType.STRING and _DAY_OF_TODAY.fullmatch(text):
            raise statement.refusal(
                support.NOT_REPEATABLE,
                Span(start=token.start, end=token.end + 1),
                because=f"{text} can be read as a time, that of the run",
                hint="write the day itself; if a text is meant, write it in two parts: concat('to', 'day')",
            )
    for cast in statement.tree.find_all(exp.Cast):
        written = cast.this
        is_text = isinstance(written, exp.Literal) and written.is_string
        if is_text and cast.to.this in _TIMESTAMPS and _HOUR_OF_TODAY.fullmatch(written.this):
            because = f"'{written.this}' names no day, and Spark takes that of the run"
            hint = "write the day, too: '2026-01-31 12:30:00'"
            raise statement.refusal(support.NOT_REPEATABLE, written, because=because, hint=hint)


def picks_rows_of_windows(statement: Statement) -> None:
    """Refuse FIRST_VALUE and its like without OVER: which of a group's rows it takes is left to chance."""
    for call in statement.tree.find_all(exp.FirstValue, exp.LastValue, exp.NthValue):
        if not (isinstance(call.parent, exp.Window) and call.arg_key == "this"):
            raise statement.refusal(support.NO_WINDOW, call)


def filters_no_windows(statement: Statement) -> None:
    """Refuse FILTER before OVER, which Spark does not have."""
    for window in statement.tree.find_all(exp.Window):
        if isinstance(window.this, exp.Filter):
            raise statement.refusal(support.FILTERED_WINDOW, window)


def leaves_groups_out_before_windows(statement: Statement) -> None:
    """Refuse window functions over several groupings whose HAVING tests columns alone.

    Spark 4.3 resolves such a HAVING late, and computes the windows over the groups that it should have left out.
    """
    for select in statement.tree.find_all(exp.Select):
        group, having = select.args.get("group"), select.args.get("having")
        if group is None or having is None or not _has_several_groupings(group):
            continue
        windows = [one for part in (*select.expressions, *_after(select)) for one in _own(part, exp.Window)]
        if windows and not any(not isinstance(one, exp.Grouping) for one in _own(having, exp.AggFunc)):
            raise statement.refusal(support.WINDOW_BEFORE_HAVING, windows[0])


def _has_several_groupings(group: exp.Group) -> bool:
    return any(group.args.get(kind) for kind in ("grouping_sets", "rollup", "cube")) or any(
        isinstance(one, (exp.GroupingSets, exp.Rollup, exp.Cube)) for one in group.expressions
    )


def _after(select: exp.Select) -> list[exp.Expr]:
    return [clause for name in ("qualify", "order") if (clause := select.args.get(name)) is not None]


def _own(part: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """Return the expressions of a kind that a clause has, without those of the queries in it."""
    return [one for one in part.walk(prune=lambda node: isinstance(node, exp.Query)) if isinstance(one, kind)]


def has_known_expressions(statement: Statement) -> None:
    """Refuse any other kind of expression that nobody has checked: lambdas, struct fields, COLLATE, AT TIME ZONE."""
    for node in statement.tree.walk():
        star_changes = isinstance(node, exp.Star) and any(node.args.values())
        if star_changes or isinstance(node, exp.Collate) or not isinstance(node, _KNOWN):
            if isinstance(node, exp.Dot) and isinstance(node.parent, exp.Table):
                name = f'"{statement.words_of(node.parent)}"'
                raise statement.refusal(support.RELATION_NAME, node.parent, because=name)
            what, hint = describe_form(node)
            raise statement.refusal(
                support.UNKNOWN_EXPRESSION, statement.span_of(node) or node.parent, because=what, hint=hint
            )


def has_known_escapes(statement: Statement) -> None:
    r"""Refuse string literals with \u0041 or '' inside, which sqlglot reads otherwise than Spark."""
    strings = [token for token in statement.tokens if token.token_type is TokenType.STRING]
    for token in strings:
        text = statement.sql[token.start : token.end + 1]
        if any(found[1] for found in _UNSURE_ESCAPE.finditer(text)):
            raise statement.refusal(support.STRING_ESCAPE, Span(start=token.start, end=token.end + 1))
    for token, following in pairwise(strings):
        if token.end + 1 == following.start:
            raise statement.refusal(support.STRING_ESCAPE, Span(start=token.start, end=following.end + 1))


VIEW_CHECKS: tuple[Callable[[Statement], None], ...] = (
    is_a_query,
    is_within_bounds,
    reads_whole_tables,
    reads_relations,
    has_no_parameters,
    calls_known_functions,
    has_known_expressions,
    has_known_escapes,
    writes_no_time_of_today,
    picks_rows_of_windows,
    filters_no_windows,
    leaves_groups_out_before_windows,
)
