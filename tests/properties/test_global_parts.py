"""Parts become ticks as the law says, whatever the order of arrival; the law is told here by reachability alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.changelog.global_parts import Arrived, GlobalParts

SOURCES = ("a", "b", "c")
IDS = ("X", "Y", "Z")


class Committed(NamedTuple):
    source: str
    number: int
    ids: frozenset[str]


@st.composite
def histories(draw: st.DrawFn) -> tuple[Sequence[str], list[Committed]]:
    """Sources, and what they commit in the order of arrival; with few ids, so that they cross, repeat and stay open."""
    sources = draw(st.sampled_from([SOURCES, SOURCES[:2]]))
    some_ids = st.one_of(st.just(frozenset[str]()), st.frozensets(st.sampled_from(IDS), min_size=1, max_size=2))
    counts: Counter[str] = Counter()
    arrivals = []
    for source, ids in draw(st.lists(st.tuples(st.sampled_from(sources), some_ids), max_size=14)):
        arrivals.append(Committed(source=source, number=counts[source], ids=ids))
        counts[source] += 1
    return sources, arrivals


def right_ticks(sources: Sequence[str], arrived: Sequence[Committed]) -> set[frozenset[Committed]]:
    """Return what must have become ticks: cycles of "not after" below which nothing is missing."""
    places: dict[tuple[str, str], list[Committed]] = defaultdict(list)
    for one in sorted(arrived, key=lambda one: one.number):
        for each in one.ids:
            places[one.source, each].append(one)
    needs: dict[Committed, set[Committed | None]] = {one: set() for one in arrived}
    lines: dict[str, list[Committed]] = defaultdict(list)
    for one in sorted(arrived, key=lambda one: one.number):
        if lines[one.source]:
            needs[one].add(lines[one.source][-1])
        lines[one.source].append(one)
        for each in one.ids:
            turn = places[one.source, each].index(one)
            for source in sources:
                others = places[source, each]
                needs[one].add(others[turn] if turn < len(others) else None)
    reachable: dict[Committed, set[Committed | None]] = {}
    for one in arrived:
        seen: set[Committed | None] = set()
        todo: list[Committed | None] = [one]
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                todo += needs[here] if here is not None else ()
        reachable[one] = seen
    whole = [one for one in arrived if None not in reachable[one]]
    return {frozenset(other for other in whole if other in reachable[one] and one in reachable[other]) for one in whole}


def arrive(parts: GlobalParts[Committed], one: Committed) -> list[list[Committed]]:
    ticks = parts.arrive(Arrived(source=one.source, ids=one.ids, value=one))
    return [[part.value for part in tick] for tick in ticks]


@settings(max_examples=400, deadline=None)
@given(histories())
def test_ticks_are_the_cycles_of_the_order_and_come_as_soon_as_they_can(
    history: tuple[Sequence[str], list[Committed]],
) -> None:
    sources, arrivals = history
    parts: GlobalParts[Committed] = GlobalParts(sources)
    given_out: list[list[Committed]] = []
    for count, one in enumerate(arrivals, 1):
        given_out += arrive(parts, one)
        assert {frozenset(tick) for tick in given_out} == right_ticks(sources, arrivals[:count])
    flat = [one for tick in given_out for one in tick]
    assert len(flat) == len(set(flat)), "nothing twice"
    for source in sources:
        numbers = [one.number for one in flat if one.source == source]
        assert numbers == list(range(len(numbers))), "one source's order is kept"
        left = [waiting.value.number for waiting in parts.waiting(source)]
        assert left == list(range(len(numbers), sum(one.source == source for one in arrivals))), "nothing is lost"
    assert bool(parts.incomplete()) == (len(flat) < len(arrivals)), "whatever waits, waits for a part that is shown"


@st.composite
def orders(draw: st.DrawFn) -> tuple[Sequence[str], list[Committed]]:
    """Many global transactions, each in every source, in orders that differ a little or a lot; and others between."""
    sources = draw(st.sampled_from([SOURCES, SOURCES[:2]]))
    count, spread = draw(st.integers(2, 12)), draw(st.integers(0, 4))
    arrivals: list[tuple[float, str, frozenset[str]]] = []
    for source in sources:
        for each in range(count):
            at = each + draw(st.integers(0, spread))
            arrivals.append((at, source, frozenset({str(each)})))
            if draw(st.booleans()):
                arrivals.append((at + 0.5, source, frozenset()))
    numbers: Counter[str] = Counter()
    committed = []
    for _, source, ids in sorted(arrivals, key=lambda one: one[0]):
        committed.append(Committed(source=source, number=numbers[source], ids=ids))
        numbers[source] += 1
    return sources, committed


@settings(max_examples=200, deadline=None)
@given(orders())
def test_no_tick_is_larger_than_the_crossings_make_it(history: tuple[Sequence[str], list[Committed]]) -> None:
    sources, arrivals = history
    parts: GlobalParts[Committed] = GlobalParts(sources)
    given_out = [tick for one in arrivals for tick in arrive(parts, one)]
    assert sum(map(len, given_out)) == len(arrivals)
    assert {frozenset(tick) for tick in given_out} == right_ticks(sources, arrivals)


def test_a_chain_is_no_cycle_however_much_is_held() -> None:
    parts: GlobalParts[Committed] = GlobalParts(["a", "b"])
    names = [str(number) for number in range(200)]
    here = [Committed(source="a", number=number, ids=frozenset({name})) for number, name in enumerate(names)]
    there = [Committed(source="b", number=number, ids=frozenset({name})) for number, name in enumerate(names)]
    assert [tick for one in here for tick in arrive(parts, one)] == []
    ticks = [arrive(parts, one) for one in there]
    assert ticks == [[[one, other]] for one, other in zip(here, there, strict=True)]


def test_what_is_held_is_not_looked_at_again_with_every_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one here is the first one there, so all are one tick: when it is given out, each was looked at twice."""
    looked = 0
    partners = GlobalParts._partners

    def counted(self: GlobalParts[Committed], source: str, number: int) -> Iterator[tuple[str, int | None]]:
        nonlocal looked
        looked += 1
        return partners(self, source, number)

    monkeypatch.setattr(GlobalParts, "_partners", counted)
    parts: GlobalParts[Committed] = GlobalParts(["a", "b"])
    count = 400
    orders = {"a": range(count), "b": [count - 1, *range(count - 1)]}
    ticks = []
    for source, order in orders.items():
        for number, each in enumerate(order):
            ticks += arrive(parts, Committed(source=source, number=number, ids=frozenset({str(each)})))
    assert [len(tick) for tick in ticks] == [2 * count]
    assert looked < 10 * count


