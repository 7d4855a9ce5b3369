"""Keeping lineage changes no row of a view; split lineage tables are what is split off the lineage view."""

from __future__ import annotations

import random
from collections import Counter

from in_duckdb import World
from keyed_cases import keeping, keyed_rows, keyed_world
from random_views import Chance
from volume import volume

from headwater.model.keeping import LineageKind
from headwater.views.compile.plan import ROWS
from headwater.views.steps.keep_lineage import without_lineage
from headwater.views.steps.segments import SegmentedView

SEEDS = volume(25, 2_000)


def rows_of(world: World, view: SegmentedView, name: object) -> list[dict[str, object]]:
    place = next(place for place, segment in enumerate(view.segments) if segment.name == name)
    found: list[dict[str, object]] = (
        world.connection.execute(f"SELECT * FROM segment{place}").to_arrow_table().to_pylist()
    )
    return found


def test_oracle_lineage_is_kept_beside_the_same_rows() -> None:
    world = keyed_world()
    kept_count = 0
    for seed in range(SEEDS):
        chance = Chance(random=random.Random(seed))
        sql = chance.view()
        world.fill(keyed_rows(chance.rows()))
        plain = world.compile(sql)
        view = keeping(plain, LineageKind.VIEW, LineageKind.SPLIT)
        assert world.evaluate(view) == world.original(sql), sql
        assert without_lineage(view) == plain
        for one in view.lineage:
            kept_count += 1
            whole = rows_of(world, view, one.whole.name)
            for alias, split in one.split.items():
                names = tuple(one.columns[alias].values())
                own = [tuple(row[name] for name in names) for row in whole]
                expected = Counter({(*row, count): 1 for row, count in Counter(own).items()})
                found = rows_of(world, view, split)
                assert Counter(tuple(row[name] for name in (*names, ROWS)) for row in found) == expected, sql
    assert kept_count > SEEDS // 3
