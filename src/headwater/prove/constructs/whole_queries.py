"""What is done to whole queries: sets, DISTINCT, WITH, stars."""

from __future__ import annotations

from headwater.prove.chance import DAY, INT, TEXT, TRUTH, Chance, DrawnQuery, Item
from headwater.prove.constructs.parts import Construct, one_of, read_as, select_some


def _distinct(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
    return DrawnQuery(f"SELECT DISTINCT {columns} FROM {source}", kinds)


def _combined(word: str, second: str = "") -> Construct:
    """Return the construct that combines the item with base relations' rows of the same types."""

    def construct(chance: Chance, item: Item) -> DrawnQuery:
        source, alias = read_as(chance, item)
        kept = [(name, kind) for name, kind in item.columns if kind in {INT, TEXT, DAY, TRUTH}][:2]
        columns = [(f"{alias}.{name}", kind) for name, kind in kept] or [(chance.column(item, alias), INT)]
        names = [chance.fresh("c") for _ in columns]
        left = ", ".join(f"{text} AS {name}" for (text, _), name in zip(columns, names, strict=True))
        kinds = tuple((name, kind) for (_, kind), name in zip(columns, names, strict=True))
        text = f"SELECT {left} FROM {source} {word} {_like(chance, kinds)}"
        return DrawnQuery(f"({text}) {second} {_like(chance, kinds)}" if second else text, kinds)

    return construct


def _like(chance: Chance, kinds: tuple[tuple[str, str], ...]) -> str:
    """Return a SELECT of columns of these types from a base relation.

    A column that is shown twice has two names: without, Spark 4.3 makes an invalid plan of EXCEPT ALL.
    """
    other = chance.base()
    partner, beside = read_as(chance, other)
    values = [chance.column(other, beside, kind) for _, kind in kinds]
    if len(set(values)) < len(values):
        values = [f"{value} AS {name}" for value, (name, _) in zip(values, kinds, strict=True)]
    return f"SELECT {', '.join(values)} FROM {partner}"


def _union_with_null(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    other = chance.base()
    partner, beside = read_as(chance, other)
    first, second = chance.fresh("c"), chance.fresh("c")
    value, kind = chance.any_column(item, alias)
    text = (
        f"SELECT {chance.column(item, alias)} AS {first}, {value} AS {second} FROM {source} "
        f"UNION ALL SELECT {chance.column(other, beside)}, NULL FROM {partner}"
    )
    return DrawnQuery(text, ((first, INT), (second, kind)))


def _with_twice(chance: Chance, item: Item) -> DrawnQuery:
    name, one, two = chance.fresh("w"), chance.fresh("q"), chance.fresh("q")
    definition, alias = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
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
    source, alias = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
    renamed = tuple((chance.fresh("k"), kind) for _, kind in kinds)
    listed = ", ".join(output for output, _ in renamed)
    return DrawnQuery(
        f"WITH {name} ({listed}) AS (SELECT {columns} FROM {source}) SELECT {listed} FROM {name}", renamed
    )


def _with_chain(chance: Chance, item: Item) -> DrawnQuery:
    """Name a query, one over it, and one that nobody reads."""
    one, two, unused = chance.fresh("w"), chance.fresh("w"), chance.fresh("w")
    source, alias = read_as(chance, item)
    columns, kinds = select_some(chance, item, alias)
    names = ", ".join(name for name, _ in kinds)
    other, _ = read_as(chance, chance.base())
    named = f"{one} AS (SELECT {columns} FROM {source}), {unused} AS (SELECT 1 AS z FROM {other})"
    return DrawnQuery(f"WITH {named}, {two} AS (SELECT {names} FROM {one}) SELECT {names} FROM {two}", kinds)


def _star(chance: Chance, item: Item) -> DrawnQuery:
    source, _ = read_as(chance, item)
    return DrawnQuery(f"SELECT * FROM {source}", item.columns)


def _renamed(chance: Chance, item: Item) -> DrawnQuery:
    """Give the columns of a query in FROM other names."""
    if not item.text.startswith("("):
        return _star(chance, item)
    source, alias = read_as(chance, item)
    names = [(chance.fresh("k"), kind) for _, kind in item.columns]
    listed = ", ".join(name for name, _ in names)
    return DrawnQuery(f"SELECT {alias}.* FROM {source} ({listed})", tuple(names))


WHOLE_QUERIES: dict[str, Construct] = {
    "star": one_of(_star, _renamed),
    "distinct": _distinct,
    "union all": one_of(_combined("UNION ALL"), _union_with_null),
    "union": one_of(_combined("UNION"), _combined("UNION", "UNION ALL")),
    "intersect": _combined("INTERSECT"),
    "except": one_of(_combined("EXCEPT"), _combined("UNION ALL", "EXCEPT")),
    "intersect all": _combined("INTERSECT ALL"),
    "except all": _combined("EXCEPT ALL"),
    "with, read twice": _with_twice,
    "with names": one_of(_with_names, _with_chain),
}
"""What is done to whole queries, by name."""
