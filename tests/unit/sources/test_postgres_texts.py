from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from headwater.errors import SourceRefused
from headwater.model.relation import Column, RelationName
from headwater.sources.postgres.texts import array_elements, typed_column

NAME = RelationName(source="shop", name="sales")


def typed(spark_type: str, native: str, *texts: str | None) -> list[object]:
    column = Column(name="c", type=spark_type, native=native)
    values: list[object] = typed_column(NAME, column, pa.array(texts, pa.string())).to_pylist()
    return values


def test_unbounded_numeric_is_exact_or_refused() -> None:
    fits = ("1.1" + "0" * 60, "-99999999999999999999.999999999999999999", "0", "0." + "0" * 50, None)
    assert typed("decimal(38,18)", "numeric", *fits) == [
        Decimal("1.1"),
        Decimal("-99999999999999999999.999999999999999999"),
        Decimal(0),
        Decimal(0),
        None,
    ]
    for unfit in ("1" + "0" * 20, "5" + "0" * 20, "1" + "0" * 30, "0." + "0" * 18 + "1", "NaN", "-Infinity"):
        with pytest.raises(SourceRefused) as refused:
            typed("decimal(38,18)", "numeric", "1", None, unfit)
        assert unfit[:20] in refused.value.detail


def test_every_large_whole_number_is_refused_although_arrow_lets_some_through() -> None:
    for zeros in range(20, 60):
        for digit in "123456789":
            with pytest.raises(SourceRefused):
                typed("decimal(38,18)", "numeric", digit + "0" * zeros)


def test_blank_padding_is_taken_off_char_only() -> None:
    assert typed("string", "character(4)", "a   ", "    ", " a  ", None) == ["a", "", " a", None]
    assert typed("string", "character varying(4)", "a  ") == ["a  "]


def test_arrays_of_one_dimension() -> None:
    assert typed("array<int>", "integer[]", "{1,NULL,-3}", "{}", None) == [[1, None, -3], [], None]
    assert typed("array<string>", "text[]", '{NULL,"NULL","",a b,"{\\"\\\\,"}') == [[None, "NULL", "", "a b", '{"\\,']]
    assert array_elements("{}") == []
    for odd in ("{{1}}", "[2:3]={1,2}"):
        with pytest.raises(SourceRefused, match="HW-330"):
            typed("array<int>", "integer[]", odd)


def test_nothing_but_nulls() -> None:
    for spark_type in ("decimal(38,18)", "array<int>", "binary", "boolean", "date", "string", "timestamp", "double"):
        assert typed(spark_type, "x", None, None) == [None, None]
        assert typed(spark_type, "x") == []
