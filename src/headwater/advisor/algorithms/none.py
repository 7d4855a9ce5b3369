"""Keep nothing but the view: what the others are measured against (paper 004, §7.1)."""

from __future__ import annotations

from headwater.advisor.algorithms.choice import Choice, Pricing
from headwater.advisor.candidates import NOTHING
from headwater.advisor.cost_model import CostModel


def none(model: CostModel) -> Choice:
    """Return the empty set."""
    return Pricing(model).choice(NOTHING)
