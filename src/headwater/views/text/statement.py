"""A view's SQL as its author wrote it: the text, the tree it parses to, and where each part of the tree stands."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headwater.errors import InvalidView, UnsupportedView
from headwater.views.text import support
from headwater.views.text.bounds import Excess, allow_depth, excess_of_text, excess_of_tokens, excess_of_tree
from headwater.views.text.other_dialects import find_foreign
from headwater.views.text.spark_text import spark_text
from headwater.views.text.support import Reason

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # what it warns of is refused, and told in our words

_WIDEST = 300
"""How many characters of a line an error shows."""


_BEGIN_QUERIES = (TokenType.SELECT, TokenType.WITH, TokenType.VALUES)
_MEANT = (
    (r"Invalid expression / Unexpected token", "this word or sign is not expected here"),
    (r"Expecting \)", "a closing parenthesis is expected here"),
    (r"Expecting \(", "an opening parenthesis is expected here"),
    (r"number of provided arguments \((\d+)\) is greater .* \((\d+)\)", r"\1 arguments are given, \2 are taken"),
    (r"Expected type after", "a type of Spark's is expected here"),
    (r"Expected (\w+) after (\w+)", r"\1 is expected after \2"),
)  # fmt: skip
"""What some messages of sqlglot's mean to the author of a view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of text: from the first character to just after the last."""

    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement of a view file, parsed but not yet understood. `lower` are the views that it may name.

    `completed` is the text of its tree once orders were completed that the author's text leaves open; empty if it
    leaves none open.
    """

    name: str
    sql: str
    path: str
    tree: exp.Expr
    lower: tuple[Statement, ...] = ()
    completed: str = ""

    @property
    def meant(self) -> str:
        """The text with all orders: the author's own if it leaves none open."""
        return self.completed or self.sql

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The words of the text, with their places."""
        return tuple(Spark().tokenize(self.sql))

    def span_of(self, node: exp.Expr) -> Span | None:
        """Return where a part of the tree stands in the text, or nothing if it was not written by the author."""
        places = [part.meta for part in node.walk() if "start" in part.meta]
        if not places:
            return None
        start, end = min(place["start"] for place in places), max(place["end"] for place in places) + 1
        while self.sql.count("(", start, end) > self.sql.count(")", start, end) and end < len(self.sql):
            end += 1
        return Span(start=start, end=end)

    def words_of(self, node: exp.Expr) -> str:
        """Return a part of the tree as its author wrote it, or as Spark writes it if he did not."""
        span = self.span_of(node)
        if span is None or isinstance(node, exp.Values):
            return spark_text(node)
        start = span.start
        if isinstance(node, exp.Query):  # the words that begin a query have no place in its tree
            begins = [token.start for token in self.tokens if token.token_type in _BEGIN_QUERIES]
            start = max((place for place in begins if place < start), default=start)
        while self.sql.count(")", start, span.end) > self.sql.count("(", start, span.end) and "(" in self.sql[:start]:
            start = self.sql.rindex("(", 0, start)
        return " ".join(self.sql[start : span.end].split())

    def span_of_words(self, *kinds: TokenType) -> Span | None:
        """Return where the first word of one of these kinds stands."""
        return next(
            (Span(start=token.start, end=token.end + 1) for token in self.tokens if token.token_type in kinds), None
        )

    def span_of_text(self, word: str) -> Span | None:
        """Return where a word first stands, in any case."""
        return next(
            (Span(start=token.start, end=token.end + 1) for token in self.tokens if token.text.lower() == word), None
        )

    def refusal(
        self, reason: Reason, at: exp.Expr | Span | None, *, because: str = "", hint: str = ""
    ) -> InvalidView | UnsupportedView:
        """Return the error that refuses this view, with the offending text underlined."""
        span = self.span_of(at) if isinstance(at, exp.Expr) else at
        return refusal(self.name, self.sql, self.path, reason, span, because=because, hint=hint)

    def refuse(self, excess: Excess | None) -> None:
        """Refuse what is too large or too deep, if anything is."""
        if excess is not None:
            at = _span(self.tokens, excess)
            raise self.refusal(support.TOO_LARGE, at, because=excess.what, hint=excess.remedy)


def _span(tokens: Sequence[Token], excess: Excess) -> Span | None:
    if excess.token is None:
        return None
    return Span(start=tokens[excess.token].start, end=tokens[excess.token].end + 1)


def underline(sql: str, span: Span) -> str:
    r"""Return the line of the text that a span begins on, with the span marked below it.

    >>> print(underline("SELECT a\nFROM nowhere", Span(start=14, end=21)))
    line 2: FROM nowhere
                 ^^^^^^^
    """
    begin = sql.rfind("\n", 0, span.start) + 1
    end = sql.find("\n", begin)
    line = sql[begin : end if end >= 0 else len(sql)].rstrip("\r")
    label = f"line {sql.count(chr(10), 0, span.start) + 1}: "
    if len(line) > _WIDEST:  # show what stands around the span
        begin = max(begin, span.start - _WIDEST // 4)
        line = sql[begin : begin + _WIDEST].partition("\n")[0].rstrip("\r")
    width = max(1, min(span.end, begin + len(line)) - span.start)
    blank = "".join("\t" if char == "\t" else " " for char in line[: span.start - begin])
    return f"{label}{line}\n{' ' * len(label)}{blank}{'^' * width}"


def refusal(
    name: str, sql: str, path: str, reason: Reason, span: Span | None, *, because: str = "", hint: str = ""
) -> InvalidView | UnsupportedView:
    """Return the error for one reason at one place of a view's text."""
    says = "is wrong" if reason.error is InvalidView else "cannot be maintained"
    subject = f'view "{name}"' if name else "the view"
    lines = [f"{reason.summary}: {because}" if because else reason.summary]
    if path:
        lines.append(f"in {path}")
    if span is not None:
        lines.append(underline(sql, span))
    return reason.error(f"{subject} {says}", code=reason.code, detail="\n".join(lines), hint=hint or reason.remedy)


