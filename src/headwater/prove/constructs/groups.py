"""Groups and aggregates."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.prove.chance import DAY, INT, MONEY, TEXT, TRUTH, Chance, DrawnQuery, Item
from headwater.prove.constructs.parts import Construct, one_of, read_as

Aggregate = tuple[str, str, str]
"""An aggregate with ? for its argument, the argument's type, and its own."""

_COUNT: Aggregate = ("COUNT(*)", INT, "bigint")


def _grouped(
    *functions: Aggregate, key_count: int | None = None, tail: str = "", having: str = "", shows_keys: bool = True
) -> Construct:
    """Return the construct that groups by some columns."""

    def construct(chance: Chance, item: Item) -> DrawnQuery:
        source, alias = read_as(chance, item)
        count = chance.pick(1, 1, 2) if key_count is None else key_count
        keys = chance.random.sample(item.columns, min(count, len(item.columns)))
        outputs = [(f"{alias}.{name}", chance.fresh("g"), kind) for name, kind in keys]
        by = [text for text, _, _ in outputs]
        values = [
            (
                text.replace("?", chance.column(item, alias, kind)).replace("{key}", by[0] if by else ""),
                chance.fresh("n"),
                result,
            )
            for text, kind, result in functions
        ]
        shown = (*(outputs if shows_keys else ()), *values)
        listed = ", ".join(f"{text} AS {name}" for text, name, _ in shown)
        places = ", ".join(str(place) for place in range(1, len(by) + 1))
        names = ", ".join(name for _, name, _ in outputs)
        group = tail or " GROUP BY {keys}"
        for mark, text in (
            ("{keys}", ", ".join(by)),
            ("{first}", by[0] if by else ""),
            ("{last}", by[-1] if by else ""),
            ("{places}", places),
            ("{names}", names),
        ):
            group = group.replace(mark, text)
        kept = f" HAVING {having.replace('?', chance.column(item, alias))}" if having else ""
        kinds = tuple((name, kind) for _, name, kind in shown)
        return DrawnQuery(f"SELECT {listed} FROM {source}{group if outputs else ''}{kept}", kinds)

    return construct


