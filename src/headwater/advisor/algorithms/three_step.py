"""First replicas and group tables, then lineage, then give up what no longer pays (paper 004, §6.4 and Figure 4).

    phase 1   take in replicas and group tables greedily
    phase 2   for every segment, topmost first: its lineage view, its split lineage tables, or neither
    phase 3   give up replicas and group tables, the most useless first, as long as that costs nothing

Erratum: Figure 4's phase 2 takes LV or SLT when they make the set dearer (`cost1 ≥ cost2 > cost`), and misses that only
one of the two may help. Here: the cheaper of the two, if it is cheaper than neither. The lab has the literal reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headwater.advisor.algorithms.choice import Choice, Move, Pricing
from headwater.advisor.algorithms.greedy import greedy, take_in
from headwater.advisor.candidates import NOTHING, Auxiliary, AuxiliaryKind, Kept, search_space
from headwater.advisor.cost_model import CostModel

_CONTENTS = (AuxiliaryKind.GROUP_TABLE, AuxiliaryKind.REPLICA)

Decide = Callable[[float, float, float], int | None]
"""Phase 2: which of lineage view (0) and split lineage tables (1), from the costs of neither, of LV and of SLT."""


def three_step(model: CostModel) -> Choice:
    """Return what the three phases leave."""
    return in_three_steps(model, cheaper_if_it_helps)


def cheaper_if_it_helps(neither: float, lineage_view: float, split: float) -> int | None:
    """Phase 2, corrected.

    >>> cheaper_if_it_helps(10, 8, 9), cheaper_if_it_helps(10, 12, 9), cheaper_if_it_helps(10, 11, 12)
    (0, 1, None)
    """
    best = min(lineage_view, split)
    if best >= neither:
        return None
    return 0 if lineage_view <= split else 1


def in_three_steps(model: CostModel, decide: Decide) -> Choice:
    """Run the three phases, with a rule for the second."""
    space, pricing = search_space(model.structure), Pricing(model)
    contents = [table for table in space.candidates if table.kind in _CONTENTS]
    kept, moves = take_in(space, pricing, NOTHING, contents)
    for pair in space.lineage_choices:
        chosen = decide(pricing.total(kept), *(pricing.total(kept | {table}) for table in pair))
        if chosen is not None:
            kept |= {pair[chosen]}
            moves += (Move(table=pair[chosen], is_added=True, total=pricing.total(kept)),)
    kept, given_up = _give_up(pricing, kept, contents)
    return pricing.choice(kept, moves + given_up)


def _give_up(pricing: Pricing, kept: Kept, contents: list[Auxiliary]) -> tuple[Kept, tuple[Move, ...]]:
    moves: tuple[Move, ...] = ()
    while held := [table for table in contents if table in kept]:
        least = min(held, key=lambda table: pricing.total(kept - {table}))
        if pricing.total(kept - {least}) > pricing.total(kept):
            break
        kept -= {least}
        moves += (Move(table=least, is_added=False, total=pricing.total(kept)),)
    return kept, moves


def combined(model: CostModel) -> Choice:
    """Return the better of two answers."""
    answers = (greedy(model), three_step(model))
    best = min(answers, key=lambda answer: answer.total)
    return replace(best, priced_count=sum(answer.priced_count for answer in answers))
