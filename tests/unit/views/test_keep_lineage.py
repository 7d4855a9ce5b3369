"""What `keep` may name, and what is refused."""

from __future__ import annotations

import pytest
from in_duckdb import World, relation

from headwater.errors import InvalidView
from headwater.model.keeping import LineageKind, LineageWish
from headwater.views.steps.keep_lineage import joins_with_lineage, keep_lineage
from headwater.views.steps.segments import SegmentedView

WORLD = World(
    [
        relation("shop", "sales", key=("no",), no="int!", product="int", amount="int"),
        relation("shop", "products", key=("id",), id="int!", kind="string"),
        relation("shop", "visits", product="int", visitor="int"),
    ]
)
BY_KIND = """
    SELECT p.kind, SUM(s.amount) AS amount
    FROM shop.sales AS s JOIN shop.products AS p ON s.product = p.id GROUP BY p.kind
"""


def keep(view: SegmentedView, of: str, kind: LineageKind = LineageKind.VIEW) -> SegmentedView:
    return keep_lineage(view, [LineageWish(kind=kind, of=of)])


def named(view: SegmentedView, start: str) -> str:
    return next(one.name.name for one in view.segments if one.name.name.startswith(start))


def test_a_join_goes_by_its_own_name_or_by_that_of_its_group() -> None:
    view = WORLD.compile(BY_KIND)
    by_join, by_group = (keep(view, named(view, start)) for start in ("join", "group"))
    assert by_join == by_group
    assert [name.name for name in joins_with_lineage(view)] == [named(view, "join"), named(view, "group")]
    assert named(by_join, "lineage") in {one.name.name for one in by_join.segments if one.is_kept}


def test_columns_are_those_that_the_view_needs_and_the_keys() -> None:
    view = keep(WORLD.compile(BY_KIND), named(WORLD.compile(BY_KIND), "join"), LineageKind.SPLIT)
    [kept] = view.lineage
    assert [list(own) for own in kept.columns.values()] == [["no", "product", "amount"], ["id", "kind"]]
    assert not kept.is_whole_kept
    assert {one.name for one in view.segments if one.is_kept} >= set(kept.split.values())


def test_a_join_alone_is_kept_beside_the_view() -> None:
    view = keep(WORLD.compile("SELECT s.no, p.kind FROM shop.sales s, shop.products p WHERE s.product = p.id"), "v")
    assert view.only_join is None
    assert view.output.name.name == "v"
    assert view.output.inputs == (view.lineage[0].whole.name,)


@pytest.mark.parametrize(
    ("sql", "of", "code", "said"),
    [
        (BY_KIND, "joins", "HW-247", "lineage can be kept of join_"),
        (BY_KIND, "v", "HW-248", "it reads one thing alone"),
        ("SELECT s.no, v.visitor FROM shop.sales s, shop.visits v", "v", "HW-248", "shop.visits has no primary key"),
        ("SELECT no FROM shop.sales s UNION ALL SELECT id FROM shop.products p", "v", "HW-248", "it is no join"),
    ],
)
def test_what_cannot_be_kept_is_refused(sql: str, of: str, code: str, said: str) -> None:
    with pytest.raises(InvalidView) as refused:
        keep(WORLD.compile(sql), of)
    assert refused.value.code == code
    assert said in refused.value.detail
