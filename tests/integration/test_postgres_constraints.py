"""Keys, references and NOT NULL are read from a database's catalog, and only those that can be relied upon."""

from __future__ import annotations

from typing import Any

from headwater.maintenance.published.irrelevant import Reference, references
from headwater_lab.one_join import declare

TABLES_SQL = """
CREATE TABLE region (code int, country text, UNIQUE (code, country));
CREATE TABLE customer (id int PRIMARY KEY, country text, code int NOT NULL,
    FOREIGN KEY (country, code) REFERENCES region (country, code));
CREATE TABLE orders (
    id int PRIMARY KEY, customer int NOT NULL REFERENCES customer, backup int REFERENCES customer,
    late int NOT NULL REFERENCES customer DEFERRABLE INITIALLY IMMEDIATE,
    unchecked int NOT NULL);
ALTER TABLE orders ADD FOREIGN KEY (unchecked) REFERENCES customer NOT VALID;
"""


def _parents(world: Any, table: str) -> list[tuple[tuple[str, ...], str, tuple[str, ...]]]:
    keys = world.relations[table].foreign_keys
    return [(key.columns, str(key.parent), key.parent_columns) for key in keys]


def test_only_references_that_always_hold_are_told_of(world: Any) -> None:
    world.execute(TABLES_SQL)
    world.declare("region", "customer", "orders")
    assert world.relations["customer"].not_null == {"id", "code"}
    assert _parents(world, "customer") == [(("country", "code"), "shop.region", ("country", "code"))]
    assert world.relations["orders"].key == ("id",)
    assert world.relations["orders"].not_null == {"id", "customer", "late", "unchecked"}
    assert sorted(_parents(world, "orders")) == [
        (("backup",), "shop.customer", ("id",)),
        (("customer",), "shop.customer", ("id",)),
    ]


def test_a_reference_that_is_switched_off_is_not_told_of(world: Any) -> None:
    world.execute(TABLES_SQL + "ALTER TABLE orders DISABLE TRIGGER ALL")
    world.declare("customer", "orders")
    assert _parents(world, "orders") == []


def test_a_view_is_told_along_which_references_changes_are_irrelevant(world: Any) -> None:
    world.execute(TABLES_SQL)
    world.declare("customer", "orders")
    catalog = {relation.name: relation for relation in world.relations.values()}
    tables = "FROM shop.orders o, shop.customer c"
    joins = {
        "o.customer = c.id": (Reference(parent="c", child="o"),),
        "o.backup = c.id": (),
        "o.customer = c.code": (),
    }
    for condition, expected in joins.items():
        assert references(declare("v", f"SELECT o.id {tables} WHERE {condition}", catalog)) == expected
