from __future__ import annotations

from headwater.sources.postgres.types import TypeCatalog

CATALOG = TypeCatalog(
    [
        (23, "int4", "pg_catalog", "b", 0, -1, 0, 1007),
        (1007, "_int4", "pg_catalog", "b", 0, -1, 23, 0),
        (22, "int2vector", "pg_catalog", "b", 0, -1, 21, 1006),
        (21, "int2", "pg_catalog", "b", 0, -1, 0, 1005),
        (1700, "numeric", "pg_catalog", "b", 0, -1, 0, 1231),
        (1231, "_numeric", "pg_catalog", "b", 0, -1, 1700, 0),
        (790, "money", "pg_catalog", "b", 0, -1, 0, 791),
        (791, "_money", "pg_catalog", "b", 0, -1, 790, 0),
        (900, "price", "public", "d", 1700, ((8 << 16) | 2) + 4, 0, 0),
        (901, "low_price", "public", "d", 900, -1, 0, 0),
        (902, "mood", "public", "e", 0, -1, 0, 903),
        (903, "_mood", "public", "b", 0, -1, 902, 0),
        (904, "text", "public", "b", 0, -1, 0, 0),
    ]
)


def test_types_are_resolved_through_domains_and_arrays() -> None:
    expected = {23: "int", 1007: "array<int>", 22: None, 790: None, 791: None, 902: "string", 903: None, 904: None}
    assert {oid: CATALOG.resolve(oid, -1).spark for oid in expected} == expected
    low = CATALOG.resolve(901, -1)
    assert (low.oid, low.spark) == (1700, "decimal(8,2)")
    assert CATALOG.resolve(900, -1).spark == "decimal(8,2)"
    assert CATALOG.resolve(1231, ((10 << 16) | 3) + 4).spark == "array<decimal(10,3)>"
    assert CATALOG.resolve(12345, -1).spark is None
    assert 12345 not in CATALOG
