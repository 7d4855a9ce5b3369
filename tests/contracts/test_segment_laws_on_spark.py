"""The laws of segments on the engine that warehouses run on: a sample of what the properties show in volume."""

from __future__ import annotations

from random import Random

import group_cases
import pytest
import regroup_cases
from pyspark.sql import SparkSession
from stamped_history import Run, random_history, run_on_duckdb

from headwater.deltas.on_spark import run_stamped


@pytest.fixture
def run(spark: SparkSession) -> Run:
    return lambda sql, tables: run_stamped(spark, sql, tables)


def test_oracle_groups_at_every_tick(run: Run) -> None:
    group_cases.check_many(run, range(12))


@pytest.mark.parametrize("case", range(len(regroup_cases.CASES)))
def test_oracle_regroups_at_every_tick(run: Run, case: int) -> None:
    regroup_cases.check_many(run, range(case, case + 1), tick_count=8)


@pytest.mark.parametrize("case", range(len(regroup_cases.CASES)))
def test_differential_whole_inputs_on_spark_and_duckdb(run: Run, case: int) -> None:
    segment = regroup_cases.CASES[case]
    rows = random_history(Random(case), 3).at(3)
    assert regroup_cases.recomputed(segment, rows, run) == regroup_cases.recomputed(segment, rows, run_on_duckdb)