def read_statement(sql: str, *, name: str = "", path: str = "") -> Statement:
    """Parse a view's text, which must be one statement.

    >>> read_statement("SELECT a FROM shop.sales").tree.sql()
    'SELECT a FROM shop.sales'
    """
    allow_depth()
    try:
        trees = _parsed(sql, name=name, path=path)
    except RecursionError as error:
        raise refusal(name, sql, path, support.TOO_LARGE, None, because="it cannot be parsed") from error
    except TokenError as error:
        raise refusal(name, sql, path, support.NOT_SQL, _open_quote(sql, error), because=_unread(error)) from error
    except ParseError as error:
        raise refusal(name, sql, path, support.NOT_SQL, _place(sql, error), because=_description(error)) from error
    statements = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if not statements:
        raise refusal(name, sql, path, support.NOT_SQL, None, because="it is empty")
    statement = Statement(name=name, sql=sql, path=path, tree=statements[0])
    if len(statements) > 1:
        raise statement.refusal(support.SEVERAL_STATEMENTS, statements[1])
    statement.refuse(excess_of_tree(statement.tree))
    return statement


def _parsed(sql: str, *, name: str, path: str) -> list[exp.Expr | None]:
    """Return the trees of a text. What is too large or too deep for a parser is refused before it is parsed."""
    if excess := excess_of_text(sql):
        raise refusal(name, sql, path, support.TOO_LARGE, None, because=excess.what, hint=excess.remedy)
    tokens = Spark().tokenize(sql)
    if excess := excess_of_tokens(tokens):
        at = _span(tokens, excess)
        raise refusal(name, sql, path, support.TOO_LARGE, at, because=excess.what, hint=excess.remedy)
    if foreign := find_foreign(sql, tokens):
        at = Span(start=tokens[foreign.token].start, end=tokens[foreign.token].end + 1)
        raise refusal(name, sql, path, support.OTHER_DIALECT, at, because=foreign.what, hint=foreign.remedy)
    return Spark().parser().parse(tokens, sql)


def _open_quote(sql: str, error: TokenError) -> Span | None:
    """Return the rest of the line from the quote that was never closed, as far as the tokenizer tells where it is."""
    found = re.search(r"from \d+:(\d+)$", str(error.__cause__ or error))
    return Span(start=int(found[1]), end=len(sql)) if found and int(found[1]) < len(sql) else None


def _description(error: ParseError) -> str:
    description = str(error.errors[0].get("description", "")) if error.errors else ""
    for said, meant in _MEANT:
        if found := re.search(said, description, re.IGNORECASE):
            return found.expand(meant)
    # sqlglot names its own classes in some texts, which mean nothing to the author of a view
    return "something is missing here" if "<class" in description or not description else description.lower()


def _unread(error: TokenError) -> str:
    is_literal = "invalid characters" in str(error.__cause__ or error)
    return "a literal has characters that do not belong there" if is_literal else "a quote or comment is not closed"


def _place(sql: str, error: ParseError) -> Span | None:
    if not error.errors or not (marked := error.errors[0].get("highlight")):
        return None
    line, col = error.errors[0].get("line"), error.errors[0].get("col")
    if line is None or col is None:
        return None
    begin = sum(len(text) + 1 for text in sql.split("\n")[: line - 1])
    end = begin + col
    return Span(start=max(begin, end - len(marked)), end=end)