@settings(max_examples=200, deadline=None)
@given(histories(), st.permutations(IDS), st.data())
def test_released_ids_hold_nothing_and_everything_comes_out_in_order(
    history: tuple[Sequence[str], list[Committed]], ids: list[str], data: st.DataObject
) -> None:
    sources, arrivals = history
    parts: GlobalParts[Committed] = GlobalParts(sources)
    given_out: list[list[Committed]] = []
    releases = dict(zip(ids, sorted(data.draw(st.tuples(*[st.integers(0, len(arrivals))] * len(IDS)))), strict=True))
    for count in range(len(arrivals) + 1):
        for each in (each for each, at in releases.items() if at == count):
            given_out += [[part.value for part in tick] for tick in parts.release(each)]
        if count < len(arrivals):
            given_out += arrive(parts, arrivals[count])
    assert not parts.incomplete()
    flat = [one for tick in given_out for one in tick]
    for source in sources:
        assert [one for one in flat if one.source == source] == [one for one in arrivals if one.source == source]


def test_whoever_is_released_from_the_start_goes_alone() -> None:
    parts: GlobalParts[Committed] = GlobalParts(SOURCES, released=["X"])
    one = Committed(source="a", number=0, ids=frozenset({"X"}))
    assert arrive(parts, one) == [[one]]
    later = Committed(source="b", number=0, ids=frozenset({"X"}))
    assert arrive(parts, later) == [[later]]


def test_crossing_orders_become_one_tick_with_what_lies_between() -> None:
    parts: GlobalParts[Committed] = GlobalParts(["a", "b"])
    committed = [("a", "X"), ("a", ""), ("a", "Y"), ("b", "Y"), ("b", "X"), ("b", "")]
    numbers: Counter[str] = Counter()
    ticks = []
    for source, each in committed:
        one = Committed(source=source, number=numbers[source], ids=frozenset({each} - {""}))
        numbers[source] += 1
        ticks += arrive(parts, one)
    assert [len(tick) for tick in ticks] == [5, 1]


def test_a_released_part_does_not_share_the_tick_that_waited_behind_it() -> None:
    parts: GlobalParts[Committed] = GlobalParts(["a", "b"])
    here = Committed(source="a", number=0, ids=frozenset({"Y"}))
    released = Committed(source="b", number=0, ids=frozenset({"X"}))
    there = Committed(source="b", number=1, ids=frozenset({"Y"}))
    assert [arrive(parts, one) for one in (here, released, there)] == [[], [], []]
    ticks = [[part.value for part in tick] for tick in parts.release("X")]
    assert ticks == [[released], [here, there]]


def test_a_released_part_no_longer_needs_what_it_needed() -> None:
    parts: GlobalParts[Committed] = GlobalParts(SOURCES)
    first = Committed(source="a", number=0, ids=frozenset({"X"}))
    before = Committed(source="b", number=0, ids=frozenset({"Y"}))
    partner = Committed(source="b", number=1, ids=frozenset({"X"}))
    assert [arrive(parts, one) for one in (before, partner, first)] == [[], [], []]
    ticks = [[part.value for part in tick] for tick in parts.release("X")]
    assert ticks == [[first]], "what waits at b for others is no longer its business"
