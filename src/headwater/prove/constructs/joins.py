"""Joins, and other ways to put rows beside each other."""

from __future__ import annotations

from collections.abc import Callable

from headwater.prove.chance import DAY, INT, MONEY, TEXT, Chance, DrawnQuery, Item
from headwater.prove.constructs.parts import COMPARE, Construct, one_of, read_as, select_some

Condition = Callable[[Chance, Item, str, Item, str], str]


def _joined(word: str, condition: Condition, *, sides: int = 2, where: str = "") -> Construct:
    """Return the construct that joins the item with a base relation. `sides` is how many of the two show."""

    def construct(chance: Chance, item: Item) -> DrawnQuery:
        return _with_partner(chance, item, chance.base(), word, condition, sides, where)

    return construct


def _with_partner(
    chance: Chance, item: Item, other: Item, word: str, condition: Condition, sides: int = 2, where: str = ""
) -> DrawnQuery:
    source, alias = read_as(chance, item)
    partner, beside = read_as(chance, other)
    columns, kinds = select_some(chance, item, alias)
    if sides > 1:
        more, more_kinds = select_some(chance, other, beside)
        columns, kinds = f"{columns}, {more}", kinds + more_kinds
    on = condition(chance, item, alias, other, beside)
    kept = f" WHERE {where.replace('?', chance.column(other, beside))}" if where else ""
    return DrawnQuery(f"SELECT {columns} FROM {source} {word} {partner} ON {on}{kept}", kinds)


def _equal(chance: Chance, item: Item, alias: str, other: Item, beside: str) -> str:
    kind = chance.pick(INT, INT, INT, TEXT, DAY, MONEY)
    compare = chance.pick("=", "=", "=", "<=>")
    return f"{chance.column(item, alias, kind)} {compare} {chance.column(other, beside, kind)}"


def _equal_and_more(chance: Chance, item: Item, alias: str, other: Item, beside: str) -> str:
    more = f"{chance.column(other, beside)} {chance.pick(*COMPARE)} {chance.literal(INT)}"
    return f"{_equal(chance, item, alias, other, beside)} AND {more}"


def _equal_and_own(chance: Chance, item: Item, alias: str, other: Item, beside: str) -> str:
    """Return an equality and a test of the side that is kept."""
    own = f"{chance.column(item, alias)} {chance.pick(*COMPARE)} {chance.literal(INT)}"
    return f"{_equal(chance, item, alias, other, beside)} AND {own}"


def _unequal(chance: Chance, item: Item, alias: str, other: Item, beside: str) -> str:
    return f"{chance.column(item, alias)} {chance.pick('<', '>', '<>')} {chance.column(other, beside)}"


def _either(chance: Chance, item: Item, alias: str, other: Item, beside: str) -> str:
    return f"({_equal(chance, item, alias, other, beside)} OR {_equal(chance, item, alias, other, beside)})"


def _computed(chance: Chance, item: Item, alias: str, other: Item, beside: str) -> str:
    return f"{chance.column(item, alias)} + 1 = {chance.column(other, beside)} * 2"


def _comma_join(chance: Chance, item: Item) -> DrawnQuery:
    other = chance.base()
    source, alias = read_as(chance, item)
    partner, beside = read_as(chance, other)
    columns, kinds = select_some(chance, item, alias)
    more, more_kinds = select_some(chance, other, beside)
    where = _equal(chance, item, alias, other, beside)
    return DrawnQuery(f"SELECT {columns}, {more} FROM {source}, {partner} WHERE {where}", kinds + more_kinds)


