"""Every algorithm by its name, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwater.advisor.algorithms.choice import Choice
from headwater.advisor.algorithms.combined import combined
from headwater.advisor.algorithms.exact import exact
from headwater.advisor.algorithms.exhaustive import exhaustive
from headwater.advisor.algorithms.greedy import greedy
from headwater.advisor.algorithms.naive import naive
from headwater.advisor.algorithms.none import none
from headwater.advisor.algorithms.three_step import three_step
from headwater.advisor.cost_model import CostModel

ALGORITHMS: Mapping[str, Callable[[CostModel], Choice]] = {
    "exact": exact,
    "exhaustive": exhaustive,
    "greedy": greedy,
    "three-step": three_step,
    "combined": combined,
    "naive": naive,
    "none": none,
}


def optimality(choice: Choice, best: Choice) -> float:
    """Return how near a choice comes to the cheapest set, which is 1: the best's cost through the choice's."""
    return best.total / choice.total if choice.total else 1.0
