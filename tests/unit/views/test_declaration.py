"""What a declared view knows: occurrences, edges, conditions, outputs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headwater.model.relation import Relation, RelationName
from headwater.views.steps.explain import describe_view
from headwater.views.steps.join import JoinView
from headwater.views.text.spark_text import spark_text
from headwater_lab.one_join import declare

Catalog = Mapping[RelationName, Relation]


def conditions(view: JoinView) -> list[str]:
    return [spark_text(condition.expression) for condition in view.conditions]


def outputs(view: JoinView) -> list[str]:
    return [f"{output.name} = {spark_text(output.expression)}" for output in view.outputs]


def test_names_are_found_in_any_case_and_written_as_the_catalog_spells_them(catalog: Catalog) -> None:
    view = declare("v", "SELECT NAME, C.ID AS n FROM crm.customers AS c WHERE City > 1", catalog)
    assert outputs(view) == ["NAME = `c`.`Name`", "n = `c`.`id`"]
    assert conditions(view) == ["`c`.`city` > 1"]
    assert view.occurrences[0].columns == ("id", "Name", "city")


def test_a_relation_without_an_alias_goes_by_its_name_or_its_full_name(catalog: Catalog) -> None:
    sql = "SELECT places.id, crm.geo.places.label, geo.places.city FROM crm.geo.places"
    assert outputs(declare("v", sql, catalog)) == [
        "id = `places`.`id`",
        "label = `places`.`label`",
        "city = `places`.`city`",
    ]


def test_conjuncts_come_in_textual_order_whatever_the_parentheses(catalog: Catalog) -> None:
    sql = """
        SELECT 1 AS one FROM crm.customers c JOIN shop.sales s ON c.id = s.customer AND (s.price > 1)
        WHERE ((s.amount < 3 AND c.id IS NOT NULL) AND (c.city = 1 OR c.city = 2)) AND TRUE
    """
    assert conditions(declare("v", sql, catalog)) == [
        "`c`.`id` = `s`.`customer`",
        "`s`.`price` > 1",
        "`s`.`amount` < 3",
        "NOT `c`.`id` IS NULL",
        "`c`.`city` = 1 OR `c`.`city` = 2",
    ]


def test_edges_join_columns_of_one_kind_each_once_and_gather_per_pair_of_occurrences(catalog: Catalog) -> None:
    sql = """
        SELECT 1 AS one FROM crm.customers c, shop.sales s, crm.geo.places p
        WHERE s.customer = c.id AND c.city = p.city AND p.id = c.id AND c.id = s.no AND c.id = s.customer
          AND c.score = s.score AND s.price = c.id AND c.Name = s.amount AND p.label <=> s.note AND p.id = 3
    """
    edges = [(edge.left, edge.right, edge.pairs) for edge in declare("v", sql, catalog).edges]
    assert edges == [
        ("c", "s", (("id", "customer"),)),
        ("c", "p", (("city", "city"), ("id", "id"))),
    ]


def test_using_makes_one_column_of_two(catalog: Catalog) -> None:
    sql = "SELECT *, p.city AS again FROM crm.customers c JOIN crm.geo.places p USING (City, id) WHERE id > 1"
    view = declare("v", sql, catalog)
    assert view.output_names == ("city", "id", "Name", "since", "score", "label", "again")
    assert conditions(view) == ["`c`.`city` = `p`.`city`", "`c`.`id` = `p`.`id`", "`c`.`id` > 1"]
    assert outputs(view)[0] == "city = `c`.`city`"
    assert outputs(view)[-1] == "again = `p`.`city`"


def test_relations_unite_what_their_occurrences_need(catalog: Catalog) -> None:
    sql = "SELECT a.id, b.Name FROM crm.customers a, crm.customers b, shop.sales WHERE a.city = b.city"
    view = declare("v", sql, catalog)
    assert [occurrence.columns for occurrence in view.occurrences] == [("id", "city"), ("Name", "city"), ("no",)]
    assert {str(name): columns for name, columns in view.relations.items()} == {
        "crm.customers": ("id", "Name", "city"),
        "shop.sales": ("no",),
    }


@pytest.mark.parametrize(
    ("expression", "fallible"),
    [
        ("c.id = s.no", False),
        ("c.id = s.price", False),
        ("c.score = s.amount", False),
        ("c.Name = 'x' AND NOT s.note LIKE 'a%'", False),
        ("c.Name LIKE s.note", True),
        (r"c.Name LIKE '50\%'", True),
        ("c.Name = 5", True),
        ("c.id = '5'", True),
        ("c.id IN (1, 2, NULL)", False),
        ("c.id IN (1, 'x')", True),
        ("c.id BETWEEN -1 AND 2.5", False),
        ("c.since >= DATE '2024-02-29'", False),
        ("c.since >= DATE '2023-02-29'", True),
        ("c.since BETWEEN '2024-01-01' AND '2024-12-31'", False),
        ("s.at < '2024-01-01 10:00:00'", False),
        ("s.at < c.since", True),
        ("CASE WHEN c.id = 1 THEN s.note ELSE 'x' END = 'y'", False),
        ("CASE c.id WHEN 'a' THEN TRUE END", True),
        ("coalesce(c.id, 0) > 1", False),
        ("coalesce(c.id, 'x') > 1", True),
        ("if(c.id > 1, TRUE, FALSE)", False),
        ("upper(c.Name) || 'z' <> lower(trim(s.note))", False),
        ("c.id + 1 > 2", True),
        ("s.price * 2 - c.id > 2", False),
        ("c.id / s.amount > 2", True),
        ("CAST(c.Name AS INT) = 1", True),
        ("substring(c.Name, 1, 2) = 'x'", True),
        ("c.id <=> s.amount", False),
        ("c.id <=> NULL", False),
        ("c.id = 1 IS TRUE", False),
        ("s.price = 0.1234567890123456789012345678901234567", True),
        ("s.price = 1e3", False),
    ],
)
def test_what_may_raise_is_known(expression: str, fallible: bool, catalog: Catalog) -> None:
    view = declare("v", f"SELECT 1 AS one FROM crm.customers c, shop.sales s WHERE {expression}", catalog)
    assert any(condition.fallible for condition in view.conditions) is fallible


def test_a_view_is_described_in_words(catalog: Catalog) -> None:
    sql = """
        SELECT c.Name, s.price / s.amount AS each FROM crm.customers c JOIN shop.sales s ON c.id = s.customer
        WHERE s.price > 10 AND s.price / s.amount > 2
    """
    assert str(describe_view(declare("dear", sql, catalog))) == (
        "view dear\n"
        "  reads\n"
        "    crm.customers AS c (id, Name)\n"
        "    shop.sales AS s (customer, price, amount)\n"
        "  joins on\n"
        "    c.id = s.customer\n"
        "  keeps rows where\n"
        "    s.price > 10\n"
        "    s.price / s.amount > 2   (computed last: it may fail on rows that are gone)\n"
        "  gives\n"
        "    Name = c.Name\n"
        "    each = s.price / s.amount   (computed last: it may fail on rows that are gone)"
    )
