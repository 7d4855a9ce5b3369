"""What the compiler makes of each construct, on Spark: its types are Spark's, and its rows are the original's."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest
from in_duckdb import relation
from pyspark.sql import SparkSession
from random_views import RELATIONS, Chance

from headwater.relation import RelationName
from headwater.runtime.spark_types import SelectTypes
from headwater.views.compile import compile_view
from headwater.views.law import renamed_sql
from headwater.views.whole import whole_sql

FILE = Path(__file__).parents[1] / "unit" / "views" / "compile" / "constructs.sql"
CONSTRUCTS = re.findall(r"^-- (.+): .+\n(.+);$", FILE.read_text(), re.MULTILINE)
CATALOG = {
    each.name: each
    for each in (
        relation("a", "r", x="int", y="int", z="int"),
        relation("a", "s", x="int", w="int"),
        relation("b", "t", y="int", w="int", k="int"),
        relation("b", "u", key=("id",), id="int!", x="int"),
    )
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[RelationName, str]:
    rows = Chance(random=random.Random(10)).rows()
    named = {}
    for name in CATALOG:
        columns = ", ".join(f"{column} int" for column in RELATIONS[str(name)])
        named[name] = f"compiled_{name.name}"
        spark.createDataFrame(rows[name], columns).createOrReplaceTempView(named[name])
    return named


@pytest.mark.parametrize("sql", [sql for _, sql in CONSTRUCTS], ids=[name for name, _ in CONSTRUCTS])
def test_oracle_segments_give_what_the_original_gives(
    sql: str, spark: SparkSession, tables: dict[RelationName, str]
) -> None:
    view = compile_view("v", sql, CATALOG, SelectTypes(spark=spark, view="v").columns)
    placed = dict(tables)
    for number, segment in enumerate(view.segments):
        frame = spark.sql(whole_sql(segment, placed))
        types = [(field.name, field.dataType.simpleString()) for field in frame.schema]
        assert types == [(column.name, column.type) for column in segment.relation.columns]
        placed[segment.name] = f"compiled_segment{number}"
        frame.createOrReplaceTempView(placed[segment.name])
    original = spark.sql(renamed_sql(sql, tables))
    assert types == [(field.name, field.dataType.simpleString()) for field in original.schema]
    assert Counter(map(tuple, frame.collect())) == Counter(map(tuple, original.collect()))
