"""Price every set, and take the cheapest (paper 004, §6.1). Exact, and out of the question for all but small views."""

from __future__ import annotations

from headwater.advisor.algorithms.choice import Choice
from headwater.advisor.candidates import search_space
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