def _self_join(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    again, beside = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
    name = chance.fresh("c")
    value, kind = chance.any_column(item, beside)
    on = f"{chance.column(item, alias)} = {chance.column(item, beside)}"
    return DrawnQuery(f"SELECT {columns}, {value} AS {name} FROM {source} JOIN {again} ON {on}", (*kinds, (name, kind)))


def _using(*words: str) -> Construct:
    """Return the construct that joins two queries that name a column alike."""

    def construct(chance: Chance, item: Item) -> DrawnQuery:
        key, other = chance.fresh("k"), chance.base()
        source, alias = read_as(chance, item)
        partner, beside = read_as(chance, other)
        columns, kinds = select_some(chance, item, alias)
        one, two = chance.fresh("q"), chance.fresh("q")
        left = f"(SELECT {chance.column(item, alias)} AS {key}, {columns} FROM {source}) AS {one}"
        right = f"(SELECT {chance.column(other, beside)} AS {key} FROM {partner}) AS {two}"
        listed = ", ".join([key, *(f"{one}.{name}" for name, _ in kinds)])
        word = chance.pick(*words)
        return DrawnQuery(f"SELECT {listed} FROM {left} {word} {right} USING ({key})", ((key, INT), *kinds))

    return construct


def _three(chance: Chance, item: Item) -> DrawnQuery:
    """Join three, the second and the third in parentheses or not."""
    middle, last = chance.base(), chance.base()
    source, alias = read_as(chance, item)
    second, beside = read_as(chance, middle)
    third, after = read_as(chance, last)
    columns, kinds = select_some(chance, item, alias)
    more, more_kinds = select_some(chance, last, after)
    first_on = _equal(chance, item, alias, middle, beside)
    last_on = _equal(chance, middle, beside, last, after)
    word, other = chance.pick("JOIN", "LEFT JOIN"), chance.pick("JOIN", "LEFT JOIN")
    joined = chance.pick(
        f"{source} {word} {second} ON {first_on} {other} {third} ON {last_on}",
        f"{source} {word} ({second} {other} {third} ON {last_on}) ON {first_on}",
    )
    return DrawnQuery(f"SELECT {columns}, {more} FROM {joined}", kinds + more_kinds)


def _other_view(chance: Chance, item: Item) -> DrawnQuery:
    """Join another view of the trial."""
    word = chance.pick("JOIN", "LEFT JOIN", "JOIN")
    return _with_partner(chance, item, chance.view(), word, chance.pick(_equal, _equal_and_more))


def _lateral(chance: Chance, item: Item) -> DrawnQuery:
    other = chance.base()
    source, alias = read_as(chance, item)
    partner, beside = read_as(chance, other)
    columns, kinds = select_some(chance, item, alias)
    inner, count = chance.fresh("q"), chance.fresh("n")
    on = f"{chance.column(other, beside)} = {chance.column(item, alias)}"
    query = f"SELECT COUNT(*) AS {count} FROM {partner} WHERE {on}"
    return DrawnQuery(
        f"SELECT {columns}, {inner}.{count} FROM {source}, LATERAL ({query}) AS {inner}", (*kinds, (count, "bigint"))
    )


def _lateral_view(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
    table, name = chance.fresh("q"), chance.fresh("e")
    made = f"EXPLODE(ARRAY({chance.column(item, alias)}, {chance.column(item, alias)}))"
    text = f"SELECT {columns}, {table}.{name} FROM {source} LATERAL VIEW {made} {table} AS {name}"
    return DrawnQuery(text, (*kinds, (name, INT)))


def _values(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
    table, key, word = chance.fresh("q"), chance.fresh("k"), chance.fresh("c")
    rows = ", ".join(f"({chance.literal(INT)}, {chance.literal(TEXT)})" for _ in range(3))
    text = (
        f"SELECT {columns}, {table}.{word} FROM {source} {chance.pick('JOIN', 'LEFT JOIN')} (VALUES {rows}) "
        f"AS {table} ({key}, {word}) ON {table}.{key} = {chance.column(item, alias)}"
    )
    return DrawnQuery(text, (*kinds, (word, TEXT)))


JOINS: dict[str, Construct] = {
    "join": _joined("JOIN", _equal),
    "join on more": one_of(*(_joined("JOIN", condition) for condition in (_equal_and_more, _either, _computed))),
    "join on inequality": _joined("JOIN", _unequal),
    "cross join": _joined("JOIN", lambda *_: "TRUE"),
    "comma join": _comma_join,
    "self join": _self_join,
    "three-way join": _three,
    "using": _using("JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"),
    "left join": one_of(_joined("LEFT JOIN", _equal), _joined("LEFT JOIN", _equal, where="? IS NULL")),
    "left join on more": one_of(_joined("LEFT JOIN", _equal_and_more), _joined("LEFT JOIN", _equal_and_own)),
    "left join on inequality": _joined("LEFT JOIN", _unequal),
    "right join": one_of(_joined("RIGHT JOIN", _equal), _joined("RIGHT JOIN", _equal_and_own)),
    "full join": one_of(_joined("FULL JOIN", _equal), _joined("FULL JOIN", _equal_and_more)),
    "semi join": one_of(*(_joined("LEFT SEMI JOIN", condition, sides=1) for condition in (_equal, _unequal))),
    "anti join": _joined("LEFT ANTI JOIN", _equal_and_more, sides=1),
    "other view": _other_view,
    "lateral": one_of(_lateral, _lateral_view),
    "values": _values,
}
"""Joins by name."""
