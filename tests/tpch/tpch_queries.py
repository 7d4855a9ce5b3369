"""The 22 queries as they are run on very little data, and as DuckDB must be told them to compute as Spark does.

`queries/` has the texts with the parameters of the specification's validation runs. On a thousandth of scale factor 1
(10 suppliers, and of its orders one in three) many of those select nothing; `PARAMETERS` says what is changed so that
every query has rows and loses and gains some. The queries' shape stays, but for one equality that becomes a LIKE.

Spark is the authority. DuckDB carries the bulk of the judging; where it computes otherwise, `AS_SPARK` says so:

| where | Spark | DuckDB | told DuckDB |
|---|---|---|---|
| avg(decimal) | decimal, 4 digits more, half up | double | half up in whole numbers, from SUM and COUNT |
| decimal / decimal | decimal, here always 6 digits, half up | double | half up in whole numbers |
| comparing with avg(decimal) | with the rounded decimal | with a double | with the double rounded to 6 digits |
| LIMIT | Headwater: ties cut by all columns in order | any | those columns after the written order |
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "queries"

PARAMETERS: dict[str, tuple[tuple[str, str], ...]] = {
    "q02": (("p_size = 15", "p_size < 25"), ("'EUROPE'", "'AMERICA'"), ("LIMIT 100", "LIMIT 5")),
    "q03": (("= 'BUILDING'", "<> 'BUILDING'"), ("LIMIT 10", "LIMIT 3")),
    "q05": (("'ASIA'", "'AMERICA'"), ("1995-01-01", "1997-01-01")),
    "q07": (("'FRANCE'", "'PERU'"), ("'GERMANY'", "'IRAN'")),
    "q08": (("'BRAZIL'", "'PERU'"), ("p_type = 'ECONOMY ANODIZED STEEL'", "p_type LIKE 'ECONOMY%'")),
    "q10": (("LIMIT 20", "LIMIT 8"),),
    "q11": (("'GERMANY'", "'PERU'"), ("0.0001000000", "0.0100000000")),
    "q17": (("p_container = 'MED BOX'", "p_container <> 'MED BOX'"),),
    "q18": (("> 300", "> 180"), ("LIMIT 100", "LIMIT 10")),
    "q19": (
        ("= 'DELIVER IN PERSON'", "<> 'DELIVER IN PERSON'"),
        ("BETWEEN 1 AND 5", "BETWEEN 1 AND 50"),
        ("BETWEEN 1 AND 10", "BETWEEN 1 AND 50"),
        ("BETWEEN 1 AND 15", "BETWEEN 1 AND 50"),
        ("p_brand = 'Brand#12'", "p_brand <> 'Brand#12'"),
        ("p_brand = 'Brand#23'", "p_brand <> 'Brand#23'"),
        ("p_brand = 'Brand#34'", "p_brand <> 'Brand#34'"),
    ),
    "q20": (("'forest%'", "'%o%'"), ("'CANADA'", "'PERU'")),
    "q21": (("'SAUDI ARABIA'", "'PERU'"), ("LIMIT 100", "LIMIT 3")),
}


def names() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in FOLDER.glob("*.sql")))


def official(name: str) -> str:
    return (FOLDER / f"{name}.sql").read_text()


def small(name: str) -> str:
    """Return a query with parameters that select something of very little data."""
    return _replaced(official(name), PARAMETERS.get(name, ()))


def as_spark(name: str, sql: str) -> str:
    """Return the text that lets DuckDB compute what Spark computes of a query."""
    return _replaced(sql, AS_SPARK.get(name, ()))


def _replaced(text: str, changes: tuple[tuple[str, str], ...]) -> str:
    for old, new in changes:
        assert old in text, f"nothing to replace: {old}"
        text = text.replace(old, new)
    return text


def _whole(decimal: str, digits: int) -> str:
    return f"CAST(({decimal}) * {10**digits} AS BIGINT)"


def _divided(dividend: str, divisor: str) -> str:
    """Return a division of whole numbers that are not negative, to 6 digits, half up."""
    return f"((2000000 * {dividend} + {divisor}) DIV (2 * {divisor}) * CAST(0.000001 AS DECIMAL(7, 6)))"


def _average(column: str) -> str:
    return _divided(_whole(f"sum({column})", 2), f"(100 * count({column}))")


_PROMOTED = """sum(
        CASE WHEN p_type LIKE 'PROMO%' THEN
            l_extendedprice * (1 - l_discount)
        ELSE
            0
        END)"""
_OF_NATION = """sum(
        CASE WHEN nation = 'PERU' THEN
            volume
        ELSE
            0
        END)"""
_REVENUE = "sum(l_extendedprice * (1 - l_discount))"

AS_SPARK: dict[str, tuple[tuple[str, str], ...]] = {
    "q01": tuple((f"avg({c})", _average(c)) for c in ("l_quantity", "l_extendedprice", "l_discount")),
    "q02": (("p_partkey\nLIMIT", "p_partkey, p_mfgr, s_address, s_phone, s_comment\nLIMIT"),),
    "q03": (("o_orderdate\nLIMIT", "o_orderdate, l_orderkey, o_shippriority\nLIMIT"),),
    "q08": ((f"{_OF_NATION} / sum(volume)", _divided(_whole(_OF_NATION, 4), _whole("sum(volume)", 4))),),
    "q10": (("DESC\nLIMIT", "DESC, c_custkey, c_name, c_acctbal, n_name, c_address, c_phone, c_comment\nLIMIT"),),
    "q14": (
        (
            f"100.00 * {_PROMOTED} / {_REVENUE}",
            _divided(f"(100 * {_whole(_PROMOTED, 4)})", _whole(_REVENUE, 4)),
        ),
    ),
    "q17": (
        ("sum(l_extendedprice) / 7.0", _divided(_whole("sum(l_extendedprice)", 2), "700")),
        ("0.2 * avg(l_quantity)", "0.2 * CAST(avg(l_quantity) AS DECIMAL(19, 6))"),
    ),
    "q18": (("o_orderdate\nLIMIT", "o_orderdate, c_name, c_custkey, o_orderkey, sum_quantity\nLIMIT"),),
    "q22": (("avg(c_acctbal)", "CAST(avg(c_acctbal) AS DECIMAL(19, 6))"),),
}
"""Texts of queries and what DuckDB is told instead.

Rounding a double to 6 digits is right in comparisons: what is compared has 2 digits, and an average of fewer than
10,000 such numbers is either equal to it or further away than rounding moves it.
"""
