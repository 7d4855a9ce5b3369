"""Every construct of the SQL reference, as something that is done to a FROM item: `CONSTRUCTS` is all of them.

A construct takes what the one before it gave, so that any two can be put together, in either order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.prove.chance import DAY, INT, MONEY, TEXT, TRUTH, Chance, DrawnQuery, Item

Construct = Callable[[Chance, Item], DrawnQuery]

_COMPARE = ("=", "<>", "<", ">=", "<=>")


def _select(chance: Chance, item: Item, alias: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a select list of some columns under new names, and what they are."""
    kept = chance.some(item.columns, least=2)
    named = [(name, kind, chance.fresh("c")) for name, kind in kept]
    text = ", ".join(f"{alias}.{name} AS {new}" for name, _, new in named)
    return text, tuple((new, kind) for _, kind, new in named)


def _from(chance: Chance, item: Item) -> tuple[str, str]:
    """Return a FROM item under a new alias, and the alias."""
    alias = chance.fresh("q")
    return f"{item.text} AS {alias}", alias


def _filtered(condition: Callable[[Chance, Item, str], str]) -> Construct:
    """Return the construct that keeps the rows of which a condition holds."""

    def construct(chance: Chance, item: Item) -> DrawnQuery:
        source, alias = _from(chance, item)
        columns, kinds = _select(chance, item, alias)
        return DrawnQuery(f"SELECT {columns} FROM {source} WHERE {condition(chance, item, alias)}", kinds)

    return construct


def _valued(expression: Callable[[Chance, Item, str], tuple[str, str]]) -> Construct:
    """Return the construct that adds a computed column."""

    def construct(chance: Chance, item: Item) -> DrawnQuery:
        source, alias = _from(chance, item)
        columns, kinds = _select(chance, item, alias)
        value, kind = expression(chance, item, alias)
        name = chance.fresh("e")
        return DrawnQuery(f"SELECT {columns}, {value} AS {name} FROM {source}", (*kinds, (name, kind)))

    return construct


def _joined(word: str, condition: Callable[[Chance, Item, str, Item, str], str], *, sides: int = 2) -> Construct:
    """Return the construct that joins the item with a base relation; `sides` is how many of the two show."""

    def construct(chance: Chance, item: Item) -> DrawnQuery:
        other = chance.base()
        source, alias = _from(chance, item)
        partner, beside = _from(chance, other)
        columns, kinds = _select(chance, item, alias)
        if sides > 1:
            more, more_kinds = _select(chance, other, beside)
            columns, kinds = f"{columns}, {more}", kinds + more_kinds
        on = condition(chance, item, alias, other, beside)
        return DrawnQuery(f"SELECT {columns} FROM {source} {word} {partner} ON {on}", kinds)

    return construct


def _equal(chance: Chance, item: Item, alias: str, other: Item, beside: str) -> str:
    kind = chance.pick(INT, INT, INT, TEXT, DAY, MONEY)
    return (
        f"{chance.column(item, alias, kind)} {chance.pick('=', '=', '=', '<=>')} {chance.column(other, beside, kind)}"
    )


def _equal_and_more(chance: Chance, item: Item, alias: str, other: Item, beside: str) -> str:
    more = f"{chance.column(other, beside)} {chance.pick(*_COMPARE)} {chance.literal(INT)}"
    return f"{_equal(chance, item, alias, other, beside)} AND {more}"


def _unequal(chance: Chance, item: Item, alias: str, other: Item, beside: str) -> str:
    return f"{chance.column(item, alias)} {chance.pick('<', '>', '<>')} {chance.column(other, beside)}"


def _comparison(chance: Chance, item: Item, alias: str) -> str:
    kind = chance.pick(INT, TEXT, DAY, MONEY)
    left, right = chance.column(item, alias, kind), chance.column(item, alias, kind)
    return f"{left} {chance.pick(*_COMPARE)} {chance.pick(right, chance.literal(kind))}"


def _list(chance: Chance, item: Item, alias: str) -> str:
    kind = chance.pick(INT, TEXT)
    values = ", ".join(chance.literal(kind) for _ in range(3))
    return f"{chance.column(item, alias, kind)} {chance.pick('IN', 'NOT IN')} ({values})"


