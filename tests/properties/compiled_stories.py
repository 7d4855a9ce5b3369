"""The constructs that views may use, and random stories over the relations that they read."""

from __future__ import annotations

import random
import re
from pathlib import Path

from in_duckdb import relation
from random_views import RELATIONS, Chance
from ticking import Story, random_story

from headwater.deltas.compare import Row
from headwater.model.relation import RelationName

FILE = Path(__file__).parents[1] / "unit" / "views" / "compile" / "constructs.sql"
CONSTRUCTS = re.findall(r"^-- (.+): .+\n(.+);$", FILE.read_text(), re.MULTILINE)
CATALOG = {
    each.name: each
    for each in (
        relation("a", "r", x="int", y="int", z="int"),
        relation("a", "s", x="int", w="int"),
        relation("b", "t", y="int", w="int", k="int"),
        relation("b", "u", key=("id",), id="int!", x="int"),
    )
}
BATCHES = [(0, 3), (3, 4)]


def story(seed: int) -> Story:
    chance = Chance(random=random.Random(seed))

    def row(name: RelationName) -> Row:
        values = tuple(chance.random.choice((None, 0, 1, 2, 3)) for _ in RELATIONS[str(name)])
        return values if name.name != "u" else (chance.random.randint(0, 9), values[1])

    return random_story(CATALOG, chance.rows(), chance.random, row, BATCHES[-1][1])
