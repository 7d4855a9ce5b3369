"""A small world for views: two sources, a few relations, and a Spark session if nobody else brings one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from pyspark.sql import SparkSession

from headwater.relation import Column, Relation, RelationName


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


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.ansi.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