def _sub_query(chance: Chance, outer: Item, alias: str, *, is_linked: bool, columns: Sequence[str]) -> str:
    """Return a SELECT of columns of these types from a base relation, perhaps linked to the outer query."""
    other = chance.base()
    source, beside = _from(chance, other)
    outputs = ", ".join(chance.column(other, beside, kind) for kind in columns) or "1"
    tests = [f"{chance.column(other, beside)} {chance.pick('=', '<', '>=')} {chance.literal(INT)}"]
    if is_linked:
        kind = chance.pick(INT, INT, TEXT)
        tests.append(f"{chance.column(other, beside, kind)} = {chance.column(outer, alias, kind)}")
    kept = chance.some(tests) if not is_linked else [tests[-1], *tests[: chance.pick(0, 1)]]
    return f"SELECT {outputs} FROM {source} WHERE {' AND '.join(kept)}"


def _exists(word: str, *, is_linked: bool) -> Construct:
    return _filtered(
        lambda chance, item, alias: f"{word} ({_sub_query(chance, item, alias, is_linked=is_linked, columns=())})"
    )


def _membership(chance: Chance, item: Item, alias: str, word: str, *, is_linked: bool) -> str:
    kind = chance.pick(INT, INT, TEXT)
    query = _sub_query(chance, item, alias, is_linked=is_linked, columns=(kind,))
    return f"{chance.column(item, alias, kind)} {word} ({query})"


def _member(word: str, *, is_linked: bool) -> Construct:
    return _filtered(lambda chance, item, alias: _membership(chance, item, alias, word, is_linked=is_linked))


def _member_pairs(chance: Chance, item: Item, alias: str) -> str:
    query = _sub_query(chance, item, alias, is_linked=False, columns=(INT, INT))
    return f"({chance.column(item, alias)}, {chance.column(item, alias)}) IN ({query})"


def _member_or(chance: Chance, item: Item, alias: str) -> str:
    test = _membership(chance, item, alias, chance.pick("IN", "NOT IN"), is_linked=chance.pick(True, False))
    return f"({test} OR {_comparison(chance, item, alias)})"


def _not_either(chance: Chance, item: Item, alias: str) -> str:
    test = _membership(chance, item, alias, chance.pick("IN", "NOT IN"), is_linked=chance.pick(True, False))
    return f"NOT ({_comparison(chance, item, alias)} {chance.pick('OR', 'AND')} {test})"


def _aggregate_query(chance: Chance, outer: Item, alias: str, function: str, *, is_linked: bool) -> str:
    other = chance.base()
    source, beside = _from(chance, other)
    value = function.replace("?", chance.column(other, beside))
    where = f" WHERE {chance.column(other, beside)} = {chance.column(outer, alias)}" if is_linked else ""
    return f"(SELECT {value} FROM {source}{where})"


