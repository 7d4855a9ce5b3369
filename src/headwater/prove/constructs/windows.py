"""Window functions, and what keeps the first rows."""

from __future__ import annotations

from headwater.prove.chance import INT, Chance, DrawnQuery, Item
from headwater.prove.constructs.parts import Construct, one_of, read_as, select_some, valued

_PARTS = "PARTITION BY {p} ORDER BY {o}"


def _window(function: str, kind: str, over: str = _PARTS) -> Construct:
    """Return the construct that adds a window function. {p} stands for a partition, {o} an order, {i} a number."""

    def value(chance: Chance, item: Item, alias: str) -> tuple[str, str]:
        partition, _ = chance.any_column(item, alias)
        order, _ = chance.any_column(item, alias)
        words = chance.pick("", " DESC", " NULLS LAST")
        frame = over.replace("{p}", partition).replace("{o}", f"{order}{words}")
        frame = frame.replace("{i}", f"{chance.column(item, alias)}{chance.pick('', ' DESC')}")
        return f"{function.replace('?', chance.column(item, alias))} OVER ({frame})", kind

    return valued(value)


def _named_window(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
    partition, _ = chance.any_column(item, alias)
    name, window = chance.fresh("e"), chance.fresh("w")
    text = f"SELECT {columns}, COUNT(*) OVER {window} AS {name} FROM {source}"
    return DrawnQuery(f"{text} WINDOW {window} AS (PARTITION BY {partition})", (*kinds, (name, "bigint")))


def _renamed_window(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
    partition, _ = chance.any_column(item, alias)
    name, first, second = chance.fresh("e"), chance.fresh("w"), chance.fresh("w")
    text = f"SELECT {columns}, MAX({chance.column(item, alias)}) OVER {second} AS {name} FROM {source}"
    windows = f"WINDOW {first} AS (PARTITION BY {partition}), {second} AS {first}"
    return DrawnQuery(f"{text} {windows}", (*kinds, (name, INT)))


def _two_windows(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
    partition, _ = chance.any_column(item, alias)
    order, _ = chance.any_column(item, alias)
    rank, total = chance.fresh("e"), chance.fresh("e")
    over = f"PARTITION BY {partition} ORDER BY {order}"
    values = (
        f"RANK() OVER ({over}) AS {rank}, SUM({chance.column(item, alias)}) OVER (PARTITION BY {partition}) AS {total}"
    )
    return DrawnQuery(f"SELECT {columns}, {values} FROM {source}", (*kinds, (rank, INT), (total, "bigint")))


def _qualify(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
    partition, _ = chance.any_column(item, alias)
    order, _ = chance.any_column(item, alias)
    rank = chance.pick("RANK", "ROW_NUMBER", "DENSE_RANK")
    text = f"{rank}() OVER (PARTITION BY {partition} ORDER BY {order}) <= {chance.pick('1', '2')}"
    return DrawnQuery(f"SELECT {columns} FROM {source} QUALIFY {text}", kinds)


def _first_per_key(chance: Chance, item: Item) -> DrawnQuery:
    """Keep one row per key, as everybody writes it."""
    source, alias = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
    partition, _ = chance.any_column(item, alias)
    order, _ = chance.any_column(item, alias)
    number, inner = chance.fresh("e"), chance.fresh("q")
    place = f"ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {order} DESC)"
    ranked = f"SELECT {columns}, {place} AS {number} FROM {source}"
    listed = ", ".join(f"{inner}.{name}" for name, _ in kinds)
    return DrawnQuery(f"SELECT {listed} FROM ({ranked}) AS {inner} WHERE {inner}.{number} = 1", kinds)


def _limited(tail: str) -> Construct:
    def construct(chance: Chance, item: Item) -> DrawnQuery:
        source, alias = read_as(chance, item)
        columns, kinds = select_some(chance, item, alias)
        order = chance.random.choice(kinds)[0]
        words = chance.pick("", " DESC", " NULLS LAST", " DESC NULLS FIRST")
        return DrawnQuery(f"SELECT {columns} FROM {source} ORDER BY {order}{words} {tail}", kinds)

    return construct


WINDOWS: dict[str, Construct] = {
    "rank": one_of(
        _window("RANK()", INT),
        _window("DENSE_RANK()", INT),
        _window("PERCENT_RANK()", "double"),
        _window("CUME_DIST()", "double"),
    ),
    "row number": _window("ROW_NUMBER()", INT),
    "row number of all": _window("ROW_NUMBER()", INT, "ORDER BY {o}"),
    "ntile": _window("NTILE(2)", INT),
    "lag": one_of(_window("LAG(?)", INT), _window("LAG(?, 2)", INT)),
    "lead": _window("LEAD(?, 2, 9)", INT),
    "first value": one_of(_window("FIRST_VALUE(?)", INT), _window("NTH_VALUE(?, 2)", INT)),
    "last value": one_of(
        _window("LAST_VALUE(?)", INT, f"{_PARTS} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
        _window("LAST_VALUE(?)", INT),
    ),
    "window total": one_of(
        _window("SUM(?)", "bigint", "PARTITION BY {p}"),
        _window("AVG(?)", "double", "PARTITION BY {p}"),
        _window("COUNT(?)", "bigint", "PARTITION BY {p}"),
    ),
    "window of all": _window("MAX(?)", INT, ""),
    "running total": one_of(_window("SUM(?)", "bigint"), _window("MIN(?)", INT)),
    "rows frame": one_of(
        _window("SUM(?)", "bigint", f"{_PARTS} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
        _window("MAX(?)", INT, f"{_PARTS} ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING"),
    ),
    "range frame": one_of(
        _window("COUNT(?)", "bigint", "PARTITION BY {p} ORDER BY {i} RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
        _window("SUM(?)", "bigint", f"{_PARTS} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"),
    ),
    "named window": one_of(_named_window, _renamed_window),
    "two windows": _two_windows,
    "qualify": _qualify,
    "first per key": _first_per_key,
    "limit": _limited("LIMIT 3"),
    "limit with offset": one_of(_limited("LIMIT 2 OFFSET 1"), _limited("OFFSET 2"), _limited("")),
}
"""Windows and first rows by name."""
