"""Self-maintenance: what the view shows is not asked for, and what it does not show is."""

from __future__ import annotations

from random import Random

from small_views import change, guarantee, play_out, relation, sent, setting
from volume import volume

from headwater.maintenance.published.messages import Algorithm
from headwater.maintenance.published.version_numbers import self_maintaining, version_numbers
from headwater.model.guarantee import Guarantee
from headwater_lab.chance import Chances, random_transaction
from headwater_lab.lossy_world import Faults, LossyWorld
from headwater_lab.world import World, WorldSetting

JOINED = "FROM one.r1 r1, two.r2 r2, three.r3 r3 WHERE r1.a = r2.k AND r2.a = r3.k"
WHOLE = f"SELECT r1.k AS k1, r1.a AS a1, r2.k AS k2, r2.a AS a2, r3.k AS k3, r3.b AS b3 {JOINED}"
WITHOUT_KEY = f"SELECT r1.k AS k1, r3.b AS b3 {JOINED}"
UNDER_OTHER_NAMES = f"SELECT r1.k AS k1, r1.a AS k2, r2.a AS k3, r3.b AS b3 {JOINED}"


def _chain(sql: str = WHOLE) -> WorldSetting:
    """Return relations (k, a, b), each of which refers to the key of the next one."""
    relations = [
        relation(f"{source}.r{place}(k, a, b)", key=("k",)) for place, source in ((1, "one"), (2, "two"), (3, "three"))
    ]
    rows = [(place, place, place) for place in range(3)]
    return setting(sql, {one: list(rows[: 3 - place]) for place, one in enumerate(relations)})


def _inserted(sql: str, algorithm: Algorithm, row: tuple[int, ...]) -> World:
    world = World(_chain(sql), algorithm)
    world.commit("one", change("one.r1", row))
    play_out(world)
    assert guarantee(world) is Guarantee.COMPLETE
    return world


def test_a_row_that_the_view_shows_is_not_asked_for() -> None:
    assert sent(_inserted(WHOLE, version_numbers, (5, 0, 0))) == 2
    assert sent(_inserted(WHOLE, self_maintaining, (5, 0, 0))) == 0


def test_a_key_that_the_view_does_not_show_is_asked_for() -> None:
    assert sent(_inserted(WHOLE, self_maintaining, (5, 4, 0))) == 1


def test_a_view_without_the_key_is_not_looked_at() -> None:
    assert sent(_inserted(WITHOUT_KEY, self_maintaining, (5, 0, 0))) == 2


def test_a_key_that_equals_a_column_that_is_shown_is_shown() -> None:
    assert sent(_inserted(UNDER_OTHER_NAMES, version_numbers, (5, 0, 0))) == 2
    assert sent(_inserted(UNDER_OTHER_NAMES, self_maintaining, (5, 0, 0))) == 0


def test_a_lookup_by_something_else_than_the_key_asks() -> None:
    r1, r2 = relation("one.r1(a, b, c)", key=("a",)), relation("two.r2(d, c, e)", key=("d",))
    sql = "SELECT r1.a, r1.b, r1.c, r2.d, r2.c AS c2, r2.e FROM one.r1 r1, two.r2 r2 WHERE r1.c = r2.c AND r1.b < r2.e"
    world = World(setting(sql, {r1: [(1, 1, 7)], r2: [(1, 7, 2), (2, 7, 1)]}), self_maintaining)
    assert len(world.state) == 1
    world.commit("one", change("one.r1", (2, 0, 7)))
    play_out(world)
    assert guarantee(world) is Guarantee.COMPLETE
    assert len(world.state) == 3


def test_changes_that_the_view_does_not_show_yet_are_added_and_taken_out() -> None:
    asked = {self_maintaining: 0, version_numbers: 0}
    for algorithm in asked:
        for seed in range(volume(40, 150)):
            lossy = _wander(seed, algorithm, Faults(loss=0.2 * (seed % 2), repeat=0.1, reorder=True))
            assert guarantee(lossy) is Guarantee.COMPLETE, f"seed {seed}"
            asked[algorithm] += sent(lossy.world)
    assert asked[self_maintaining] < asked[version_numbers]


def _wander(seed: int, algorithm: Algorithm, faults: Faults) -> LossyWorld:
    random = Random(seed)
    chances = Chances(delete=0.25, modify=0.25)
    lossy = LossyWorld(_chain(), algorithm, random=random, faults=faults)
    remaining = 14
    while remaining or not lossy.is_complete:
        if remaining and random.random() < 0.3:
            remaining -= 1
            source = random.choice(lossy.world.setting.sources)
            if changes := random_transaction(random, lossy.world, source, chances):
                lossy.commit(source, changes)
        elif lossy.on_the_way and random.random() < 0.9:
            lossy.arrive(random.randrange(len(lossy.on_the_way)))
        else:
            lossy.let_time_pass()
    return lossy
