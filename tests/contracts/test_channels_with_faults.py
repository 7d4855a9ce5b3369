"""Channels that lose, repeat and reorder: complete, always, and it ends; whatever is left out of that fails."""

from __future__ import annotations

from random import Random

import pytest
from small_views import change, guarantee, relation, setting
from volume import volume

from headwater.maintenance.published.messages import Algorithm
from headwater.maintenance.published.version_numbers import self_maintaining, version_numbers
from headwater.model.guarantee import Guarantee
from headwater_lab.chance import Chances
from headwater_lab.literal.channel_readings import CHANNEL_READINGS
from headwater_lab.lossy_world import Faults, LossyWorld, Protocol, play_with_faults

SEEDS = volume(150, 1_000)


@pytest.mark.parametrize(
    ("algorithm", "chances", "loss"),
    [
        (version_numbers, Chances(), 0.0),
        (version_numbers, Chances(), 0.1),
        (version_numbers, Chances(), 0.3),
        (self_maintaining, Chances(keyed=True), 0.3),
    ],
    ids=["no loss", "some loss", "much loss", "from the view, much loss"],
)
def test_version_numbers_are_complete_whatever_the_channels_do(
    algorithm: Algorithm, chances: Chances, loss: float
) -> None:
    faults = Faults(loss=loss, repeat=0.1, reorder=True)
    for seed in range(SEEDS):
        lossy = play_with_faults(seed, algorithm, chances, faults)
        assert lossy.is_complete
        assert guarantee(lossy) is Guarantee.COMPLETE, f"seed {seed}\n{lossy.world.setting.view.sql}"


def test_without_loss_every_transaction_is_told_of_once() -> None:
    lossy = play_with_faults(0, version_numbers, Chances(), Faults())
    assert lossy.is_complete
    assert guarantee(lossy) is Guarantee.COMPLETE


@pytest.mark.parametrize("reading", CHANNEL_READINGS[::2], ids=lambda reading: reading.name)
def test_what_is_left_out_is_missed(reading: object) -> None:
    faults = Faults(loss=0.3 if reading.protocol.re_request is False else 0.0, reorder=True)  # type: ignore[attr-defined]
    found = [
        guarantee(play_with_faults(seed, version_numbers, Chances(), faults, reading.protocol))  # type: ignore[attr-defined]
        for seed in range(40)
    ]
    assert sum(level < Guarantee.COMPLETE for level in found) > 10


@pytest.mark.parametrize("heartbeat", [True, False])
def test_a_lost_last_notification_is_noticed_by_a_sign_of_life_and_by_nothing_else(*, heartbeat: bool) -> None:
    r, s = relation("one.r(a, b)"), relation("two.s(b, c)")
    beginning = setting("SELECT r.a, s.c FROM one.r r, two.s s WHERE r.b = s.b", {r: [(1, 1)], s: []})
    protocol = Protocol(heartbeat=heartbeat)
    lossy = LossyWorld(beginning, version_numbers, random=Random(0), faults=Faults(), protocol=protocol)
    lossy.commit("two", change("two.s", (1, 1)))
    lossy.on_the_way.clear()
    for _ in range(10):
        lossy.let_time_pass()
        while lossy.on_the_way:
            lossy.arrive()
    assert lossy.is_complete is heartbeat
    assert lossy.is_stuck is not heartbeat or lossy.is_complete
    assert (guarantee(lossy) is Guarantee.COMPLETE) is heartbeat
    assert bool(lossy.world.state) is heartbeat
