"""How other databases write what Spark writes otherwise: told with Spark's own spelling, before anything is parsed.

A parser that reads Spark SQL either fails at such a place, with words of its own, or reads something else than meant:
`"state" = 'new'` compares two texts, and is never true.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

_QUOTED = '"…"'
_TEXT = "'…'"
_VALUE = r"(?:[a-z_]\w*|`\S*`|\)|\]|'…'|\d+)"
_TYPES = {
    "text": "STRING", "varchar": "STRING", "bpchar": "STRING", "citext": "STRING",
    "uuid": "STRING", "json": "STRING", "jsonb": "STRING", "int2": "SMALLINT", "int4": "INT", "int8": "BIGINT",
    "float4": "FLOAT", "float8": "DOUBLE", "bool": "BOOLEAN", "timestamptz": "TIMESTAMP", "bytea": "BINARY",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """What is written as another database writes it: where (the first token's number), what it is, Spark's way."""

    token: int
    what: str
    remedy: str


_SPELLINGS: tuple[tuple[str, str, str], ...] = (
    (r"distinct on \(", "DISTINCT ON",
     "QUALIFY ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) = 1 keeps one row of each"),
    (r"select top \d+", "SELECT TOP", "write ORDER BY … LIMIT 5 at the end"),
    (r"fetch (?:first|next|'…')", "FETCH FIRST", "write LIMIT 5 instead of FETCH FIRST 5 ROWS ONLY"),
    (r"limit all\b", "LIMIT ALL", "leave it out: without LIMIT all rows are there"),
    (r"rownum\b", "ROWNUM", "write ORDER BY … LIMIT 5, or ROW_NUMBER() OVER (…)"),
    (r"\( \+ \)", "(+)", "write a LEFT JOIN"),
    (rf"{_VALUE} (?:! )?~\*? {_TEXT}", "the operator ~",
     "write t RLIKE 'pattern', or NOT t RLIKE; (?i) in it ignores case"),
    (rf"{_VALUE} similar_to ", "SIMILAR TO", "write t RLIKE 'pattern'"),
    (r"= (?:any|some) \( select", "= ANY (SELECT …)", "write x IN (SELECT …)"),
    (r"= any \(", "= ANY (…)", "write x IN (1, 2, 3), or array_contains(list, x)"),
    (rf"{_VALUE} ->>? {_TEXT}", "the operator ->",
     "JSON cannot be taken apart in a view; let the source do it in a column"),
    (r"for (?:update|share)\b", "FOR UPDATE", "leave it out: a view locks nothing"),
    (r"e '…'", "E'…'", r"write '…': \n and \t are understood in it"),
    (r"\$ \w* ?\$", "$$…$$", "write '…'"),
    (rf"(?:select|,|\.) \[ {_VALUE} \] (?:,|from|as|\.|$)", "[name]", "write names in backticks: `name`"),
    (rf"(?:\. |as ){_QUOTED}|{_QUOTED} \.|(?:from|join) {_QUOTED}", '"name"',
     'write names in backticks: `name`; "…" is a text in Spark'),
)  # fmt: skip
_CASTS = tuple(
    (rf":: {name}\b(?! \()", f"the type {name}", f"write CAST(x AS {wanted}), or x::{wanted}")
    for name, wanted in _TYPES.items()
)
_COMPILED = tuple(
    (re.compile(rf"(?:^|(?<= ))(?:{spelling})"), what, remedy) for spelling, what, remedy in (*_CASTS, *_SPELLINGS)
)


def find_foreign(sql: str, tokens: Sequence[Token]) -> Foreign | None:
    """Return the first place that another database's SQL is written at.

    >>> from sqlglot.dialects.spark import Spark
    >>> def remedy(sql: str) -> str:
    ...     found = find_foreign(sql, Spark().tokenize(sql))
    ...     return found.remedy if found else ""
    >>> remedy("SELECT no::text AS t FROM shop.sales")
    'write CAST(x AS STRING), or x::STRING'
    >>> remedy('SELECT s."no" FROM shop.sales AS s')
    'write names in backticks: `name`; "…" is a text in Spark'
    >>> remedy('SELECT no AS top FROM shop.sales WHERE name = "Ada" AND NOT ~no = -2')
    ''
    """
    words = [_word(sql, token) for token in tokens]
    text = " ".join(words)
    found = [(match.start(), what, remedy) for spelling, what, remedy in _COMPILED if (match := spelling.search(text))]
    if not found:
        return None
    start, what, remedy = min(found)
    return Foreign(token=text.count(" ", 0, start), what=what, remedy=remedy)


def find_quoted_column(sql: str, tokens: Sequence[Token], columns: Collection[str]) -> Foreign | None:
    """Return the first text in double quotes that is also the name of a column."""
    named = {name.lower() for name in columns}
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.STRING and _word(sql, token) == _QUOTED and token.text.lower() in named:
            return Foreign(
                token=place,
                what=f'"{token.text}" is a text in Spark, and also the name of a column',
                remedy=f"write `{token.text}` for the column, '{token.text}' for the text",
            )
    return None


def _word(sql: str, token: Token) -> str:
    if token.token_type is TokenType.STRING:
        return _QUOTED if sql[token.start : token.start + 1] == '"' else _TEXT
    word = f"`{token.text}`" if token.token_type is TokenType.IDENTIFIER else token.text.lower()
    return word.replace(" ", "_")  # one word is one token
