"""What else can be written, for functions and forms of SQL that are not supported."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

TIMELY_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp"})
"""Functions whose value depends on when they run only if they are given nothing."""

_A_LIST = "a list of a group's values cannot be maintained: keep the rows, and put them together when reading the view"
_BY_CHANCE = "write MIN(x) or MAX(x): which of a group's values it gives is left to chance"
_FIRST_ROW = "write QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1, which keeps one row of each group"
_JSON = "JSON cannot be taken apart in a view: let the source do it, in a column of the table"
_PARTS = "keep the parts in columns of their own, and put them together when reading the view"
_ROWS = "put the values into a table of a source, and join it"
_SECONDS = "write CAST(at AS BIGINT): the seconds since 1970"
_TEXT_OF = "write date_format(day, 'yyyy-MM-dd') or format_number(n, 2)"

FUNCTION_HINTS: Mapping[str, str] = {
    **dict.fromkeys(("string_agg", "group_concat", "listagg", "array_agg", "collect_list", "collect_set"), _A_LIST),
    **dict.fromkeys(("any_value", "first", "last"), _BY_CHANCE),
    **dict.fromkeys(("max_by", "min_by", "arg_max", "arg_min"), _FIRST_ROW),
    **dict.fromkeys(("to_char", "to_varchar"), _TEXT_OF),
    **dict.fromkeys(
        ("get_json_object", "from_json", "to_json", "parse_json", "json_tuple", "variant_get", "json_object_keys"),
        _JSON,
    ),
    **dict.fromkeys(("struct", "named_struct", "map", "map_from_arrays", "map_concat"), _PARTS),
    **dict.fromkeys(("generate_series", "range", "sequence", "unnest", "stack"), _ROWS),
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), _SECONDS),
    **dict.fromkeys(("transform", "filter", "aggregate", "reduce", "forall", "zip_with"), _PARTS),
    **dict.fromkeys(("any", "some"), "write bool_or(x)"),
    **dict.fromkeys(("approx_percentile", "percentile_approx", "percentile_cont"), "write percentile(x, 0.5)"),
    "approx_count_distinct": "write COUNT(DISTINCT x)",
    "date_part": "write extract(WEEK FROM day)",
    "datepart": "write extract(WEEK FROM day)",
    "decode": "write CASE x WHEN 1 THEN 'one' ELSE 'more' END",
    "every": "write bool_and(x)",
    "iff": "write if(x > 1, 'a', 'b')",
    "len": "write length(x)",
    "mean": "write avg(x)",
    "mode": "count the values of each group in a view of its own, and take the most frequent one when reading it",
    "std": "write stddev(x)",
    "to_number": "write CAST(x AS DECIMAL(12, 2))",
    "window": "write date_trunc('DAY', at), and group by it",
}

_OF_QUERIES = "compare with an aggregate, (SELECT MAX(x) …), or write x IN (SELECT …)"
_FORMS: tuple[tuple[type[exp.Expr], str, str], ...] = (
    (exp.Pivot, "PIVOT", "write one aggregate for each column: SUM(CASE WHEN kind = 'a' THEN price END) AS a"),
    (exp.QueryTransform, "TRANSFORM … USING", "nothing outside Spark can be called"),
    (exp.Into, "SELECT … INTO", "leave it out: a view file is one SELECT, and its name is the file's name"),
    (exp.AtTimeZone, "AT TIME ZONE", "timestamps are kept in UTC; convert them when reading the view"),
    (exp.Collate, "COLLATE", "compare lower(x) or upper(x)"),
    (exp.Lambda, "a function of a function: x -> …", _PARTS),
    (exp.Kwarg, "an argument with a name: name => value", "write the arguments in their order, without names"),
    (exp.BitwiseLeftShift, "the operator <<", "write x * 4 instead of x << 2"),
    (exp.BitwiseRightShift, "the operator >>", "write x DIV 4 instead of x >> 2"),
    (exp.Dot, "a name of many parts, or a field of a value", "write alias.column, and functions without a schema"),
    (exp.Star, "* with a change: EXCEPT, REPLACE or RENAME", "name the columns that are wanted"),
)  # fmt: skip


def describe_form(node: exp.Expr) -> tuple[str, str]:
    """Return what a form of SQL is called that is not supported, and what to write instead. Empty if nothing is known.

    >>> import sqlglot
    >>> describe_form(sqlglot.parse_one("x << 2", read="spark"))
    ('the operator <<', 'write x * 4 instead of x << 2')
    """
    if isinstance(node, exp.Pivot) and node.args.get("unpivot"):
        return "UNPIVOT", "write UNION ALL of one SELECT for each column"
    if isinstance(node, (exp.Any, exp.All)):
        return _quantified(node, "ANY" if isinstance(node, exp.Any) else "ALL")
    return next(((what, hint) for kind, what, hint in _FORMS if isinstance(node, kind)), ("", ""))


def _quantified(node: exp.Expr, word: str) -> tuple[str, str]:
    """Return the same for ANY, SOME and ALL, which stand before queries, before patterns, and around a value."""
    if isinstance(node.parent, (exp.Like, exp.ILike)):
        joined = "OR" if word == "ANY" else "AND"
        return f"LIKE {word}", f"write x LIKE 'a%' {joined} x LIKE 'b%'"
    if isinstance(node.this.unnest(), exp.Query):
        return f"{word} or SOME before a query" if word == "ANY" else "ALL before a query", _OF_QUERIES
    return word, "write bool_or(x)" if word == "ANY" else "write bool_and(x)"
