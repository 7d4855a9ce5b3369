"""Sums of doubles over given values, and as a regroup over random histories."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pyarrow as pa
from regroup_cases import check, regroup
from stamped_history import Run, random_history

from headwater.views.float_sums import float_average, float_sum, population_variance, sample_deviation
from headwater.views.regroup_law import regroup_law_sql
from headwater.views.segments import Aggregates
from headwater.views.whole import aggregates_sql

EXPRESSIONS = (
    ("total", float_sum("x")),
    ("average", float_average("x")),
    ("variance", population_variance("x")),
    ("deviation", sample_deviation("x")),
)


def given(values: Sequence[float | None]) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.float64())})


def summed(values: Sequence[float | None], run: Run) -> tuple[float | None, ...]:
    """Return the sum, the average, the variance and the deviation of values."""
    [row] = run(aggregates_sql(Aggregates(outputs=EXPRESSIONS), (), "given"), {"given": given(values)}).to_pylist()
    return tuple(row.values())


OF_A_HISTORY = Aggregates(
    outputs=(
        ("total", float_sum("f")),
        ("average", float_average("CASE WHEN x > 0 THEN f END")),
        ("deviation", sample_deviation("f")),
    )
)


def check_history(random: Random, run: Run) -> None:
    """Check a regroup by sums of doubles at every tick of a random history."""
    for keys in ((), ("k",)):
        segment = regroup(keys, OF_A_HISTORY, total="double", average="double", deviation="double")
        check(random_history(random, 8), segment, random, run, regroup_law_sql)
