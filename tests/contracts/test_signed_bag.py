"""The laws of signed bags, for every implementation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.deltas.extent import EVERYTHING, NOTHING, Extent
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.selection import COMPARE, Selection
from headwater.model.position import Tick
from headwater_lab.in_memory.bag import InMemoryBag

COLUMNS = ("a", "b")
Entries = list[tuple[int, tuple[Any, ...], int]]

value = st.one_of(st.none(), st.integers(0, 2))
entries = st.lists(st.tuples(st.integers(1, 3), st.tuples(value, value), st.integers(-2, 2).filter(bool)), max_size=8)


def in_memory(given_entries: Entries) -> InMemoryBag:
    return InMemoryBag.of(COLUMNS, given_entries)


def on_arrow(given_entries: Entries) -> ArrowBag:
    columns = [[row[i] for _, row, _ in given_entries] for i in range(len(COLUMNS))]
    table = pa.table(
        {
            "a": pa.array(columns[0], pa.int32()),
            "b": pa.array(columns[1], pa.int64()),
            "_tick": pa.array([tick for tick, _, _ in given_entries], pa.int64()),
            "_count": pa.array([count for _, _, count in given_entries], pa.int64()),
        }
    )
    return ArrowBag(table)


def content(bag: InMemoryBag | ArrowBag) -> Counter[tuple[int, tuple[Any, ...]]]:
    """Return what a bag holds, whatever it is made of."""
    total: Counter[tuple[int, tuple[Any, ...]]] = Counter()
    if isinstance(bag, InMemoryBag):
        total.update(bag.entries)
    else:
        for row in bag.table.to_pylist():
            total[row["_tick"], (row["a"], row["b"])] += row["_count"]
    return Counter({entry: count for entry, count in total.items() if count})


IMPLEMENTATIONS = pytest.mark.parametrize("make", [in_memory, on_arrow])
Make = Callable[[Entries], Any]


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries, b=entries)
def test_plus_commutes(make: Make, a: Entries, b: Entries) -> None:
    assert content(make(a).plus(make(b))) == content(make(b).plus(make(a)))


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries)
def test_a_bag_and_its_negation_cancel(make: Make, a: Entries) -> None:
    assert len(make(a).plus(make(a).negated()).net()) == 0


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries)
def test_netting_keeps_the_content_and_leaves_nothing_to_net(make: Make, a: Entries) -> None:
    netted = make(a).net()
    assert content(netted) == content(make(a))
    assert len(netted) == len(content(netted))
    assert content(netted.net()) == content(netted)


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries)
def test_a_bag_is_what_came_and_what_went(make: Make, a: Entries) -> None:
    came, went = make(a).positive(), make(a).negated().positive()
    assert all(count > 0 for count in (*content(came).values(), *content(went).values()))
    assert content(came.plus(went.negated())) == content(make(a))
    assert len(came) == len(content(came))


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries, tick=st.integers(0, 4))
def test_a_bag_is_what_it_has_up_to_a_tick_and_after_it(make: Make, a: Entries, tick: int) -> None:
    before, later = make(a).upto(Tick(tick)), make(a).after(Tick(tick))
    assert content(before.plus(later)) == content(make(a))
    assert all(one <= tick for one in before.ticks())
    assert all(one > tick for one in later.ticks())
    assert make(a).net().ticks() == sorted({one for one, _ in content(make(a))})


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries, b=entries)
def test_picking_columns_is_linear(make: Make, a: Entries, b: Entries) -> None:
    picked = make(a).plus(make(b)).picked(("b",))
    assert picked.columns == ("b",)
    only = [(tick, (second, second), count) for tick, (_, second), count in [*a, *b]]
    assert len(picked.net()) == len(make(only).net())
    assert len(make(a).picked(("b",)).plus(make(b).picked(("b",))).plus(picked.negated()).net()) == 0


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries)
def test_groups_are_values_that_may_be_null(make: Make, a: Entries) -> None:
    bag = make(a)
    assert len(bag.groups(("a",))) == len({row[0] for _, row, _ in a})
    assert content(bag.matching(("a",), bag.groups(("a",)))) == content(bag)


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries, b=entries, k=entries)
def test_matching_is_linear(make: Make, a: Entries, b: Entries, k: Entries) -> None:
    for columns in (("a",), ("a", "b")):
        keys = make(k).keys(columns, make([]), columns)
        together = make(a).plus(make(b)).matching(columns, keys)
        assert content(together) == content(make(a).matching(columns, keys).plus(make(b).matching(columns, keys)))


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries, compare=st.sampled_from(sorted(COMPARE)), value=st.integers(0, 2))
def test_selected_keeps_the_rows_that_pass(make: Make, a: Entries, compare: str, value: int) -> None:
    kept = make(a).selected(Extent.of([Selection(column="b", compare=compare, values=(value,))]))
    passing = [(tick, row, n) for tick, row, n in a if row[1] is not None and COMPARE[compare](row[1], value)]
    assert content(kept) == content(make(passing))


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries)
def test_selected_passes_all_selections_by_any_of_several_values(make: Make, a: Entries) -> None:
    either = Selection(column="a", compare="equal", values=(0, 2))
    kept = make(a).selected(Extent.of([either, Selection(column="b", compare="less", values=(2,))]))
    assert content(kept) == content(make([e for e in a if e[1][0] in (0, 2) and e[1][1] in (0, 1)]))


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries)
def test_selected_passes_any_of_several_lists(make: Make, a: Entries) -> None:
    low = [Selection(column="a", compare="less", values=(1,))]
    high = [Selection(column="b", compare="greater", values=(1,)), Selection(column="a", compare="equal", values=(2,))]
    kept = make(a).selected(Extent.of(low, high))
    assert content(kept) == content(make([e for e in a if e[1][0] == 0 or e[1] == (2, 2)]))
    assert content(make(a).selected(EVERYTHING)) == content(make(a))
    assert content(make(a).selected(NOTHING)) == Counter()


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries, k=entries)
def test_null_matches_nothing(make: Make, a: Entries, k: Entries) -> None:
    keys = make(k).keys(("a",), make([]), ("a",))
    assert all(row[0] is not None for _, row in content(make(a).matching(("a",), keys)))


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries, k=entries, m=entries)
def test_keys_without_and_plus_are_those_of_sets(make: Make, a: Entries, k: Entries, m: Entries) -> None:
    for columns in (("b",), ("a", "b")):
        first, second = (make(one).keys(columns, make([]), columns) for one in (k, m))
        both, only = first.plus(second), first.without(second)
        rows = make(a)
        assert len(only) == len(both) - len(second)
        assert content(rows.matching(columns, both)) == content(
            rows.matching(columns, only).plus(rows.matching(columns, second))
        )


@IMPLEMENTATIONS
@settings(deadline=None)
@given(a=entries, k=entries, m=entries)
def test_widest_unites_two_exact_parts_of_one_bag(make: Make, a: Entries, k: Entries, m: Entries) -> None:
    old = make([(1, row, abs(count)) for _, row, count in a]).net()
    first, second = (make(one).keys(("a",), make([]), ("a",)) for one in (k, m))
    united = old.matching(("a",), first).widest(old.matching(("a",), second))
    assert content(united) == content(old.matching(("a",), first.plus(second)))


@settings(deadline=None)
@given(a=entries)
def test_differential_both_implementations_agree(a: Entries) -> None:
    assert content(in_memory(a).restamped(Tick(9)).net()) == content(on_arrow(a).restamped(Tick(9)).net())


def test_keys_are_cast_to_the_type_they_are_looked_up_in_and_those_that_do_not_fit_are_dropped() -> None:
    large = on_arrow([(1, (1, 2**40), 1), (1, (1, 7), 1)])
    keys = large.keys(("b",), on_arrow([]), ("a",))
    assert keys.table.schema.field("a").type == pa.int32()
    assert keys.table["a"].to_pylist() == [7]


def test_rows_with_arrays_are_netted_by_value() -> None:
    rows = pa.table({"a": pa.array([[1, 2], [1, 2], None]), "_tick": [1, 1, 1], "_count": [1, 1, 1]})
    assert sorted(ArrowBag(rows).net().table["_count"].to_pylist()) == [1, 2]
