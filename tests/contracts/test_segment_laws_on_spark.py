"""The laws of segments on the engine that warehouses run on: a sample of what the properties show in volume."""

from __future__ import annotations

from collections import Counter
from random import Random

import group_cases
import pytest
import regroup_cases
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from stamped_history import Run, counted, random_history, run_on_duckdb, stamped

from headwater.deltas.on_spark import run_stamped
from headwater.spark.view_errors import is_view_error
from headwater.views.laws.group import group_law_sql


@pytest.fixture
def run(spark: SparkSession) -> Run:
    return lambda sql, tables: run_stamped(spark, sql, tables)


def test_oracle_groups_at_every_tick(run: Run) -> None:
    group_cases.check_many(run, range(12))


def test_a_total_that_does_not_fit_is_an_error_in_the_data(run: Run) -> None:
    step, relation = group_cases.group(("k",), ("x",))
    changes = stamped([(1, None, 5, None, None, None, 1, 2**62)])
    with pytest.raises(PySparkException) as raised:
        run(
            group_law_sql(step, relation, "changes", "old_rows"),
            {"changes": changes, "old_rows": counted(Counter(), relation)},
        )
    assert is_view_error(raised.value)


@pytest.mark.parametrize("case", range(len(regroup_cases.CASES)))
def test_oracle_regroups_at_every_tick(run: Run, case: int) -> None:
    regroup_cases.check_many("regroup", run, range(case, case + 1), tick_count=8)


def test_oracle_extremes_at_every_tick(run: Run) -> None:
    regroup_cases.check_many("extremes", run, range(4), tick_count=8)


@pytest.mark.parametrize("case", range(len(regroup_cases.CASES)))
def test_differential_whole_inputs_on_spark_and_duckdb(run: Run, case: int) -> None:
    segment = regroup_cases.CASES[case]
    rows = random_history(Random(case), 3).at(3)
    assert regroup_cases.recomputed(segment, rows, run) == regroup_cases.recomputed(segment, rows, run_on_duckdb)
