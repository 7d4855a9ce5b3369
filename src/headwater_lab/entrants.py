"""Who can be played in the lab: every algorithm of the registry, and the literal readings that fail."""

from __future__ import annotations

from dataclasses import replace

from headwater.maintenance.published.algorithms import ALGORITHMS, DescribedAlgorithm
from headwater.maintenance.published.messages import Algorithm
from headwater.views.steps.join import JoinView
from headwater_lab.batched import batched
from headwater_lab.errors import InvalidScenario
from headwater_lab.literal import VARIANTS


def published() -> tuple[DescribedAlgorithm, ...]:
    """Return every algorithm that a view can choose. The engine itself works on messages here, like the others."""
    return tuple(one if one.run is not None else replace(one, run=batched) for one in ALGORITHMS)


def literal() -> tuple[DescribedAlgorithm, ...]:
    """Return the literal readings, with the claims they fail to keep."""
    return tuple(variant.described for variant in VARIANTS)


def entrant(name: str) -> DescribedAlgorithm:
    """Return the algorithm or the literal reading of that name."""
    everyone = {one.name: one for one in (*published(), *literal())}
    if name not in everyone:
        raise InvalidScenario(
            f'there is no algorithm "{name}"', code="HW-713", hint=f"algorithms are {', '.join(everyone)}"
        )
    return everyone[name]


def runnable(described: DescribedAlgorithm, view: JoinView) -> Algorithm:
    """Return how an algorithm runs, or refuse if the view lacks what it needs."""
    assert described.run is not None, "every algorithm of the lab runs on messages"
    if lacks := described.missing(view):
        raise InvalidScenario(
            f'"{described.name}" cannot maintain this view',
            code="HW-714",
            detail="; ".join(lacks),
            hint="choose another algorithm with --algorithm; `headwater lab scenarios` lists those of each scenario",
        )
    return described.run
