"""Rows of a view to trace, and traces of them, timed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headwater.lineage.result import TraceResult
from headwater.views.text.spark_text import spark_text


@dataclass(frozen=True)
class TimedTrace:
    """A trace, and the seconds it took."""

    seconds: float
    result: TraceResult

    @property
    def source_rows(self) -> int:
        return sum(one.rows.num_rows for one in self.result.relations)


def draw_conditions(rows: pa.Table, count: int, seed: int = 3) -> list[str]:
    """Return conditions for single rows of a view, drawn alike in whatever order its rows come."""
    exact = [field.name for field in rows.schema if not pa.types.is_floating(field.type)]
    every = sorted(rows.select(exact).to_pylist(), key=repr)
    return [_condition(row) for row in random.Random(seed).sample(every, min(count, len(every)))]


def _condition(row: dict[str, object]) -> str:
    """Return what is true for a row, whatever it holds.

    >>> _condition({"city": "Bo's", "sold": None})
    "`city` <=> 'Bo\\\\'s' AND `sold` <=> NULL"
    """
    same = [exp.NullSafeEQ(this=exp.column(name, quoted=True), expression=exp.convert(row[name])) for name in row]
    return spark_text(exp.and_(*same))


def time_traces(trace: Callable[[str], TraceResult], conditions: Sequence[str]) -> list[TimedTrace]:
    """Trace the row of each condition, one after the other."""
    found = []
    for condition in conditions:
        started = time.perf_counter()
        result = trace(condition)
        found.append(TimedTrace(time.perf_counter() - started, result))
    return found
