"""One contract for every published algorithm: in any interleaving it keeps the guarantee it claims."""

from __future__ import annotations

from collections import Counter

import pytest
from volume import volume

from headwater.judge.grade import grade_sequence
from headwater.maintenance.published.algorithms import ALGORITHMS, DescribedAlgorithm
from headwater.model.guarantee import Guarantee
from headwater_lab.chance import chances_for, play

PUBLISHED = [described for described in ALGORITHMS if described.run is not None]
SEEDS = volume(250, 1_000)


@pytest.mark.parametrize("described", PUBLISHED, ids=lambda described: described.name)
def test_keeps_its_guarantee_in_every_interleaving(described: DescribedAlgorithm) -> None:
    assert described.run is not None
    levels: Counter[Guarantee] = Counter()
    for seed in range(SEEDS):
        world = play(seed, described.run, chances_for(described))
        verdict = grade_sequence(world.right_states(), world.shown_states())
        assert verdict.guarantee >= described.guarantee, f"seed {seed}: {verdict}\n{world.setting.view.sql}"
        levels[verdict.guarantee] += 1
    assert levels.total() == SEEDS
