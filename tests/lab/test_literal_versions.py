"""Literal readings of paper 001 are wrong by one thing each; and one is wrong whatever is read (PAPERS.md §4)."""

from __future__ import annotations

import pytest
from small_views import change, guarantee, play_out, relation, sent, setting

from headwater.maintenance.published.messages import Algorithm
from headwater.maintenance.published.self_maintenance import shows_rows
from headwater.maintenance.published.terms import steps_to
from headwater.maintenance.published.version_numbers import self_maintaining, version_numbers
from headwater.model.guarantee import Guarantee
from headwater_lab.entrants import entrant
from headwater_lab.library import FOLDER
from headwater_lab.literal.from_view_by_any_column import FROM_VIEW_BY_ANY_COLUMN
from headwater_lab.literal.irrelevant_unenforced import IRRELEVANT_UNENFORCED
from headwater_lab.literal.modified_in_place import MODIFIED_IN_PLACE
from headwater_lab.replay import ScenarioReplay, replay
from headwater_lab.scenario_text import parse_scenario
from headwater_lab.world import World

SWAPPED = {"'d1', 'e1'": "'d1', 'e2'", "'d2', 'e2'": "'d2', 'e1'"}


def _key_not_in_the_view(*, swapped: bool) -> ScenarioReplay:
    """Play the story of erratum 6 as it is told, or with the rows of R3 that c1 and c2 lead to exchanged."""
    text = (FOLDER / "key-not-in-the-view.txt").read_text(encoding="utf-8")
    moves, _, _ = text.partition("\n---")
    for old, new in SWAPPED.items() if swapped else ():
        assert old in moves
        moves = moves.replace(old, new)
    moves += "\ns1.r1: insert ('a3', 'b3', 'c1')\nwarehouse: receive s1@1\n"
    return replay(parse_scenario(moves, name="story"), entrant("version-numbers-from-view"))


def test_what_the_view_shows_without_a_key_does_not_tell_which_row_goes() -> None:
    """Erratum 6: the same view and the same changes, and the right answer differs; so no reading of them is right."""
    told, other = _key_not_in_the_view(swapped=False), _key_not_in_the_view(swapped=True)
    assert told.start == other.start == {("b1", "c1", "f1"): 1, ("b2", "c2", "f1"): 1}
    assert [move.move for move in told.moves] == [move.move for move in other.moves]
    new = ("b3", "c1", "f1")
    assert (new in told.right[-1], new in other.right[-1]) == (True, False)
    assert told.verdict.guarantee is other.verdict.guarantee is Guarantee.COMPLETE


@pytest.mark.parametrize("alias", ["r2", "r3"])
def test_so_the_view_is_not_looked_at(alias: str) -> None:
    scenario = parse_scenario((FOLDER / "key-not-in-the-view.txt").read_text(encoding="utf-8"), name="story")
    view = scenario.setting.view
    steps = steps_to(view, alias, {one.alias for one in view.occurrences} - {alias})
    assert steps
    assert not any(shows_rows(view, step) for step in steps)


def _looked_up_by_key(algorithm: Algorithm) -> World:
    r, s = relation("one.r(k, a)", key=("k",)), relation("two.s(k, b)", key=("k",))
    sql = "SELECT r.k, r.a, s.k AS sk, s.b FROM one.r r, two.s s WHERE r.a = s.k"
    world = World(setting(sql, {r: [(1, 1)], s: [(1, 5), (2, 6)]}), algorithm)
    for row in ((2, 1), (3, 2)):
        world.commit("one", change("one.r", row))
        play_out(world)
    return world


def test_a_lookup_by_key_is_right_in_the_literal_reading_too() -> None:
    ours, theirs = _looked_up_by_key(self_maintaining), _looked_up_by_key(FROM_VIEW_BY_ANY_COLUMN.run)
    assert guarantee(ours) is guarantee(theirs) is Guarantee.COMPLETE
    assert sent(ours) == sent(theirs) == 1


@pytest.mark.parametrize(
    ("new", "reached"),
    [
        ((2, 5, 2, 7), Guarantee.COMPLETE),
        ((2, 6, 1, 7), Guarantee.COMPLETE),
        ((2, 5, 1, 8), Guarantee.COMPLETE),
        ((2, 5, 0, 7), Guarantee.WEAK),
    ],
    ids=["selected as before", "join column", "shown", "no longer selected"],
)
def test_a_modification_in_place_is_wrong_where_a_selection_changes_its_mind(
    new: tuple[int, ...], reached: Guarantee
) -> None:
    r, s = relation("one.r(k, a)", key=("k",)), relation("two.s(k, a, chosen, free)", key=("k",))
    sql = "SELECT r.k, s.k AS sk, s.free FROM one.r r, two.s s WHERE r.a = s.a AND s.chosen > 0"
    old = (2, 5, 1, 7)
    for algorithm, expected in ((version_numbers, Guarantee.COMPLETE), (MODIFIED_IN_PLACE.run, reached)):
        world = World(setting(sql, {r: [(9, 5), (8, 6)], s: [old]}), algorithm)
        world.commit("two", {name: {old: -1, new: 1} for name in change("two.s", new)})
        play_out(world)
        assert guarantee(world) is expected


@pytest.mark.parametrize("enforced", [True, False])
def test_a_reference_that_is_enforced_may_be_taken_for_one(*, enforced: bool) -> None:
    """Erratum 8: the same is left out by both, and rightly so, as long as no order is there before its customer."""
    customers = relation("shop.customers(id, city)", key=("id",))
    orders = relation("shop.orders(id, customer)", key=("id",), parents={"customer": ("shop.customers", "id")})
    sql = "SELECT o.customer, c.city FROM shop.orders o, shop.customers c WHERE o.customer = c.id"
    rows = [(1, 1)] if enforced else [(1, 1), (2, 2)]
    for algorithm in (version_numbers, IRRELEVANT_UNENFORCED.run):
        world = World(setting(sql, {customers: [(1, 1)], orders: rows}), algorithm)
        world.commit("shop", change("shop.customers", (2, 2)))
        play_out(world)
        assert sent(world) == 0
        assert (guarantee(world) is Guarantee.COMPLETE) is enforced, "a catalog that says so has to be true"
