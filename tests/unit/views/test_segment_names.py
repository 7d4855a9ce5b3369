"""What segments are called: whatever means the same has one name, and nothing else has it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from in_duckdb import World, relation

from headwater.model.relation import RelationName, SegmentName
from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.segment_names import segment_name

WORLD = World([relation("shop", "sales", no="int", product="int"), relation("shop", "products", id="int")])

NAMES = [
    ["selection_5a26d15aa428", "group_b1b55d48065d"],
    ["join_072abb87ebb0", "group_7fbc2b8c1f28", "regroup_ed9f099aa4ce"],
    ["selection_b13a76457d44", "selection_aa787cc693b5", "union_c0767ca104f5", "group_579e5986b633"],
    ["selection_434a4b54d8b4", "regroup_31f8b6678dfe"],
    ["selection_b13a76457d44", "regroup_8bfc6cbfac12"],
]


def test_joins_of_one_text_are_told_apart_by_what_only_tests() -> None:
    """Their rows are the same; what those derive from is not."""
    step = WORLD.compile("SELECT s.no FROM shop.sales AS s, shop.products AS p WHERE s.product = p.id").output.step
    assert isinstance(step, JoinStep)
    sales, products = step.view.occurrences
    tested = JoinStep(view=replace(step.view, occurrences=(sales, replace(products, is_test=True))))
    assert segment_name(step, ()) == segment_name(JoinStep(view=replace(step.view, name="another")), ())
    assert segment_name(step, ()) != segment_name(tested, ())


def test_a_segment_is_told_by_its_type_alone() -> None:
    with pytest.raises(AssertionError, match="SegmentName"):
        RelationName(source="segments", name="group_1")
    assert min(RelationName(source="shop", name="a"), SegmentName(name="b")) == SegmentName(name="b")


def test_names_are_those_of_older_warehouses() -> None:
    """Auxiliary tables are found by them: a change of a step's text would build all of them again."""
    sqls = (
        "SELECT s.product, COUNT(*) AS n FROM shop.sales AS s GROUP BY s.product HAVING COUNT(*) > 1",
        "SELECT s.no, MAX(p.id) AS m FROM shop.sales AS s, shop.products AS p WHERE s.product = p.id GROUP BY s.no",
        "SELECT s.no FROM shop.sales AS s UNION SELECT p.id FROM shop.products AS p",
        "SELECT s.no, ROW_NUMBER() OVER (PARTITION BY s.product ORDER BY s.no) AS n FROM shop.sales AS s",
        "SELECT s.no FROM shop.sales AS s ORDER BY s.no LIMIT 3",
    )
    found = [[segment.name.name for segment in WORLD.compile(sql).segments[:-1]] for sql in sqls]
    assert found == NAMES
