"""Sets of auxiliary tables, each in a warehouse of its own, side by side: what they cost over the same transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from pyspark.sql import SparkSession

from bench.setting import Setting, maintained, project
from bench.traces import draw_conditions, time_traces
from bench.worlds import World
from headwater.advisor.advice import Advice, AdvisedTable, Alternative
from headwater.advisor.apply_advice import apply_advice
from headwater.advisor.candidates import Kept
from headwater.lineage.result import TraceResult
from headwater.lineage.trace_view import trace_view
from headwater.project.file import load
from headwater.project.resolve import resolve_project
from headwater.warehouse.query import Warehouse

WARMING = 2
"""So many batches and traces come before those that are measured."""


@dataclass(frozen=True)
class Spent:
    """What a set costs: milliseconds to maintain a transaction, and to trace a row."""

    maintaining: float
    tracing: float

    def total(self, rate: float) -> float:
        """Return the milliseconds of a transaction, with the traces that come with it: `rate` with a hundred."""
        return self.maintaining + rate / 100 * self.tracing


@contextmanager
def keeping(spark: SparkSession, world: World, views: Mapping[str, str], view: str, kept: Kept) -> Iterator[Setting]:
    """Write a project as if a set had been advised for a view, and maintain it."""
    with project(world.urls, "probe", views) as said:
        apply_advice(said.folder, resolve_project(said, spark), (_advice(view, kept),))
        with maintained(spark, load(said.folder), world.urls) as place:
            yield place


def _advice(view: str, kept: Kept) -> Advice:
    tables = [
        AdvisedTable(kind=one.kind, of=one.of.removeprefix("segments."), stored_bytes=0, saved=0.0) for one in kept
    ]
    this = Alternative(tables=tuple(tables), maintaining=0.0, tracing=0.0, stored_bytes=0)
    return Advice(
        view=view,
        algorithm="",
        set_count=1,
        priced_count=0,
        recommended=this,
        today=this,
        nothing=this,
        everything=this,
        relations=(),
        traces_per_hour=0.0,
        is_traced=False,
    )


def measure(world: World, view: str, places: Mapping[Kept, Setting], batches: int, traces: int) -> dict[Kept, Spent]:
    """Let all maintain the same batches and trace the same rows, in turn."""
    write_and_maintain(world, places, WARMING)
    maintaining = write_and_maintain(world, places, batches)
    tracing = _trace(view, places, WARMING + traces)
    return {
        kept: Spent(maintaining=1000 * median(maintaining[kept]), tracing=1000 * median(tracing[kept][WARMING:]))
        for kept in places
    }


def write_and_maintain(world: World, places: Mapping[Kept, Setting], batches: int) -> dict[Kept, list[float]]:
    """Write batches, and let every place maintain each; return the seconds for a transaction."""
    seconds: dict[Kept, list[float]] = {kept: [] for kept in places}
    for number in range(batches):
        count = world.write()
        for place in places.values():
            place.catch_up()
        for kept, place in _in_turn(places, number):
            started = time.perf_counter()
            place.maintain()
            seconds[kept].append((time.perf_counter() - started) / count)
    return seconds


def _trace(view: str, places: Mapping[Kept, Setting], count: int) -> dict[Kept, list[float]]:
    seconds: dict[Kept, list[float]] = {kept: [] for kept in places}
    for number, condition in enumerate(_conditions(next(iter(places.values())), view, count)):
        for kept, place in _in_turn(places, number):

            def trace(where: str, place: Setting = place) -> TraceResult:
                return trace_view(place.spark, place.resolved, view, where=where, at=None, whole_rows=False)

            [timed] = time_traces(trace, [condition])
            seconds[kept].append(timed.seconds)
    return seconds


def _conditions(place: Setting, view: str, count: int) -> list[str]:
    """Return conditions for rows of the view; where it has few, some come again."""
    warehouse = Warehouse.open(str(place.resolved.project.warehouse))
    rows = warehouse.view_dataframe(place.spark, view, warehouse.frontier(view)).toArrow()
    assert rows.num_rows, f"{view} has a row to trace"
    return (draw_conditions(rows, count) * count)[:count]


def _in_turn(places: Mapping[Kept, Setting], number: int) -> Sequence[tuple[Kept, Setting]]:
    """Return the places, another one first every time."""
    listed = list(places.items())
    first = number % len(listed)
    return [*listed[first:], *listed[:first]]