def _group_expression(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    key, name, count = chance.column(item, alias), chance.fresh("g"), chance.fresh("n")
    text = f"SELECT {key} + 1 AS {name}, COUNT(*) AS {count} FROM {source} GROUP BY {key} + 1"
    return DrawnQuery(text, ((name, INT), (count, "bigint")))


def _ranked_groups(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    key, kind = chance.any_column(item, alias)
    name, total, rank = chance.fresh("g"), chance.fresh("n"), chance.fresh("e")
    value = f"SUM({chance.column(item, alias)})"
    over = chance.pick(f"ORDER BY {value} DESC", f"PARTITION BY COUNT(*) ORDER BY {value}")
    text = f"SELECT {key} AS {name}, {value} AS {total}, RANK() OVER ({over}) AS {rank} FROM {source} GROUP BY {key}"
    return DrawnQuery(text, ((name, kind), (total, "bigint"), (rank, INT)))


def _best_groups(chance: Chance, item: Item) -> DrawnQuery:
    source, alias = read_as(chance, item)
    key, kind = chance.any_column(item, alias)
    name, count = chance.fresh("g"), chance.fresh("n")
    text = (
        f"SELECT {key} AS {name}, COUNT(*) AS {count} FROM {source} GROUP BY {key} "
        f"ORDER BY {count} DESC, {name} LIMIT 2"
    )
    return DrawnQuery(text, ((name, kind), (count, "bigint")))


def _doubles(*functions: str) -> Sequence[Aggregate]:
    return [(text, INT, "double") for text in functions]


GROUPS: dict[str, Construct] = {
    "group": one_of(
        _grouped(_COUNT, ("SUM(?)", INT, "bigint")),
        _grouped(
            ("COALESCE(SUM(?), 0) - COUNT(*)", INT, "bigint"),
            ("CASE WHEN MAX(?) > 1 THEN 'much' ELSE 'few' END", INT, TEXT),
        ),
    ),
    "group of money": one_of(
        _grouped(("SUM(?)", MONEY, "decimal(18,2)"), ("COUNT(?)", MONEY, "bigint")),
        _grouped(("AVG(?)", MONEY, "decimal(12,6)"), ("MAX(?)", MONEY, MONEY)),
    ),
    "group by all": one_of(
        _grouped(("COUNT(?)", TEXT, "bigint"), tail=" GROUP BY ALL"),
        _grouped(("SUM(?)", INT, "bigint"), tail=" GROUP BY {places}"),
        _grouped(("MIN(?)", INT, INT), tail=" GROUP BY {names}"),
    ),
    "group by expression": one_of(_group_expression, _grouped(_COUNT, ("MAX(?)", INT, INT), shows_keys=False)),
    "one group": _grouped(_COUNT, ("SUM(?)", INT, "bigint"), ("MIN(?)", TEXT, TEXT), key_count=0),
    "having": one_of(
        _grouped(_COUNT, having="COUNT(*) > 1 OR MAX(?) > 2"),
        _grouped(_COUNT, ("MAX(?)", INT, INT), key_count=0, having="COUNT(?) > 2"),
    ),
    "extremes": one_of(
        _grouped(("MIN(?)", INT, INT), ("MAX(?)", DAY, DAY), ("MAX(?)", TEXT, TEXT)),
        _grouped(("MIN(?) FILTER (WHERE ? <> 1)", INT, INT), ("MAX(?)", TEXT, TEXT)),
    ),
    "average": _grouped(("AVG(?)", INT, "double"), ("COUNT(?)", INT, "bigint")),
    "sum of doubles": _grouped(*_doubles("SUM(? / 3)", "AVG(? * 0.1D)", "MIN(? / 2)")),
    "statistics": one_of(
        _grouped(*_doubles("VAR_POP(?)", "STDDEV(?)")),
        _grouped(*_doubles("CORR(?, ? + 1)", "COVAR_POP(?, 2 * ?)")),
        _grouped(*_doubles("MEDIAN(?)", "PERCENTILE(?, 0.25)")),
    ),
    "truths": one_of(
        _grouped(("BOOL_AND(?)", TRUTH, TRUTH), ("BOOL_OR(?)", TRUTH, TRUTH)),
        _grouped(("BIT_AND(?)", INT, INT), ("BIT_OR(?)", INT, INT), ("BIT_XOR(?)", INT, INT)),
    ),
    "count distinct": one_of(
        _grouped(("COUNT(DISTINCT ?)", INT, "bigint")),
        _grouped(("COUNT(DISTINCT ?, {key})", INT, "bigint"), key_count=1),
        _grouped(("COUNT(DISTINCT ?)", INT, "bigint"), ("COUNT(DISTINCT ?)", TEXT, "bigint")),
    ),
    "distinct and totals": _grouped(
        ("SUM(DISTINCT ?)", INT, "bigint"), ("SUM(?)", INT, "bigint"), ("MAX(?)", INT, INT)
    ),
    "filter": one_of(
        _grouped(("SUM(?) FILTER (WHERE ? > 1)", INT, "bigint"), ("COUNT(*) FILTER (WHERE ? = 1)", INT, "bigint")),
        _grouped(("COUNT(DISTINCT ?) FILTER (WHERE ? > 0)", INT, "bigint"), _COUNT),
        _grouped(("COUNT_IF(? > 1)", INT, "bigint"), ("SUM(IF(? IS NULL, 1, 0))", INT, "bigint")),
    ),
    "rollup": one_of(
        _grouped(_COUNT, key_count=2, tail=" GROUP BY ROLLUP ({keys})"),
        _grouped(("GROUPING({key})", INT, "tinyint"), _COUNT, key_count=2, tail=" GROUP BY ROLLUP ({keys})"),
    ),
    "with rollup": one_of(
        _grouped(("SUM(?)", INT, "bigint"), key_count=2, tail=" GROUP BY {keys} WITH ROLLUP"),
        _grouped(_COUNT, key_count=2, tail=" GROUP BY {first}, ROLLUP ({last})"),
    ),
    "cube": one_of(
        _grouped(("COUNT(?)", INT, "bigint"), key_count=2, tail=" GROUP BY CUBE ({keys})"),
        _grouped(
            ("GROUPING_ID()", INT, "bigint"), ("SUM(?)", INT, "bigint"), key_count=2, tail=" GROUP BY CUBE ({keys})"
        ),
    ),
    "grouping sets": _grouped(("MAX(?)", INT, INT), key_count=2, tail=" GROUP BY GROUPING SETS (({keys}), ())"),
    "ranked groups": one_of(_ranked_groups, _best_groups),
}
"""Groups by name."""
