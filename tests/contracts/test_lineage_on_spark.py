"""Tracing on Spark gives what it gives in DuckDB, for every construct of interest."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from lineage_cases import InMemory, counted, lineage_by_row, new_world
from pyspark.sql import SparkSession
from random_views import Chance
from stamped_history import run_on_duckdb
from volume import THOROUGH

from headwater.deltas.on_spark import run_stamped
from headwater.engine.state.tick_lookup import Run
from headwater.lineage.trace import trace
from headwater.model.relation import COUNT, TICK, RelationName
from headwater.spark.types import SelectTypes
from headwater.views.compile.compile_view import compile_view
from headwater.views.steps.segments import SegmentedView

FILE = Path(__file__).parents[1] / "unit" / "views" / "compile" / "constructs.sql"
CONSTRUCTS = dict(re.findall(r"^-- (.+): .+\n(.+);$", FILE.read_text(), re.MULTILINE))
QUICK = ("group", "extremes", "not exists", "left join, any condition", "except")
EVERY = [name for name in CONSTRUCTS if name != "exists at all" and not name.endswith("after the list")]
"""All but the one that has no row here, and those that DuckDB does not parse."""
ROWS = Chance(random=random.Random(10)).rows()
CATALOG = new_world().catalog


@pytest.mark.parametrize("name", EVERY if THOROUGH else QUICK)
def test_differential_spark_and_duckdb_trace_the_same(name: str, spark: SparkSession) -> None:
    view = compile_view("v", CONSTRUCTS[name], CATALOG, SelectTypes(spark=spark, view="v").columns)
    selected = state(view, CONSTRUCTS[name])
    assert selected.num_rows
    reading = {relation: counted(CATALOG[relation], rows) for relation, rows in ROWS.items()}
    on_spark = traced(view, selected, reading, partial(run_stamped, spark))
    assert on_spark == traced(view, selected, reading, run_on_duckdb)
    assert any(on_spark)


def state(view: SegmentedView, sql: str) -> pa.Table:
    """Return the different rows of a view, in its types."""
    world = new_world()
    world.fill(ROWS)
    schema = view.output.relation.arrow_schema()
    rows = list(world.original(sql))
    return pa.table(
        [pa.array([row[n] for row in rows]).cast(held.type) for n, held in enumerate(schema)], schema=schema
    )


def traced(
    view: SegmentedView, selected: pa.Table, reading: Mapping[RelationName, pa.Table], run: Run
) -> list[set[object]]:
    wanted = {relation: CATALOG[relation].column_names for relation in view.relations}
    held = InMemory(reading)
    found = trace(view, selected, held, run, wanted, held.cost)
    assert all({TICK, COUNT} & set(one.rows.column_names) == {COUNT} for one in found)
    return lineage_by_row(found, selected.num_rows)
