"""A small world for views: two sources and a few relations."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headwater.model.relation import Column, Relation, RelationName


def relation(
    name: RelationName, *, key: tuple[str, ...] = (), unusable: tuple[tuple[str, str], ...] = (), **types: str
) -> Relation:
    columns = tuple(Column(name=column, type=kind, native=kind) for column, kind in types.items())
    return Relation(name=name, columns=columns, key=key, unusable=unusable)


CUSTOMERS = RelationName(source="crm", name="customers")
SALES = RelationName(source="shop", name="sales")
AUDIT = RelationName(source="crm", name="audit")
PLACES = RelationName(source="crm", schema="geo", name="places")


@pytest.fixture(scope="session")
def catalog() -> Mapping[RelationName, Relation]:
    relations = (
        relation(CUSTOMERS, key=("id",), id="int", Name="string", city="int", since="date", score="double"),
        relation(
            SALES,
            key=("no",),
            unusable=(("shape", "polygon"),),
            no="bigint",
            customer="int",
            price="decimal(12,2)",
            amount="int",
            at="timestamp",
            note="string",
            score="double",
        ),
        relation(PLACES, id="int", city="int", label="string"),
        relation(AUDIT, _tick="int", what="string"),
    )
    return {each.name: each for each in relations}
