"""The laws of segments on the engine that warehouses run on: a sample of what the properties show in volume."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from stamped_history import Run
from test_group_law import check_many as check_many_groups

from headwater.deltas.on_spark import run_stamped


@pytest.fixture
def run(spark: SparkSession) -> Run:
    return lambda sql, tables: run_stamped(spark, sql, tables)


def test_oracle_groups_at_every_tick(run: Run) -> None:
    check_many_groups(run, range(12))
