"""An order that a view does not give in full is completed by all columns of the row, in every form of the view."""

from __future__ import annotations

import pytest
from in_duckdb import World, in_duckdb
from tied_views import RELATIONS, TIED, tied_rows

from headwater.views.laws.join import renamed_sql

NAMES = pytest.mark.parametrize("name", TIED)


@NAMES
def test_segments_break_ties_by_all_columns(name: str) -> None:
    sql, by_hand = TIED[name]
    world = World(RELATIONS)
    view = world.compile(sql)
    for seed in range(40):
        world.fill(tied_rows(seed))
        assert world.evaluate(view) == world.by_hand(by_hand), (name, seed)


@NAMES
def test_the_whole_text_breaks_ties_by_all_columns(name: str) -> None:
    """It is what a view is born from."""
    sql, by_hand = TIED[name]
    world = World(RELATIONS)
    view = world.compile(sql)
    text = in_duckdb(renamed_sql(view.whole, world.tables))
    for seed in range(40):
        world.fill(tied_rows(seed))
        assert world.bag(text) == world.by_hand(by_hand), (name, seed)


@NAMES
def test_the_judge_breaks_ties_by_all_columns(name: str) -> None:
    """In its own way: nothing of the engine's rewriting is in it."""
    sql, by_hand = TIED[name]
    world = World(RELATIONS)
    for seed in range(40):
        world.fill(tied_rows(seed))
        assert world.original(sql) == world.by_hand(by_hand), (name, seed)
