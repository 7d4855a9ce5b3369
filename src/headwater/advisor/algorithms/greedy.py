"""Take in the table that saves most, again and again, until none saves anything (paper 004, §6.3).

O(k²) sets are priced for k tables. It cannot see that two tables pay only together, and never gives one up: on v8 it
takes a lineage view at first, and with that the two replicas, which would be cheaper without it, no longer pay.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.advisor.algorithms.choice import Choice, Move, Pricing
from headwater.advisor.candidates import NOTHING, Auxiliary, Kept, SearchSpace, search_space
from headwater.advisor.cost_model import CostModel


def greedy(model: CostModel) -> Choice:
    """Return what is reached from nothing by taking in what saves most."""
    space, pricing = search_space(model.structure), Pricing(model)
    kept, moves = take_in(space, pricing, NOTHING, space.candidates)
    return pricing.choice(kept, moves)


def take_in(
    space: SearchSpace, pricing: Pricing, kept: Kept, candidates: Iterable[Auxiliary]
) -> tuple[Kept, tuple[Move, ...]]:
    """Take candidates into a set, the one that saves most first, as long as one saves. Of equals, the first."""
    waiting, moves = list(candidates), []
    while open_ones := [table for table in waiting if space.admits(kept, table)]:
        best = min(open_ones, key=lambda table: pricing.total(kept | {table}))
        if pricing.total(kept | {best}) >= pricing.total(kept):
            break
        kept |= {best}
        moves.append(Move(table=best, is_added=True, total=pricing.total(kept)))
    return kept, tuple(moves)
