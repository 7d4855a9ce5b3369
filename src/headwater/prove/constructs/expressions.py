"""Conditions and computed columns that look at one row."""

from __future__ import annotations

from headwater.prove.chance import DAY, INT, MONEY, TEXT, TRUTH, Chance, Item
from headwater.prove.constructs.parts import Construct, comparison, filtered, one_of, valued


def _list(chance: Chance, item: Item, alias: str) -> str:
    kind = chance.pick(INT, TEXT)
    values = ", ".join([*(chance.literal(kind) for _ in range(3)), *chance.pick((), (), ("NULL",))])
    return f"{chance.column(item, alias, kind)} {chance.pick('IN', 'NOT IN')} ({values})"


def _pattern(chance: Chance, item: Item, alias: str) -> str:
    test = chance.pick("LIKE 'a%'", "LIKE '%b'", "LIKE '_'", "LIKE '%'", "NOT LIKE 'a%'", "RLIKE 'a|b'")
    return f"{chance.column(item, alias, TEXT)} {test}"


def _case(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    kind = chance.pick(INT, TEXT)
    one, other = chance.column(item, alias, kind), chance.literal(kind)
    if chance.pick(True, False):
        return f"CASE WHEN {comparison(chance, item, alias)} THEN {one} ELSE {other} END", kind
    value = chance.column(item, alias)
    return f"CASE {value} WHEN 1 THEN {one} WHEN {chance.literal(INT)} THEN {other} END", kind


def _text_function(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    column = chance.column(item, alias, TEXT)
    text, kind = chance.pick(
        *((text, TEXT) for text in ("UPPER(?)", "CONCAT(?, '-', ?)", "SUBSTRING(?, 1, 1)", "COALESCE(?, 'none')")),
        *((text, TEXT) for text in ("TRIM(?)", "? || 'x'", "LOWER(?)", "REVERSE(?)", "REPLACE(?, 'a', 'b')")),
        *((text, TEXT) for text in ("LPAD(?, 3, '*')", "LEFT(?, 1)", "RIGHT(?, 1)", "NULLIF(?, 'a')", "MD5(?)")),
        *((text, INT) for text in ("LENGTH(?)", "INSTR(?, 'b')", "ASCII(?)")),
        *((text, TRUTH) for text in ("STARTSWITH(?, 'a')", "CONTAINS(?, 'b')", "ISNULL(?)")),
    )
    return text.replace("?", column), kind


def _number_function(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    texts = (
        *("? + 1", "? * 2 - 1", "ABS(? - 3)", "COALESCE(?, 7)", "NULLIF(?, 1)", "GREATEST(?, 2)", "-?", "? % 2"),
        *("LEAST(?, 1)", "NVL(?, 0)", "IF(? > 1, 1, 0)", "NVL2(?, 1, 2)", "PMOD(? - 3, 2)", "IFNULL(?, 5)"),
    )
    money = (
        ("? * 2", "decimal(19,2)"),
        ("? + 1.5", "decimal(9,2)"),
        ("ROUND(?, 1)", "decimal(8,1)"),
        ("ABS(?)", MONEY),
    )
    if chance.pick(True, True, False):
        return chance.pick(*texts).replace("?", chance.column(item, alias)), INT
    text, kind = chance.pick(*money)
    return text.replace("?", chance.column(item, alias, MONEY)), kind


def _double(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    text = chance.pick(
        "? / 3", "CAST(? AS DOUBLE)", "SQRT(ABS(?))", "? / NULLIF(?, 0)", "? * 0.1D", "CAST('NaN' AS DOUBLE)"
    )
    return text.replace("?", chance.column(item, alias)), "double"


def _day_function(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    text, kind = chance.pick(
        *((text, INT) for text in ("YEAR(?)", "MONTH(?)", "DAY(?)", "QUARTER(?)", "DATEDIFF(?, DATE '2024-02-28')")),
        *((text, DAY) for text in ("LAST_DAY(?)", "DATE_ADD(?, 1)", "DATE_SUB(?, 2)", "TRUNC(?, 'MM')")),
        ("CAST(? AS TIMESTAMP)", "timestamp"),
    )
    return text.replace("?", chance.column(item, alias, DAY)), kind


def _truth(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    return f"({comparison(chance, item, alias)} {chance.pick('AND', 'OR')} {comparison(chance, item, alias)})", TRUTH


def _cast(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    column = chance.column(item, alias)
    return chance.pick(
        (f"CAST({column} AS BIGINT)", "bigint"),
        (f"CAST({column} AS STRING)", TEXT),
        (f"CAST({column} AS DECIMAL(8,2))", MONEY),
        (f"CAST({column} AS SMALLINT)", "smallint"),
    )


def _constant(chance: Chance, _item: Item, _alias: str) -> tuple[str, str]:
    kind = chance.pick(INT, TEXT, DAY, MONEY, TRUTH)
    return chance.pick(chance.literal(kind), f"CAST(NULL AS {kind.upper()})"), kind


def _array(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    text, kind = chance.pick(
        ("ARRAY(?, 1)", "array<int>"),
        ("ARRAY_CONTAINS(ARRAY(?, 1), 2)", TRUTH),
        ("ARRAY_MAX(ARRAY(?, 2))", INT),
        ("SIZE(ARRAY(?))", INT),
    )
    return text.replace("?", chance.column(item, alias)), kind


def _distinct_from(chance: Chance, item: Item, alias: str) -> str:
    other = chance.pick(chance.column(item, alias), chance.literal(INT))
    return f"{chance.column(item, alias)} IS {chance.pick('', 'NOT ')}DISTINCT FROM {other}"


EXPRESSIONS: dict[str, Construct] = {
    "comparison": filtered(comparison),
    "is null": one_of(
        filtered(lambda c, i, a: f"{c.any_column(i, a)[0]} IS {c.pick('', 'NOT ')}NULL"),
        filtered(_distinct_from),
        filtered(lambda c, i, a: f"{c.column(i, a, TRUTH)} IS {c.pick('', 'NOT ')}{c.pick('TRUE', 'FALSE')}"),
    ),
    "list": filtered(_list),
    "between": filtered(lambda c, i, a: f"{c.column(i, a)} {c.pick('', 'NOT ')}BETWEEN 1 AND {c.literal(INT)}"),
    "like": filtered(_pattern),
    "or": filtered(lambda c, i, a: f"({comparison(c, i, a)} OR {comparison(c, i, a)})"),
    "not": filtered(lambda c, i, a: f"NOT ({comparison(c, i, a)} AND {c.pick(comparison(c, i, a), 'NULL')})"),
    "number function": valued(_number_function),
    "double": valued(_double),
    "text function": valued(_text_function),
    "day function": valued(_day_function),
    "case": valued(_case),
    "truth": valued(_truth),
    "cast": valued(_cast),
    "constant": valued(_constant),
    "array": valued(_array),
}
"""Constructs that look at one row, by name."""
