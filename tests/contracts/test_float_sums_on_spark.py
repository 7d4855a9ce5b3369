"""Sums and moments of doubles on Spark: by their values alone, whatever came and went; the judge takes fractions."""

from __future__ import annotations

import math
from inspect import signature
from random import Random
from struct import unpack

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from in_duckdb import relation
from pyspark.sql import SparkSession
from sqlglot import exp
from ticking import check_every_tick, random_story
from volume import volume

from headwater.deltas.compare import Row
from headwater.deltas.on_spark import to_arrow, to_dataframe
from headwater.judge.exact_sum import EXACT, exact_average, exact_sum
from headwater.model.relation import RelationName
from headwater.views.laws.float_sums import amount_text, place_text, sum_of_parts, sum_of_values
from headwater.views.laws.moments import MOMENTS, moment_of_values
from headwater.views.steps.recompute_step import RecomputeStep
from headwater.views.text.spark_text import spark_text

SPECIAL = (
    0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308,
    -1.7976931348623157e308, 1e308, -1e308, 1.0, -1.0, 0.1, 1 + 2**-52, 2.0**53, 2.0**-981, 2.0**-982, 2.0**1023,
    3.14, -2.5e-310, 1e16, -1e16, 1e-16, 123456.78,
)  # fmt: skip
WEIRD = (math.nan, math.inf, -math.inf)


def any_double(random: Random) -> float:
    """Return a double of any size: any bits but those of NaN and infinities."""
    value = math.nan
    while not math.isfinite(value):
        [value] = unpack("<d", random.randbytes(8))
    return value


def values_of(random: Random) -> list[float | None]:
    """Return values that cancel, round, overflow and underflow."""
    kind = random.choice(("special", "any", "near", "money", "weird"))
    count = random.choice((1, 2, 3, 8, 40))
    if kind == "near":
        size = random.randint(-1074, 960)
        return [
            math.ldexp(random.getrandbits(53), size + random.randint(0, 10)) * random.choice((1, -1))
            for _ in range(count)
        ]
    if kind == "money":
        return [round(random.uniform(-1000, 1000), 2) for _ in range(count)]
    chosen = [random.choice(SPECIAL) if kind != "any" else any_double(random) for _ in range(count)]
    found: list[float | None] = [*chosen, *(-value for value in chosen if random.random() < 0.6)]
    found += [random.choice(SPECIAL)] + [None] * random.choice((0, 1))
    return found + (random.choices(WEIRD, k=random.choice((1, 2))) if kind == "weird" else [])


def same(left: float | None, right: float | None) -> bool:
    if left is None or right is None or math.isnan(left) or math.isnan(right):
        return (left is None) is (right is None) and (left is None or math.isnan(left) is math.isnan(right))
    return left == right


def test_oracle_sums_of_values_and_of_parts(spark: SparkSession) -> None:
    random = Random(1)
    groups = {k: values_of(random) for k in range(volume(600, 20_000))}
    groups |= {
        -1 - k: [math.ldexp(1, power), math.ldexp(-1, power - 54)] for k, power in enumerate(range(-1020, 1024, 7))
    }
    groups[10**9] = [None, None]
    table = pa.table(
        {"k": [k for k, held in groups.items() for _ in held], "x": [x for held in groups.values() for x in held]}
    )
    to_dataframe(spark, table.set_column(1, "x", table["x"].cast(pa.float64()))).createOrReplaceTempView("float_values")
    parts = (
        f"SELECT k, {place_text('x')} AS place, CAST(SUM({amount_text('x')}) AS DECIMAL(38, 0)) AS amount "
        "FROM float_values GROUP BY ALL"
    )
    put = f"SELECT k, {sum_of_parts('place', 'amount')} AS s FROM ({parts}) GROUP BY k"
    direct = (
        f"SELECT k, {sum_of_values('x')} AS s, {sum_of_values('x', is_average=True)} AS a FROM float_values GROUP BY k"
    )
    found = to_arrow(spark.sql(f"SELECT k, p.s AS s, d.s AS t, d.a AS a FROM ({put}) p JOIN ({direct}) d USING (k)"))
    assert len(found) == len(groups)
    for one in found.to_pylist():
        held = groups[one["k"]]
        assert same(one["s"], exact_sum(held)), (held, one)
        assert same(one["t"], exact_sum(held)), (held, one)
        assert same(one["a"], exact_average(held)), (held, one)


@pytest.mark.parametrize(
    "function",
    [one if one in (exp.Corr, exp.Kurtosis) else pytest.param(one, marks=pytest.mark.thorough) for one in MOMENTS],
)
def test_oracle_moments_of_values(function: type[exp.Expr], spark: SparkSession) -> None:
    random = Random(3)
    groups = [[(x, random.choice((x, *SPECIAL, None))) for x in values_of(random)] for _ in range(volume(100, 5_000))]
    groups.append([(1e9 + value, value) for value in (1.0, 2.0, 3.5)])
    rows = [(k, x, y) for k, held in enumerate(groups) for x, y in held]
    schema = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("y", pa.float64())])
    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=schema)
    to_dataframe(spark, table).createOrReplaceTempView("moment_values")
    names = "xy"[: len(signature(EXACT[function]).parameters)]
    text = moment_of_values(function, names, is_distinct=False)
    found = to_arrow(spark.sql(f"SELECT k, {text} AS value FROM moment_values GROUP BY k"))
    assert len(found) == len(groups)
    for one in found.to_pylist():
        held = groups[one["k"]]
        right = EXACT[function](*list(zip(*held, strict=True))[: len(names)])
        assert same(one["value"], right), (held, one, right)
    own = spark_text(function(**dict(zip(("this", "expression"), map(exp.column, names), strict=False))))
    [near] = to_arrow(spark.sql(f"SELECT {own} AS value FROM moment_values WHERE k = {len(groups) - 1}")).to_pylist()
    [value] = [one["value"] for one in found.to_pylist() if one["k"] == len(groups) - 1]
    assert value == pytest.approx(near["value"]), "what Spark says, but for the last digits"


