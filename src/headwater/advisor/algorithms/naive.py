"""Keep every replica, every group table and every lineage view (paper 004, §6.2)."""

from __future__ import annotations

from headwater.advisor.algorithms.choice import Choice, Pricing
from headwater.advisor.candidates import search_space
from headwater.advisor.cost_model import CostModel


def naive(model: CostModel) -> Choice:
    """Return the first table of every choice: a lineage view rather than split lineage tables."""
    return Pricing(model).choice(frozenset(choice[0] for choice in search_space(model.structure).choices))
