"""Sub-queries in conditions and as values."""

from __future__ import annotations

from headwater.prove.chance import INT, TRUTH, Chance, Item
from headwater.prove.constructs.parts import (
    Construct,
    any_membership,
    comparison,
    filtered,
    membership,
    one_of,
    read_as,
    sub_query,
    valued,
)


def _exists(word: str, *, is_linked: bool) -> Construct:
    return filtered(
        lambda chance, item, alias: f"{word} ({sub_query(chance, item, alias, is_linked=is_linked, columns=())})"
    )


def _member(word: str, *, is_linked: bool) -> Construct:
    return filtered(lambda chance, item, alias: membership(chance, item, alias, word, is_linked=is_linked))


def _member_pairs(word: str) -> Construct:
    def condition(chance: Chance, item: Item, alias: str) -> str:
        query = sub_query(chance, item, alias, is_linked=False, columns=(INT, INT))
        return f"({chance.column(item, alias)}, {chance.column(item, alias)}) {word} ({query})"

    return filtered(condition)


def _member_or(chance: Chance, item: Item, alias: str) -> str:
    return f"({any_membership(chance, item, alias)} OR {comparison(chance, item, alias)})"


def _not_either(chance: Chance, item: Item, alias: str) -> str:
    word = chance.pick("OR", "AND")
    return f"NOT ({comparison(chance, item, alias)} {word} {any_membership(chance, item, alias)})"


def _exists_or(chance: Chance, item: Item, alias: str) -> str:
    query = sub_query(chance, item, alias, is_linked=True, columns=())
    return f"({chance.pick('', 'NOT ')}EXISTS ({query}) OR {comparison(chance, item, alias)})"


def _member_of_groups(chance: Chance, item: Item, alias: str) -> str:
    other = chance.base()
    source, beside = read_as(chance, other)
    key = chance.column(other, beside)
    query = f"SELECT {key} FROM {source} GROUP BY {key} HAVING COUNT(*) > 1"
    return f"{chance.column(item, alias)} {chance.pick('IN', 'NOT IN')} ({query})"


def _member_of_set(chance: Chance, item: Item, alias: str) -> str:
    first = sub_query(chance, item, alias, is_linked=False, columns=(INT,))
    second = sub_query(chance, item, alias, is_linked=False, columns=(INT,))
    return f"{chance.column(item, alias)} {chance.pick('IN', 'NOT IN')} ({first} UNION ALL {second})"


def _aggregate_query(chance: Chance, outer: Item, alias: str, function: str, *, is_linked: bool) -> str:
    other = chance.base()
    source, beside = read_as(chance, other)
    value = function.replace("?", chance.column(other, beside))
    where = f" WHERE {chance.column(other, beside)} = {chance.column(outer, alias)}" if is_linked else ""
    return f"(SELECT {value} FROM {source}{where})"


def _scalar(function: str, *, is_linked: bool) -> Construct:
    return valued(
        lambda chance, item, alias: (
            _aggregate_query(chance, item, alias, function, is_linked=is_linked),
            "bigint" if "COUNT" in function or "SUM" in function else INT,
        )
    )


def _scalar_compared(chance: Chance, item: Item, alias: str) -> str:
    function = chance.pick("MAX(?)", "COUNT(*)", "MIN(?)", "SUM(?)")
    query = _aggregate_query(chance, item, alias, function, is_linked=chance.pick(True, False))
    return f"{chance.column(item, alias)} {chance.pick('=', '<', '>=')} {query}"


def _scalar_of_groups(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    other = chance.base()
    source, beside = read_as(chance, other)
    inner = f"SELECT COUNT(*) AS n FROM {source} WHERE {chance.column(other, beside)} = {chance.column(item, alias)}"
    return f"(SELECT SUM(k.n) FROM ({inner}) AS k)", "bigint"


def _scalar_in_case(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    count = _aggregate_query(chance, item, alias, "COUNT(?)", is_linked=True)
    return f"CASE WHEN {comparison(chance, item, alias)} THEN {count} ELSE -1 END", "bigint"


def _by_key(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    """Look up a value by a primary key: no aggregate, and never two rows."""
    table, value = chance.pick(("a.t", "x"), ("b.u", "y"))
    beside = chance.fresh("q")
    return f"(SELECT {beside}.{value} FROM {table} AS {beside} WHERE {beside}.id = {chance.column(item, alias)})", INT


def _linked_by_inequality(chance: Chance, item: Item, alias: str) -> str:
    other = chance.base()
    source, beside = read_as(chance, other)
    on = f"{chance.column(other, beside)} {chance.pick('<', '>=', '<>')} {chance.column(item, alias)}"
    return f"{chance.pick('', 'NOT ')}EXISTS (SELECT 1 FROM {source} WHERE {on})"


SUB_QUERIES: dict[str, Construct] = {
    "exists": _exists("EXISTS", is_linked=True),
    "exists at all": _exists("EXISTS", is_linked=False),
    "not exists": _exists("NOT EXISTS", is_linked=True),
    "exists, linked by inequality": filtered(_linked_by_inequality),
    "in": _member("IN", is_linked=False),
    "in, linked": _member("IN", is_linked=True),
    "not in": _member("NOT IN", is_linked=False),
    "not in, linked": _member("NOT IN", is_linked=True),
    "in pairs": one_of(_member_pairs("IN"), _member_pairs("NOT IN")),
    "in groups": one_of(filtered(_member_of_groups), filtered(_member_of_set)),
    "member or": one_of(filtered(_member_or), filtered(_exists_or)),
    "not either": one_of(
        filtered(_not_either),
        filtered(lambda c, i, a: f"({any_membership(c, i, a)}) IS {c.pick('', 'NOT ')}NULL"),
    ),
    "membership": valued(lambda c, i, a: (any_membership(c, i, a), TRUTH)),
    "existence": valued(lambda c, i, a: (f"EXISTS ({sub_query(c, i, a, is_linked=True, columns=())})", TRUTH)),
    "value": _scalar("MAX(?)", is_linked=False),
    "linked value": _scalar("MIN(?)", is_linked=True),
    "linked count": one_of(_scalar("COUNT(*)", is_linked=True), _scalar("COUNT(DISTINCT ?)", is_linked=True)),
    "linked sum": _scalar("COALESCE(SUM(?), 0) + 1", is_linked=True),
    "value compared": filtered(_scalar_compared),
    "value of groups": one_of(valued(_scalar_of_groups), valued(_scalar_in_case)),
    "value by key": valued(_by_key),
}
"""Sub-queries by name."""
