"""Paper 004's experiments, run: every algorithm on every view, views that grow, and random statistics.

What is chosen and how many sets are priced is the same on every machine; seconds are this machine's.
Searches that would take long are left out by their size, not by the clock: pricing every set above `MOST_SETS` of them,
greedy and three-step above `MOST_TABLES` that may be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from statistics import mean
from time import perf_counter

from headwater.advisor.algorithms.choice import Choice
from headwater.advisor.algorithms.choose import ALGORITHMS
from headwater.advisor.algorithms.exact import exact
from headwater.advisor.algorithms.three_step import in_three_steps
from headwater.advisor.candidates import search_space
from headwater.advisor.cost_model import CostModel
from headwater.advisor.structure import Structure
from headwater_lab.papers.random_statistics import with_random_statistics
from headwater_lab.papers.views import (
    SYNTHETIC,
    failing_views,
    high_profit,
    regular_view,
    synthetic_views,
    tpc_d_views,
)


def literal_three_step(model: CostModel) -> Choice:
    """Return what the three phases of Figure 4 leave as printed: phase 2 takes what makes the set dearer."""
    return in_three_steps(model, as_printed)


def as_printed(neither: float, lineage_view: float, split: float) -> int | None:
    """Phase 2 of Figure 4: `if cost1 ≥ cost2 > cost then LV else if cost2 > cost1 > cost then SLT`.

    >>> as_printed(10, 8, 9), as_printed(10, 12, 11), as_printed(10, 11, 12)
    (None, 0, 1)
    """
    if lineage_view >= split > neither:
        return 0
    if split > lineage_view > neither:
        return 1
    return None


MOST_SETS = 5_000
MOST_TABLES = 75

LITERAL = "three-step as printed"

ENTRANTS: Mapping[str, Callable[[CostModel], Choice]] = {**ALGORITHMS, LITERAL: literal_three_step}
"""What runs on every view that is small enough for it."""

GROWING = ("exhaustive", "greedy", "three-step", "exact")
"""What runs on views that grow."""

_RANDOM = ("three-step", LITERAL, "greedy", "combined", "naive", "none")
_COMPARED = ("exact", "greedy", "three-step", "naive", "none")
_GROUP_SIZES = (3, 10, 100, 1_000)
_RATIO = 10.0
"""Tracing queries per update, for views that grow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One algorithm on one view: how near it came to the best, what it chose, and what that took."""

    algorithm: str
    optimality: float
    kept: tuple[str, ...]
    moves: tuple[str, ...]
    priced_count: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The algorithms that ran on one view."""

    view: str
    levels: int
    fan_out: int
    set_count: int
    ran: tuple[Ran, ...]

    def has(self, algorithm: str) -> bool:
        """Tell whether an algorithm was run."""
        return any(one.algorithm == algorithm for one in self.ran)

    def of(self, algorithm: str) -> Ran:
        """Return how an algorithm did that was run."""
        return next(one for one in self.ran if one.algorithm == algorithm)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How near an algorithm came to the best over random statistics."""

    algorithm: str
    mean: float
    least: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceExperiments:
    """All of paper 004's experiments."""

    high_profit: Tried
    tpc_d: tuple[Tried, ...]
    synthetic: tuple[Tried, ...]
    failing: tuple[Tried, ...]
    by_fan_out: tuple[Tried, ...]
    by_levels: tuple[Tried, ...]
    by_group_size: tuple[tuple[int, tuple[Tried, ...]], ...]
    random: tuple[Spread, ...]
    random_count: int


def run_advice(
    *, most_fan_out: int = 9, most_levels: int = 8, random_count: int = 250, seed: int = 1, tell: Callable[[str], None]
) -> AdviceExperiments:
    """Run all experiments. `tell` is called with what is next."""

    def tried(views: Mapping[str, Structure]) -> tuple[Tried, ...]:
        return tuple(_try(name, structure, ENTRANTS, tell) for name, structure in views.items())

    def grown(shapes: Iterable[tuple[int, int]]) -> tuple[Tried, ...]:
        return tuple(
            _try(f"{levels} levels, fan-out {fan_out}", regular_view(levels, fan_out, _RATIO), GROWING, tell)
            for levels, fan_out in shapes
        )

    (example,) = tried({"HighProfit": high_profit()})
    tpc_d, synthetic, failing = (tried(views) for views in (tpc_d_views(), synthetic_views(), failing_views()))
    by_fan_out = grown((2, fan_out) for fan_out in range(1, most_fan_out + 1))
    by_levels = grown((levels, 2) for levels in range(1, most_levels + 1))
    by_group_size = tuple((rows, _with_groups_of(rows, tell)) for rows in _GROUP_SIZES)
    tell(f"{random_count} random statistics")
    return AdviceExperiments(
        high_profit=example,
        tpc_d=tpc_d,
        synthetic=synthetic,
        failing=failing,
        by_fan_out=by_fan_out,
        by_levels=by_levels,
        by_group_size=by_group_size,
        random=_over_random_statistics(random_count, seed),
        random_count=random_count,
    )


def _with_groups_of(rows: int, tell: Callable[[str], None]) -> tuple[Tried, ...]:
    """Return v1 to v5 with other groups: how much of what is found depends on statistics that were picked."""
    shapes = {name: shape for name, shape in SYNTHETIC.items() if shape[:2] == SYNTHETIC["v1"][:2]}
    return tuple(
        _try(f"{name}, groups of {rows}", regular_view(*shape, rows_per_group=rows), _COMPARED, tell)
        for name, shape in shapes.items()
    )


def _try(name: str, structure: Structure, algorithms: Iterable[str], tell: Callable[[str], None]) -> Tried:
    tell(name)
    best = exact(CostModel(structure))
    return Tried(
        view=name,
        levels=structure.levels,
        fan_out=max(segment.fan_out for segment in structure.segments),
        set_count=search_space(structure).size,
        ran=tuple(_run(algorithm, structure, best) for algorithm in algorithms if _is_small(algorithm, structure)),
    )


def _is_small(algorithm: str, structure: Structure) -> bool:
    """Tell whether an algorithm can be run on a view in seconds."""
    space = search_space(structure)
    if algorithm == "exhaustive":
        return space.size <= MOST_SETS
    return algorithm in {"exact", "naive", "none"} or len(space.candidates) <= MOST_TABLES


def _run(algorithm: str, structure: Structure, best: Choice) -> Ran:
    model = CostModel(structure)
    began = perf_counter()
    choice = ENTRANTS[algorithm](model)
    return Ran(
        algorithm=algorithm,
        seconds=perf_counter() - began,
        optimality=optimality(choice, best),
        kept=tuple(sorted(str(table) for table in choice.kept)),
        moves=tuple(str(move) for move in choice.moves),
        priced_count=choice.priced_count,
    )


def _over_random_statistics(count: int, seed: int) -> tuple[Spread, ...]:
    found: dict[str, list[float]] = {algorithm: [] for algorithm in _RANDOM}
    chance = Random(seed)  # noqa: S311 - a seed that can be given again is the point
    for _ in range(count):
        model = CostModel(with_random_statistics(high_profit(), chance))
        best = exact(model)
        for algorithm, values in found.items():
            values.append(optimality(ENTRANTS[algorithm](model), best))
    return tuple(Spread(algorithm=name, mean=mean(values), least=min(values)) for name, values in found.items())


def optimality(choice: Choice, best: Choice) -> float:
    """Return how near a choice comes to the cheapest set, which is 1: the best's cost through the choice's."""
    return best.total / choice.total if choice.total else 1.0
