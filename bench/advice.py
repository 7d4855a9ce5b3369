"""`python -m bench.advice`: is what the advisor prefers really the cheapest?

For each view and each rate of traces, what the advisor prefers to keep is kept, and measured against nothing,
everything, group tables alone (which is what the advisor sees when it is asked) and sets drawn at random. All sets
have a warehouse of their own, side by side: they maintain the same transactions, batch by batch, in turn, and trace the
same rows. What is compared is what the cost model adds up, in measured milliseconds: maintaining a transaction, and as
many traces as come with it. Writes bench/results/advice.md.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from pyspark.sql import SparkSession

from bench.kept_sets import WARMING, Spent, keeping, measure, write_and_maintain
from bench.report import Report
from bench.setting import Setting, setting
from bench.tracing import VIEW as GOOD_CUSTOMERS
from bench.worlds import World, store_world, tpch_world
from headwater.advisor.advise import cost_model
from headwater.advisor.algorithms.choose import naive
from headwater.advisor.algorithms.exact import exact
from headwater.advisor.candidates import NOTHING, AuxiliaryKind, Kept, SearchSpace, search_space
from headwater.advisor.cost_model import CostModel
from headwater.advisor.measure_view import TraceRate, measure_sources, measure_view, recent_ticks
from headwater.views.steps.keep_lineage import without_lineage
from headwater.warehouse.query import Warehouse

STORE = ("high_profit", "store_profits", "away_sales")
TPCH = ("good_customers", "q03", "q05", "q10", "q12")
BELOW = {"high_profit": ("store_profits",)}
"""Views that others read."""
RATES = (1, 10, 100)
"""Traces for a hundred transactions."""
RANDOM_SETS = 2
NEAR = 1.2
COLUMNS = (
    "view",
    "traces / 100 transactions",
    "preferred",
    "ms",
    "cheapest measured",
    "ms",
    "preferred ×",
    "nothing ×",
    "everything ×",
    "random ×",
)


@dataclass(frozen=True)
class Prediction:
    """What the advisor goes by, at one rate of traces."""

    model: CostModel
    transactions_per_hour: float

    def of(self, kept: Kept) -> Spent:
        """Return what a set is expected to cost."""
        cost = self.model.cost(kept)
        traces = self.model.structure.usage.query_rate
        return Spent(maintaining=cost.maintaining / self.transactions_per_hour, tracing=cost.tracing / traces)


@dataclass(frozen=True)
class Case:
    """A view at one rate of traces: what the advisor prefers, and what every set costs."""

    view: str
    rate: float
    preferred: Kept
    measured: Mapping[Kept, Spent]

    @property
    def cheapest(self) -> Kept:
        return min(self.measured, key=lambda kept: self.measured[kept].total(self.rate))

    def factor(self, kept: Kept) -> float:
        """Return how many times as much as the cheapest a set costs."""
        return self.measured[kept].total(self.rate) / self.measured[self.cheapest].total(self.rate)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.advice", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.01, help="TPC-H scale factor")
    parser.add_argument("--views", nargs="+", default=[*STORE, *TPCH])
    parser.add_argument("--batches", type=int, default=5, help="that are measured; before, two are for warming up")
    parser.add_argument("--traces", type=int, default=4, help="that are measured; before, two are for warming up")
    options = parser.parse_args()
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "6g")

    from headwater.spark.session import spark_session  # noqa: PLC0415 - after the memory is set

    spark = spark_session()
    report = Report("advice.md")
    report.begin("What the advisor prefers, measured", spark, f"TPC-H at scale factor {options.scale:g}.")
    report.table(*COLUMNS)
    cases: list[Case] = []
    for world, names in ((store_world(), STORE), (tpch_world(options.scale), TPCH)):
        chosen = [name for name in names if name in options.views]
        if not chosen:
            continue
        with world as there:
            for name in chosen:
                cases += _cases(report, spark, there, name, options)
    _conclude(report, cases)
    report.write()


def _cases(report: Report, spark: SparkSession, world: World, view: str, options: argparse.Namespace) -> list[Case]:
    """Measure one view with several sets of tables, and say how the preferred ones do."""
    texts = {"good_customers": GOOD_CUSTOMERS, **world.texts}
    views = {name: texts[name] for name in (*BELOW.get(view, ()), view)}
    with ExitStack() as stack:
        today = stack.enter_context(setting(spark, world.urls, "probe", views))
        write_and_maintain(world, {NOTHING: today}, WARMING)
        predicted = {rate: _predict(today, view, rate) for rate in RATES}
        preferred = {rate: exact(one.model).kept for rate, one in predicted.items()}
        everything = naive(predicted[RATES[0]].model).kept
        space = search_space(predicted[RATES[0]].model.structure)
        group_tables = frozenset(one for one in space.candidates if one.kind is AuxiliaryKind.GROUP_TABLE)
        places = {group_tables: today}
        for kept in (*preferred.values(), NOTHING, everything, *_drawn(space)):
            if kept not in places:
                places[kept] = stack.enter_context(keeping(spark, world, views, view, kept))
        for place in places.values():
            place.maintainer.upkeep.stop()  # it rolls when it likes, in the middle of what is measured
        measured = measure(world, view, places, options.batches, options.traces)
    for kept, found in measured.items():
        print(_details(kept, space, found, predicted[RATES[-1]]), flush=True)
    cases = [Case(view=view, rate=rate, preferred=preferred[rate], measured=measured) for rate in RATES]
    for case in cases:
        report.row(*_cells(case, space, everything))
    return cases


def _predict(place: Setting, view: str, rate: float) -> Prediction:
    """Return the cost model of a view that is traced so often."""
    warehouse = Warehouse.open(str(place.resolved.project.warehouse))
    per_hour = recent_ticks(warehouse.log).per_hour
    known = place.resolved.views[view].view
    traced = TraceRate(per_hour=rate / 100 * per_hour, is_counted=True)
    measured = measure_view(
        warehouse,
        without_lineage(known),
        measure_sources(place.resolved),
        traced,
        sys.maxsize,
    )
    return Prediction(model=cost_model(known, measured), transactions_per_hour=per_hour)


def _drawn(space: SearchSpace) -> Iterator[Kept]:
    """Yield sets drawn at random."""
    drawn = random.Random(5)
    for _ in range(RANDOM_SETS):
        picked = [drawn.choice((None, *choice)) for choice in space.choices]
        yield frozenset(one for one in picked if one is not None)


def _shown(kept: Kept, space: SearchSpace) -> str:
    """Return a set of tables for a person; joins are numbered from the view down."""
    joins = {choice[0].of: f"join {number}" for number, choice in enumerate(space.lineage_choices, start=1)}
    names = [f"{one.kind.value} {joins.get(one.of, one.of.split('.')[-1])}" for one in kept]
    return ", ".join(sorted(names)) or "nothing"


def _details(kept: Kept, space: SearchSpace, measured: Spent, prediction: Prediction) -> str:
    expected = prediction.of(kept)
    return (
        f"    {_shown(kept, space)}: maintaining {measured.maintaining:.1f} ms a transaction (predicted "
        f"{expected.maintaining:.1f}), tracing {measured.tracing:.0f} ms a row (predicted {expected.tracing:.0f})"
    )


def _cells(case: Case, space: SearchSpace, everything: Kept) -> tuple[str, ...]:
    known = {NOTHING, everything, case.preferred}
    drawn = [case.factor(kept) for kept in case.measured if kept not in known]
    return (
        case.view,
        f"{case.rate:g}",
        _shown(case.preferred, space),
        f"{case.measured[case.preferred].total(case.rate):.1f}",
        _shown(case.cheapest, space),
        f"{case.measured[case.cheapest].total(case.rate):.1f}",
        f"{case.factor(case.preferred):.2f}",
        f"{case.factor(NOTHING):.2f}",
        f"{case.factor(everything):.2f}",
        f"{min(drawn):.2f}–{max(drawn):.2f}" if drawn else "–",
    )


def _conclude(report: Report, cases: Sequence[Case]) -> None:
    factors = sorted(case.factor(case.preferred) for case in cases)
    cheapest = sum(case.preferred == case.cheapest for case in cases)
    near = sum(factor <= NEAR for factor in factors)
    report.say()
    report.say(
        f"Of {len(cases)} cases the preferred set was the cheapest measured in {cheapest}, and within {NEAR} × of it "
        f"in {near}; at the median {median(factors):.2f} ×, at the most {factors[-1]:.2f} ×."
    )


if __name__ == "__main__":
    main()
