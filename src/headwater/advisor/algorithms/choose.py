"""Every algorithm by its name, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwater.advisor.algorithms.choice import Choice, Pricing
from headwater.advisor.algorithms.exact import exact
from headwater.advisor.algorithms.greedy import greedy
from headwater.advisor.algorithms.three_step import combined, three_step
from headwater.advisor.candidates import NOTHING, search_space
from headwater.advisor.cost_model import CostModel
from headwater.errors import HeadwaterError

MOST_SETS = 1_000_000
"""How many sets are priced at most: minutes, in which `exact` has long answered."""


def exhaustive(model: CostModel) -> Choice:
    """Return the cheapest set of all."""
    space = search_space(model.structure)
    if space.size > MOST_SETS:
        raise HeadwaterError(
            f'cannot price every set of auxiliary tables for view "{model.structure.top.name}"',
            code="HW-730",
            detail=f"there are {space.size:,} of them, and {MOST_SETS:,} is the most",
            hint="take the algorithm `exact`, which finds a cheapest set without pricing them all",
        )
    total, _, kept = min((model.total(kept), number, kept) for number, kept in enumerate(space.sets()))
    return Choice(kept=kept, total=total, priced_count=space.size)


def naive(model: CostModel) -> Choice:
    """Return the first table of every choice: a lineage view rather than split lineage tables."""
    return Pricing(model).choice(frozenset(choice[0] for choice in search_space(model.structure).choices))


def none(model: CostModel) -> Choice:
    """Return the empty set."""
    return Pricing(model).choice(NOTHING)


ALGORITHMS: Mapping[str, Callable[[CostModel], Choice]] = {
    "exact": exact,
    "exhaustive": exhaustive,
    "greedy": greedy,
    "three-step": three_step,
    "combined": combined,
    "naive": naive,
    "none": none,
}
