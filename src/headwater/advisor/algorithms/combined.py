"""Run greedy and three-step, and take the cheaper answer: they fail in different places (paper 004, §6.4 and §7.3)."""

from __future__ import annotations

from dataclasses import replace

from headwater.advisor.algorithms.choice import Choice
from headwater.advisor.algorithms.greedy import greedy
from headwater.advisor.algorithms.three_step import three_step
from headwater.advisor.cost_model import CostModel


def combined(model: CostModel) -> Choice:
    """Return the better of two answers."""
    answers = (greedy(model), three_step(model))
    best = min(answers, key=lambda answer: answer.total)
    return replace(best, priced_count=sum(answer.priced_count for answer in answers))
