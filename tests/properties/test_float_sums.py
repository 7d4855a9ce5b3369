"""Sums of doubles: the same for the same rows, whatever their order and whatever happened before."""

from __future__ import annotations

import math
import statistics
from random import Random

import pytest
from float_cases import check_history, summed
from stamped_history import run_on_duckdb


@pytest.mark.parametrize("seed", range(20))
def test_any_order_gives_the_same(seed: int) -> None:
    random = Random(seed)
    values = [
        random.choice((None, 0.1, -0.3, 1e16, -1e16, random.gauss(0, 1e6))) for _ in range(random.randint(0, 200))
    ]
    first = summed(values, run_on_duckdb)
    random.shuffle(values)
    assert summed(values, run_on_duckdb) == first


def test_values_are_near_the_true_ones() -> None:
    random = Random(1)
    values = [random.gauss(100, 15) for _ in range(1000)]
    total, average, variance, deviation = summed([*values, None], run_on_duckdb)
    assert total == pytest.approx(math.fsum(values), rel=1e-13)
    assert average == pytest.approx(statistics.fmean(values), rel=1e-13)
    assert variance == pytest.approx(statistics.pvariance(values), rel=1e-9)
    assert deviation == pytest.approx(statistics.stdev(values), rel=1e-9)


def test_few_values() -> None:
    assert summed([], run_on_duckdb) == (None, None, None, None)
    assert summed([None], run_on_duckdb) == (None, None, None, None)
    assert summed([2.5], run_on_duckdb) == (2.5, 2.5, 0.0, None)


def test_no_drift_after_many_changes_and_back() -> None:
    """A kept running total of the same changes is off by more than the sum itself."""
    random = Random(2)
    values = [random.uniform(-1, 1) for _ in range(50)]
    noise = [random.uniform(-1e12, 1e12) for _ in range(10_000)]
    running = math.fsum(values)
    for value in noise:
        running += value
    random.shuffle(noise)
    for value in noise:
        running -= value
    assert running != pytest.approx(math.fsum(values), rel=1e-3)
    assert summed(values, run_on_duckdb)[0] == pytest.approx(math.fsum(values), rel=1e-13)


@pytest.mark.parametrize("seed", range(10))
def test_oracle_every_tick(seed: int) -> None:
    check_history(Random(seed), run_on_duckdb)


def test_infinities_and_nan() -> None:
    for values, total in (([math.inf, 1.0], math.inf), ([1.0, -math.inf], -math.inf)):
        assert summed(values, run_on_duckdb)[0] == total
    for values in ([math.inf, -math.inf], [1.0, math.nan]):
        assert math.isnan(summed(values, run_on_duckdb)[0] or 0.0)
