"""Extents: what `covers` says is so, what `of` leaves out was there anyway, and every engine means the same rows."""

from __future__ import annotations

import pyarrow as pa
from extent_cases import ROWS, extents, lists, passing
from hypothesis import given, settings

from headwater.deltas.extent import EVERYTHING, NOTHING, Extent, Remainder
from headwater.deltas.on_arrow import remaining
from headwater.deltas.selection import Selection

SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.int64()), ("t", pa.string())])
TABLE = pa.Table.from_pylist(ROWS, schema=SCHEMA)


@given(many=lists)
def test_an_extent_passes_what_some_list_passes(many: list[list[Selection]]) -> None:
    each = [place for place, row in enumerate(ROWS) if any(all(s.passes(row[s.column]) for s in one) for one in many)]
    assert passing(Extent.of(*many)) == each


@given(one=extents, other=extents)
def test_what_is_covered_is_there(one: Extent, other: Extent) -> None:
    if one.covers(other):
        assert set(passing(other)) <= set(passing(one))
    both = one.plus(other)
    assert both.covers(one)
    assert both.covers(other)
    assert set(passing(both)) == {*passing(one), *passing(other)}
    assert both == other.plus(one), "equal extents are written alike"


@given(one=extents)
def test_everything_covers_and_nothing_is_covered(one: Extent) -> None:
    assert EVERYTHING.covers(one)
    assert one.covers(NOTHING)
    assert one.covers(EVERYTHING) == one.is_everything


@settings(deadline=None)
@given(wanted=extents, held=extents)
def test_a_remainder_has_what_is_wanted_and_not_held(wanted: Extent, held: Extent) -> None:
    found = remaining(TABLE, Remainder(of=wanted, without=held))
    left = [place for place in passing(wanted) if place not in passing(held)]
    assert found == TABLE.take(pa.array(left, pa.int64()))
    assert remaining(TABLE, Remainder(of=wanted)) == TABLE.take(pa.array(passing(wanted), pa.int64()))


def test_covers_sees_through_bounds_and_lists() -> None:
    def of(compare: str, *values: int) -> Extent:
        return Extent.of([Selection(column="a", compare=compare, values=values)])

    assert of("less", 5).covers(of("less_equal", 4))
    assert of("greater_equal", 3).covers(of("equal", 3, 7))
    assert of("not_equal", 3).covers(of("greater", 3))
    assert not of("less", 5).covers(of("less_equal", 5))
    assert not of("equal", 3).covers(of("equal", 3, 7))
    assert of("less", 5).plus(of("less", 9)) == of("less", 9)
