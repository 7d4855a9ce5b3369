"""Random extents over rows of two small numbers and a text, and what they mean row by row."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import strategies as st

from headwater.deltas.extent import Extent
from headwater.deltas.selection import COMPARE, Selection

COLUMNS = ("a", "b", "t")
NUMBERS = (None, 0, 1, 2)
TEXTS = (None, "", "B", "a", "ä")
ROWS: list[dict[str, Any]] = [dict(zip(COLUMNS, row, strict=True)) for row in product(NUMBERS, NUMBERS, TEXTS)]


def _selections(column: str, values: tuple[Any, ...]) -> st.SearchStrategy[Selection]:
    """Return selections of a column: one value compared, or several of which one is equal."""
    some = st.sampled_from([value for value in values if value is not None])
    one = st.builds(Selection, column=st.just(column), compare=st.sampled_from(sorted(COMPARE)), values=st.tuples(some))
    several = st.lists(some, min_size=2, max_size=3, unique=True).map(tuple)
    return st.one_of(one, st.builds(Selection, column=st.just(column), compare=st.just("equal"), values=several))


selections = st.one_of(_selections("a", NUMBERS), _selections("b", NUMBERS), _selections("t", TEXTS))
lists = st.lists(st.lists(selections, max_size=3), min_size=1, max_size=3)
extents = lists.map(lambda many: Extent.of(*many))


def passing(extent: Extent) -> list[int]:
    """Return the places of the rows that pass."""
    return [place for place, row in enumerate(ROWS) if extent.passes(row)]
