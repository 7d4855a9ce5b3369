"""What segments are called: whatever means the same has one name, and nothing else has it."""

from __future__ import annotations

from dataclasses import replace

from in_duckdb import World, relation

from headwater.views.segment_names import segment_name
from headwater.views.segments import JoinStep

WORLD = World([relation("shop", "sales", no="int", product="int"), relation("shop", "products", id="int")])


def test_joins_of_one_text_are_told_apart_by_what_only_tests() -> None:
    """Their rows are the same; what those derive from is not."""
    step = WORLD.compile("SELECT s.no FROM shop.sales AS s, shop.products AS p WHERE s.product = p.id").output.step
    assert isinstance(step, JoinStep)
    sales, products = step.view.occurrences
    tested = JoinStep(view=replace(step.view, occurrences=(sales, replace(products, is_test=True))))
    assert segment_name(step, ()) == segment_name(JoinStep(view=replace(step.view, name="another")), ())
    assert segment_name(step, ()) != segment_name(tested, ())