def test_a_million_changes_and_back(spark: SparkSession) -> None:
    """What is kept per place is the same as before; a running sum of doubles is not."""
    count = volume(100_000, 1_000_000)
    random = Random(2)
    kept = [0.1, 0.2, 0.3, 1e16, 1e-9]
    came = [random.uniform(-1, 1) * 10.0 ** random.randint(-5, 20) for _ in range(count)]
    values = pa.array([*kept, *came, *came])
    counts = pa.array([1] * (len(kept) + count) + [-1] * count)
    to_dataframe(spark, pa.table({"x": values, "n": counts})).createOrReplaceTempView("float_changes")
    parts = (
        f"SELECT {place_text('x')} AS place, SUM({amount_text('x')} * CAST(n AS DECIMAL(10, 0))) AS amount "
        "FROM float_changes GROUP BY ALL"
    )
    found = to_arrow(spark.sql(f"SELECT {sum_of_parts('place', 'amount')} AS s FROM ({parts})"))["s"].to_pylist()
    assert found == [math.fsum(kept)]
    assert pc.sum(pc.multiply(values, counts.cast(pa.float64()))).as_py() != found[0]


D = relation("a", "d", k="int", x="double", y="float")
E = relation("a", "e", k="int", w="double")
VIEWS = {
    "sums": "SELECT k, SUM(x) AS s, AVG(y) AS m, COUNT(*) AS n, MAX(x) AS h FROM a.d GROUP BY k",
    "one sum": "SELECT SUM(x * 2) AS s FROM a.d",
    "filter": "SELECT k, SUM(x) FILTER (WHERE y > 0) AS s FROM a.d GROUP BY k",
    "having": "SELECT k FROM a.d GROUP BY k HAVING SUM(x) > 0",
    "distinct": "SELECT k, SUM(DISTINCT x) AS s, AVG(DISTINCT y) AS m, SUM(x) AS t FROM a.d GROUP BY k",
    "beside a median": "SELECT k, MEDIAN(k) AS v, AVG(x) AS m FROM a.d GROUP BY k",
    "window": "SELECT k, x, SUM(x) OVER (PARTITION BY k) AS s, AVG(y) OVER (PARTITION BY k ORDER BY x) AS m FROM a.d",
    "linked": "SELECT k, w FROM a.e WHERE w < (SELECT SUM(x) FROM a.d WHERE d.k = e.k)",
    "sums of sums": "SELECT SUM(s) AS t, AVG(s) AS m FROM (SELECT k, SUM(x) AS s FROM a.d GROUP BY k) q",
    "joined": "SELECT e.k, SUM(d.x * e.w) AS s FROM a.d JOIN a.e ON d.k = e.k GROUP BY e.k",
    "rollup": "SELECT k, SUM(x) AS s FROM a.d GROUP BY ROLLUP (k)",
    "moments": "SELECT k, STDDEV(x) AS s, VAR_POP(y) AS v, CORR(x, y) AS c, COUNT(*) AS n FROM a.d GROUP BY k",
    "shapes": "SELECT SKEWNESS(x) AS s, KURTOSIS(y) AS u, VAR_SAMP(DISTINCT k) AS v FROM a.d",
    "moments of some": "SELECT k, COVAR_SAMP(x, y) FILTER (WHERE y > 0) AS c, SUM(x) AS s FROM a.d GROUP BY k",
    "moving moments": "SELECT k, x, STDDEV_POP(y) OVER (PARTITION BY k ORDER BY x) AS s FROM a.d",
    "moments recomputed": "SELECT STDDEV(x) AS s FROM a.d JOIN VALUES (1), (2) AS few(n) ON d.k = few.n",
    "recomputed": "SELECT k, SUM(x) AS s FROM a.d JOIN VALUES (1), (2) AS few(n) ON d.k = few.n GROUP BY k",
}

QUICK = ("joined", "moments", "recomputed")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough) for name in VIEWS]
)
def test_oracle_every_tick(name: str, spark: SparkSession) -> None:
    random = Random(name)

    def row(named: RelationName) -> Row:
        number = random.choice((None, *SPECIAL, *WEIRD, 0.1, 0.2, 0.3, 0.7))
        small = random.choice((None, 0.5, 1.25, -3.0, math.inf))
        return (random.choice((1, 2, None)), number, *([small] if named == D.name else []))

    relations = {D.name: D, E.name: E}
    before = {named: [row(named) for _ in range(6)] for named in relations}
    view = check_every_tick(spark, VIEWS[name], random_story(relations, before, random, row, 5), [(0, 3), (3, 5)])
    assert any(isinstance(segment.step, RecomputeStep) for segment in view.segments) is ("recomputed" in name)