def _scalar(function: str, *, is_linked: bool) -> Construct:
    return _valued(
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
    source, beside = _from(chance, other)
    inner = f"SELECT COUNT(*) AS n FROM {source} WHERE {chance.column(other, beside)} = {chance.column(item, alias)}"
    return f"(SELECT SUM(k.n) FROM ({inner}) AS k)", "bigint"


def _grouped(
    functions: Sequence[tuple[str, str, str]], *, key_count: int | None = None, tail: str = "", having: str = ""
) -> Construct:
    """Return the construct that groups by some columns: (aggregate with ? for its argument, its type, its result)."""

    def construct(chance: Chance, item: Item) -> DrawnQuery:
        source, alias = _from(chance, item)
        count = chance.pick(1, 1, 2) if key_count is None else key_count
        keys = chance.random.sample(item.columns, min(count, len(item.columns)))
        outputs = [(f"{alias}.{name}", chance.fresh("g"), kind) for name, kind in keys]
        values = [
            (text.replace("?", chance.column(item, alias, kind)), chance.fresh("n"), result)
            for text, kind, result in functions
        ]
        listed = ", ".join(f"{text} AS {name}" for text, name, _ in (*outputs, *values))
        by = ", ".join(text for text, _, _ in outputs)
        group = (tail or " GROUP BY {keys}").replace("{keys}", by) if outputs else ""
        kept = f" HAVING {having.replace('?', chance.column(item, alias))}" if having else ""
        kinds = tuple((name, kind) for _, name, kind in (*outputs, *values))
        return DrawnQuery(f"SELECT {listed} FROM {source}{group}{kept}", kinds)

    return construct


def _group_expression(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = _from(chance, item)
    key, name, count = chance.column(item, alias), chance.fresh("g"), chance.fresh("n")
    text = f"SELECT {key} + 1 AS {name}, COUNT(*) AS {count} FROM {source} GROUP BY {key} + 1"
    return DrawnQuery(text, ((name, INT), (count, "bigint")))


def _distinct(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = _from(chance, item)
    columns, kinds = _select(chance, item, alias)
    return DrawnQuery(f"SELECT DISTINCT {columns} FROM {source}", kinds)


def _combined(word: str) -> Construct:
    """Return the construct that combines the item with a base relation's rows of the same types."""

    def construct(chance: Chance, item: Item) -> DrawnQuery:
        source, alias = _from(chance, item)
        other = chance.base()
        partner, beside = _from(chance, other)
        kept = [(name, kind) for name, kind in item.columns if kind in {INT, TEXT, DAY, TRUTH}][:2]
        pairs = [(f"{alias}.{name}", kind, chance.column(other, beside, kind)) for name, kind in kept]
        pairs = pairs or [(chance.column(item, alias), INT, chance.column(other, beside))]
        names = [chance.fresh("c") for _ in pairs]
        left = ", ".join(f"{one} AS {name}" for (one, _, _), name in zip(pairs, names, strict=True))
        right = ", ".join(two for _, _, two in pairs)
        kinds = tuple((name, kind) for (_, kind, _), name in zip(pairs, names, strict=True))
        text = f"SELECT {left} FROM {source} {word} SELECT {right} FROM {partner}"
        return DrawnQuery(text, kinds)

    return construct


def _window(function: str, kind: str, over: str) -> Construct:
    """Return the construct that adds a window function: {p} is a partition, {o} an order, ? an argument."""

    def value(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
        partition, _ = chance.any_column(item, alias)
        order, _ = chance.any_column(item, alias)
        words = chance.pick("", " DESC", " NULLS LAST")
        frame = over.replace("{p}", partition).replace("{o}", f"{order}{words}")
        return f"{function.replace('?', chance.column(item, alias))} OVER ({frame})", kind

    return _valued(value)


def _qualify(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = _from(chance, item)
    columns, kinds = _select(chance, item, alias)
    partition, _ = chance.any_column(item, alias)
    order, _ = chance.any_column(item, alias)
    rank = chance.pick("RANK", "ROW_NUMBER", "DENSE_RANK")
    text = f"{rank}() OVER (PARTITION BY {partition} ORDER BY {order}) <= {chance.pick('1', '2')}"
    return DrawnQuery(f"SELECT {columns} FROM {source} QUALIFY {text}", kinds)


def _named_window(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = _from(chance, item)
    columns, kinds = _select(chance, item, alias)
    partition, _ = chance.any_column(item, alias)
    name, window = chance.fresh("e"), chance.fresh("w")
    text = f"SELECT {columns}, COUNT(*) OVER {window} AS {name} FROM {source}"
    return DrawnQuery(f"{text} WINDOW {window} AS (PARTITION BY {partition})", (*kinds, (name, "bigint")))


def _first_per_key(chance: Chance, item: Item) -> DrawnQuery:
    """Keep one row per key, as everybody writes it."""
    source, alias = _from(chance, item)
    columns, kinds = _select(chance, item, alias)
    partition, _ = chance.any_column(item, alias)
    order, _ = chance.any_column(item, alias)
    number, inner = chance.fresh("e"), chance.fresh("q")
    place = f"ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {order} DESC)"
    ranked = f"SELECT {columns}, {place} AS {number} FROM {source}"
    listed = ", ".join(f"{inner}.{name}" for name, _ in kinds)
    return DrawnQuery(f"SELECT {listed} FROM ({ranked}) AS {inner} WHERE {inner}.{number} = 1", kinds)


def _limited(tail: str) -> Construct:
    def construct(chance: Chance, item: Item) -> DrawnQuery:
        source, alias = _from(chance, item)
        columns, kinds = _select(chance, item, alias)
        order = chance.random.choice(kinds)[0]
        words = chance.pick("", " DESC", " NULLS LAST", " DESC NULLS FIRST")
        return DrawnQuery(f"SELECT {columns} FROM {source} ORDER BY {order}{words} {tail}", kinds)

    return construct


def _with_twice(chance: Chance, item: Item) -> DrawnQuery:
    name, one, two = chance.fresh("w"), chance.fresh("q"), chance.fresh("q")
    definition, alias = _from(chance, item)
    columns, kinds = _select(chance, item, alias)
    named = Item(name, kinds)
    on = f"{chance.column(named, one)} = {chance.column(named, two)}"
    outputs = [
        (f"{one}.{kinds[0][0]}", chance.fresh("c"), kinds[0][1]),
        (f"{two}.{kinds[-1][0]}", chance.fresh("c"), kinds[-1][1]),
    ]
    listed = ", ".join(f"{text} AS {output}" for text, output, _ in outputs)
    named_rows = f"WITH {name} AS (SELECT {columns} FROM {definition})"
    return DrawnQuery(
        f"{named_rows} SELECT {listed} FROM {name} AS {one} JOIN {name} AS {two} ON {on}",
        tuple((output, kind) for _, output, kind in outputs),
    )


def _with_names(chance: Chance, item: Item) -> DrawnQuery:
    name = chance.fresh("w")
    source, alias = _from(chance, item)
    columns, kinds = _select(chance, item, alias)
    renamed = tuple((chance.fresh("k"), kind) for _, kind in kinds)
    listed = ", ".join(output for output, _ in renamed)
    return DrawnQuery(
        f"WITH {name} ({listed}) AS (SELECT {columns} FROM {source}) SELECT {listed} FROM {name}", renamed
    )


def _star(chance: Chance, item: Item) -> DrawnQuery:
    source, _ = _from(chance, item)
    return DrawnQuery(f"SELECT * FROM {source}", item.columns)


def _comma_join(chance: Chance, item: Item) -> DrawnQuery:
    other = chance.base()
    source, alias = _from(chance, item)
    partner, beside = _from(chance, other)
    columns, kinds = _select(chance, item, alias)
    more, more_kinds = _select(chance, other, beside)
    where = _equal(chance, item, alias, other, beside)
    return DrawnQuery(f"SELECT {columns}, {more} FROM {source}, {partner} WHERE {where}", kinds + more_kinds)


def _self_join(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = _from(chance, item)
    again, beside = _from(chance, item)
    columns, kinds = _select(chance, item, alias)
    name = chance.fresh("c")
    value, kind = chance.any_column(item, beside)
    on = f"{chance.column(item, alias)} = {chance.column(item, beside)}"
    return DrawnQuery(f"SELECT {columns}, {value} AS {name} FROM {source} JOIN {again} ON {on}", (*kinds, (name, kind)))


def _using(chance: Chance, item: Item) -> DrawnQuery:
    """Join two queries that name a column alike."""
    key, other = chance.fresh("k"), chance.base()
    source, alias = _from(chance, item)
    partner, beside = _from(chance, other)
    columns, kinds = _select(chance, item, alias)
    one, two = chance.fresh("q"), chance.fresh("q")
    left = f"(SELECT {chance.column(item, alias)} AS {key}, {columns} FROM {source}) AS {one}"
    right = f"(SELECT {chance.column(other, beside)} AS {key} FROM {partner}) AS {two}"
    listed = ", ".join([key, *(f"{one}.{name}" for name, _ in kinds)])
    word = chance.pick("JOIN", "LEFT JOIN")
    return DrawnQuery(f"SELECT {listed} FROM {left} {word} {right} USING ({key})", ((key, INT), *kinds))


def _case(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    kind = chance.pick(INT, TEXT)
    one, other = chance.column(item, alias, kind), chance.literal(kind)
    return f"CASE WHEN {_comparison(chance, item, alias)} THEN {one} ELSE {other} END", kind


def _text_function(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    column = chance.column(item, alias, TEXT)
    text = chance.pick(
        "UPPER(?)", "CONCAT(?, '-', ?)", "SUBSTRING(?, 1, 1)", "COALESCE(?, 'none')", "TRIM(?)", "? || 'x'"
    )
    return text.replace("?", column), TEXT


def _number_function(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    text = chance.pick(
        "? + 1", "? * 2 - 1", "ABS(? - 3)", "COALESCE(?, 7)", "NULLIF(?, 1)", "GREATEST(?, 2)", "-?", "? % 2"
    )
    return text.replace("?", chance.column(item, alias)), INT


def _day_function(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    column = chance.column(item, alias, DAY)
    text, kind = chance.pick((f"YEAR({column})", INT), (f"MONTH({column})", INT), (f"LAST_DAY({column})", DAY))
    return text, kind


def _truth(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    return f"({_comparison(chance, item, alias)} {chance.pick('AND', 'OR')} {_comparison(chance, item, alias)})", TRUTH


def _cast(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
    column = chance.column(item, alias)
    text, kind = chance.pick((f"CAST({column} AS BIGINT)", "bigint"), (f"CAST({column} AS STRING)", TEXT))
    return text, kind


CONSTRUCTS: dict[str, Construct] = {
    "comparison": _filtered(_comparison),
    "is null": _filtered(lambda c, i, a: f"{c.any_column(i, a)[0]} IS {c.pick('', 'NOT ')}NULL"),
    "list": _filtered(_list),
    "between": _filtered(lambda c, i, a: f"{c.column(i, a)} {c.pick('', 'NOT ')}BETWEEN 1 AND {c.literal(INT)}"),
    "like": _filtered(
        lambda c, i, a: f"{c.column(i, a, TEXT)} {c.pick('', 'NOT ')}LIKE '{c.pick('a%', '%b', '_', '%')}'"
    ),
    "or": _filtered(lambda c, i, a: f"({_comparison(c, i, a)} OR {_comparison(c, i, a)})"),
    "not": _filtered(lambda c, i, a: f"NOT ({_comparison(c, i, a)} AND {_comparison(c, i, a)})"),
    "number function": _valued(_number_function),
    "text function": _valued(_text_function),
    "day function": _valued(_day_function),
    "case": _valued(_case),
    "truth": _valued(_truth),
    "cast": _valued(_cast),
    "constant": _valued(lambda c, _i, _a: (c.literal(INT), INT)),
    "typed null": _valued(lambda _c, _i, _a: ("CAST(NULL AS INT)", INT)),
    "star": _star,
    "join": _joined("JOIN", _equal),
    "join on more": _joined("JOIN", _equal_and_more),
    "join on inequality": _joined("JOIN", _unequal),
    "cross join": _joined("JOIN", lambda *_: "TRUE"),
    "comma join": _comma_join,
    "self join": _self_join,
    "using": _using,
    "left join": _joined("LEFT JOIN", _equal),
    "left join on more": _joined("LEFT JOIN", _equal_and_more),
    "left join on inequality": _joined("LEFT JOIN", _unequal),
    "right join": _joined("RIGHT JOIN", _equal),
    "full join": _joined("FULL JOIN", _equal),
    "semi join": _joined("LEFT SEMI JOIN", _equal, sides=1),
    "anti join": _joined("LEFT ANTI JOIN", _equal_and_more, sides=1),
    "exists": _exists("EXISTS", is_linked=True),
    "exists at all": _exists("EXISTS", is_linked=False),
    "not exists": _exists("NOT EXISTS", is_linked=True),
    "in": _member("IN", is_linked=False),
    "in, linked": _member("IN", is_linked=True),
    "not in": _member("NOT IN", is_linked=False),
    "not in, linked": _member("NOT IN", is_linked=True),
    "in pairs": _filtered(_member_pairs),
    "member or": _filtered(_member_or),
    "not either": _filtered(_not_either),
    "membership": _valued(
        lambda c, i, a: (_membership(c, i, a, c.pick("IN", "NOT IN"), is_linked=c.pick(True, False)), TRUTH)
    ),
    "existence": _valued(lambda c, i, a: (f"EXISTS ({_sub_query(c, i, a, is_linked=True, columns=())})", TRUTH)),
    "value": _scalar("MAX(?)", is_linked=False),
    "linked value": _scalar("MIN(?)", is_linked=True),
    "linked count": _scalar("COUNT(*)", is_linked=True),
    "linked sum": _scalar("COALESCE(SUM(?), 0) + 1", is_linked=True),
    "value compared": _filtered(_scalar_compared),
    "value of groups": _valued(_scalar_of_groups),
    "group": _grouped([("COUNT(*)", INT, "bigint"), ("SUM(?)", INT, "bigint")]),
    "group of money": _grouped([("SUM(?)", MONEY, "decimal(18,2)"), ("COUNT(?)", MONEY, "bigint")]),
    "group by all": _grouped([("COUNT(?)", TEXT, "bigint")], tail=" GROUP BY ALL"),
    "group by expression": _group_expression,
    "one group": _grouped(
        [("COUNT(*)", INT, "bigint"), ("SUM(?)", INT, "bigint"), ("MIN(?)", TEXT, TEXT)], key_count=0
    ),
    "having": _grouped([("COUNT(*)", INT, "bigint")], having="COUNT(*) > 1 OR MAX(?) > 2"),
    "extremes": _grouped([("MIN(?)", INT, INT), ("MAX(?)", DAY, DAY), ("MAX(?)", TEXT, TEXT)]),
    "average": _grouped([("AVG(?)", INT, "double"), ("COUNT(?)", INT, "bigint")]),
    "count distinct": _grouped([("COUNT(DISTINCT ?)", INT, "bigint")]),
    "distinct and totals": _grouped(
        [("SUM(DISTINCT ?)", INT, "bigint"), ("SUM(?)", INT, "bigint"), ("MAX(?)", INT, INT)]
    ),
    "filter": _grouped(
        [("SUM(?) FILTER (WHERE ? > 1)", INT, "bigint"), ("COUNT(*) FILTER (WHERE ? = 1)", INT, "bigint")]
    ),
    "truths": _grouped([("BOOL_AND(?)", TRUTH, TRUTH), ("BOOL_OR(?)", TRUTH, TRUTH)]),
    "rollup": _grouped([("COUNT(*)", INT, "bigint")], key_count=2, tail=" GROUP BY ROLLUP ({keys})"),
    "with rollup": _grouped([("SUM(?)", INT, "bigint")], key_count=2, tail=" GROUP BY {keys} WITH ROLLUP"),
    "cube": _grouped([("COUNT(?)", INT, "bigint")], key_count=2, tail=" GROUP BY CUBE ({keys})"),
    "grouping sets": _grouped([("MAX(?)", INT, INT)], key_count=2, tail=" GROUP BY GROUPING SETS (({keys}), ())"),
    "distinct": _distinct,
    "union all": _combined("UNION ALL"),
    "union": _combined("UNION"),
    "intersect": _combined("INTERSECT"),
    "except": _combined("EXCEPT"),
    "intersect all": _combined("INTERSECT ALL"),
    "except all": _combined("EXCEPT ALL"),
    "rank": _window("RANK()", INT, "PARTITION BY {p} ORDER BY {o}"),
    "dense rank": _window("DENSE_RANK()", INT, "PARTITION BY {p} ORDER BY {o}"),
    "row number": _window("ROW_NUMBER()", INT, "PARTITION BY {p} ORDER BY {o}"),
    "row number of all": _window("ROW_NUMBER()", INT, "ORDER BY {o}"),
    "lag": _window("LAG(?)", INT, "PARTITION BY {p} ORDER BY {o}"),
    "lead": _window("LEAD(?, 2, 9)", INT, "PARTITION BY {p} ORDER BY {o}"),
    "first value": _window("FIRST_VALUE(?)", INT, "PARTITION BY {p} ORDER BY {o}"),
    "last value": _window(
        "LAST_VALUE(?)", INT, "PARTITION BY {p} ORDER BY {o} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    ),
    "window total": _window("SUM(?)", "bigint", "PARTITION BY {p}"),
    "running total": _window("SUM(?)", "bigint", "PARTITION BY {p} ORDER BY {o}"),
    "rows frame": _window("SUM(?)", "bigint", "PARTITION BY {p} ORDER BY {o} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
    "ntile": _window("NTILE(2)", INT, "PARTITION BY {p} ORDER BY {o}"),
    "named window": _named_window,
    "qualify": _qualify,
    "first per key": _first_per_key,
    "limit": _limited("LIMIT 3"),
    "limit with offset": _limited("LIMIT 2 OFFSET 1"),
    "with, read twice": _with_twice,
    "with names": _with_names,
}
"""Every construct by its name."""
