"""What Spark says of a view that it cannot run, in the words of the view's text.

Spark is given the text with other names for its relations, and says what it made of the text: `coalesce(at, 1)` for
`nvl(o.at, 1)`, followed by its plan. It also says from where to where the text is wrong. So the author's own words are
put in place of Spark's, and the place is marked in the author's text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException, QueryContextType

from headwater.errors import InvalidView
from headwater.spark.view_errors import said_by_spark
from headwater.views.text.statement import Span, underline

_AT = re.compile(r"\(line (\d+), pos (\d+)\)")
_EXPRESSIONS = ("sqlExpr", "expr", "function")
"""The parameters of Spark's messages that hold the expression at the place that it names."""

_CALL = re.compile(r"(\w+)\s*\(")
_QUERY = re.compile(r"\s*\(?\s*(SELECT|WITH|FROM)\b", re.IGNORECASE)
_NAME = re.compile(r"`([^`]+)`")
_QUALIFIED = re.compile(r"`(\w+)`\.`(\w+)`")
_NUMBERED = re.compile(r"(?<=\w)#\d+L?\b")


_HINTS = (
    (r"^DATATYPE_MISMATCH.*(DIFF_TYPES|INPUT_TYPE|WRONG_TYPE|DATA_TYPE_MISMATCH)$|^INCOMPATIBLE_COLUMN_TYPE$",
     "convert values with CAST where types differ"),
    (r"^DATATYPE_MISMATCH\.FILTER_NOT_BOOLEAN$|_NOT_BOOLEAN", "write a comparison there, such as x > 0"),
    (r"^INVALID_WHERE_CONDITION$|^WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE$",
     "test an aggregate in HAVING, and a window function in QUALIFY"),
    (r"^NESTED_AGGREGATE_FUNCTION$|^GROUP_BY_AGGREGATE$", "compute the inner aggregate in a query in FROM"),
    (r"UNSUPPORTED_CORRELATED_SCALAR_SUBQUERY$", "move the sub-query from ON to WHERE, or to the SELECT list"),
    (r"^NUM_COLUMNS_MISMATCH$", "select as many columns in each part"),
    (r"^ASSIGNMENT_ARITY_MISMATCH$", "name as many columns as the query has, or none"),
    (r"GROUPING", "call grouping() with a column of ROLLUP, CUBE or GROUPING SETS, grouping_id() with all of them"),
)  # fmt: skip
"""What to do, by what Spark calls the mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedText:
    """A text of ours that Spark was asked about, and how it came of the `sql` that a view says.

    It begins with `before`; `changes` say which stretches of the sql were replaced, by what, in their order.
    """

    sql: str
    before: str
    changes: Sequence[tuple[int, int, str]]

    def place(self, at: int, *, is_end: bool = False) -> int:
        """Return which character of the sql a character of the text is.

        >>> asked = AskedText(sql="SELECT x FROM a.r AS q", before="--", changes=[(14, 17, "headwater_0")])
        >>> asked.place(2), asked.place(18), asked.place(30)
        (0, 14, 20)
        """
        place = at - len(self.before)
        for start, end, replacement in self.changes:
            if place < start:
                return place
            if place < start + len(replacement):
                return end - 1 if is_end else start
            place += (end - start) - len(replacement)
        return place

    def span(self, first: int, last: int) -> Span | None:
        """Return the stretch of the sql that characters of the text are, unless it lies outside."""
        start, end = self.place(first), self.place(last, is_end=True) + 1
        return Span(start=start, end=end) if 0 <= start < end <= len(self.sql) else None


def refused_by_spark(error: Exception, asked: AskedText, *, view: str, path: str, own: str) -> InvalidView:
    """Return why Spark cannot run a view. `own` is what its author wrote, of which the asked text may be a part."""
    span = _span(error, asked)
    words = asked.sql[span.start : span.end] if span is not None else ""
    is_query = _QUERY.match(words) is not None
    lines = [f"Spark says: {_in_the_words(error, asked, '' if is_query else words)}"]
    if path:
        lines.append(f"in {path}")
    shift = asked.sql.find(own.strip().rstrip(";"))
    if span is not None and not is_query and shift >= 0:
        begin = span.start - shift + own.find(own.strip())
        place = Span(start=begin, end=begin + span.end - span.start)
        lines += [underline(own, place)] if 0 <= place.start < place.end <= len(own) else []
    return InvalidView(
        f'Spark cannot run view "{view}"', code="HW-244", detail="\n".join(lines), hint=f"correct the SQL{_how(error)}"
    )


def _span(error: Exception, asked: AskedText) -> Span | None:
    """Return where in the sql Spark finds the mistake, if it says so."""
    if not isinstance(error, PySparkException):
        return None
    for context in error.getQueryContext() or ():
        if context.contextType() is QueryContextType.SQL:
            return asked.span(context.startIndex(), context.stopIndex())
    if found := _AT.search(str(error)):
        line_start = 0
        text = asked.before + _changed(asked)
        for _ in range(int(found[1]) - 1):
            line_start = text.find("\n", line_start) + 1
        at = line_start + int(found[2])
        word = re.match(r"\w+|.", text[at:])
        return asked.span(at, at + (len(word[0]) if word else 1) - 1)
    return None


def _changed(asked: AskedText) -> str:
    text = asked.sql
    for start, end, replacement in reversed(asked.changes):
        text = text[:start] + replacement + text[end:]
    return text


def _in_the_words(error: Exception, asked: AskedText, words: str) -> str:
    """Return what Spark says, with relations and the wrong expression as their author wrote them."""
    said = said_by_spark(error)
    parameters = (error.getMessageParameters() or {}) if isinstance(error, PySparkException) else {}
    if words:
        for key in _EXPRESSIONS:
            if found := parameters.get(key):
                said = said.replace(found, f'"{" ".join(words.split())}"')
        if found := parameters.get("functionName"):
            called = _CALL.match(words)
            said = said.replace(found, f"`{called[1]}`") if called else said.replace(f"The {found}", "It")
    for start, end, replacement in asked.changes:
        if given := _NAME.match(replacement):
            said = said.replace(given[0], f'"{asked.sql[start:end]}"').replace(given[1], asked.sql[start:end])
    if "count(1)" not in asked.sql.lower():
        said = said.replace("count(1)", "COUNT(*)")  # that is what Spark makes of it
    return _QUALIFIED.sub(r"`\1.\2`", _NUMBERED.sub("", said))


def _how(error: Exception) -> str:
    condition = error.getCondition() or "" if isinstance(error, PySparkException) else ""
    return next((f": {hint}" for pattern, hint in _HINTS if re.search(pattern, condition)), "")
