"""Three-step as paper 004's Figure 4 prints it: phase 2 takes what makes the set dearer. In the lab only."""

from __future__ import annotations

from headwater.advisor.algorithms.choice import Choice
from headwater.advisor.algorithms.three_step import in_three_steps
from headwater.advisor.cost_model import CostModel


def literal_three_step(model: CostModel) -> Choice:
    """Return what the three phases leave as they are printed."""
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
