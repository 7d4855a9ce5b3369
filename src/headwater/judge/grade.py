"""Name the guarantee that a history of view states keeps.

The right states of a view are what its SQL gives after every tick; where they come from is the caller's business, as
long as it is not the code that is judged. A history is what readers saw, in the order they saw it. Two ways to hold one
against the other:

- `grade`: every state a reader saw claims a tick, and must be the right state of *that* tick. This is what a warehouse
  promises, so a right state under a wrong tick is worth no more than weak.
- `grade_sequence`: states claim nothing, and are matched with the right ones by their order alone. This is how papers
  about maintenance define their levels, and what the lab uses for algorithms that know no ticks.

Stuttering is ignored on both sides: a transaction that does not change the view makes no new state, and a reader who
sees one state twice has seen it once.

    right states   A  B  B  C        complete     A B C
                                     strong       A C         (B skipped)
                                     weak         A C B       (order lost), A B (not at the end yet)
                                     convergent   A X C       (X was never right)
                                     none         A B X

Here the order is that of the ticks. The lab also grades against any order that keeps each source's
own (`headwater_lab/any_order`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from headwater.deltas.compare import Bag, Difference, RowKey, bag_key, difference
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick

BEFORE_ALL = Tick(0)
"""The tick before the first transaction: what a view born on an empty change log begins with."""

_StateKey: TypeAlias = frozenset[tuple[RowKey, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a reader saw, and the tick it was said to be the state of."""

    tick: Tick
    state: Bag


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The guarantee that held, over how many states, and where a better one was lost.

    `first_bad_tick` is the first tick whose right state was not shown as it should have been (None: complete);
    `difference` is what readers saw instead, or None where they saw nothing wrong but skipped it.
    """

    guarantee: Guarantee
    states_checked: int
    first_bad_tick: Tick | None = None
    difference: Difference | None = None

    def __str__(self) -> str:
        """Return the verdict as a person wants to read it."""
        states = "1 state" if self.states_checked == 1 else f"{self.states_checked} states"
        lines = [f"{self.guarantee.value}, {states} checked"]
        if self.first_bad_tick is not None:
            what = "differs" if self.difference else "was not shown in its turn"
            lines.append(f"tick {self.first_bad_tick} {what}")
        if self.difference:
            lines.extend(self.difference.text(line_limit=10).splitlines())
        return "\n  ".join(lines)


def grade(expected: Mapping[Tick, Bag], observed: Sequence[Observation]) -> Verdict:
    """Return the guarantee of a history whose states claim ticks.

    `expected` has the right state of every tick that is judged, `observed` is in the order readers saw it. A claim of a
    tick that has no right state (before the view's birth, past the end) is wrong.

    >>> right = {Tick(0): {}, Tick(1): {("a",): 1}, Tick(2): {("a",): 2}}
    >>> seen = [Observation(tick=tick, state=state) for tick, state in right.items()]
    >>> print(grade(right, seen))
    complete, 3 states checked
    >>> print(grade(right, [seen[0], seen[2]]))
    strong, 2 states checked
      tick 1 was not shown in its turn
    >>> print(grade(right, [*seen[:2], Observation(tick=Tick(2), state={("a",): 1, ("b",): 1})]))
    none, 3 states checked
      tick 2 differs
      missing 1 × ('a')
      surplus 1 × ('b')
    """
    assert expected, "there must be a right state to judge by"
    right = {tick: bag_key(expected[tick]) for tick in sorted(expected)}
    seen = [(observation.tick, bag_key(observation.state)) for observation in observed]
    ticks, last = tuple(right), tuple(right)[-1]

    wrong = [index for index, (tick, state) in enumerate(seen) if right.get(tick) != state]
    if wrong:
        first = min((observed[index] for index in wrong), key=lambda observation: observation.tick)
        level = _level_without_claims([right[tick] for tick in ticks], [state for _, state in seen])
        return Verdict(
            guarantee=min(level, Guarantee.WEAK),
            states_checked=len(observed),
            first_bad_tick=first.tick,
            difference=difference(expected.get(first.tick, {}), first.state) or None,
        )

    claimed = [tick for tick, _ in seen]
    backwards = next((after for before, after in pairwise(claimed) if after < before), None)
    at_the_end = bool(claimed) and right[claimed[-1]] == right[last]
    skipped = _first_skipped(right, set(claimed))
    if backwards is not None or not at_the_end:
        ends_right = Guarantee.WEAK if claimed else Guarantee.NONE
        bad = backwards if backwards is not None else skipped
        return Verdict(guarantee=ends_right, states_checked=len(observed), first_bad_tick=bad)
    if skipped is not None:
        return Verdict(guarantee=Guarantee.STRONG, states_checked=len(observed), first_bad_tick=skipped)
    return Verdict(guarantee=Guarantee.COMPLETE, states_checked=len(observed))


def grade_sequence(expected: Sequence[Bag], observed: Sequence[Bag], *, birth: Tick = BEFORE_ALL) -> Verdict:
    """Return the guarantee of a history whose states claim nothing.

    `expected[i]` is the right state of tick `birth + i`; both begin with the state the view was born with.

    >>> a, b, c = {("a",): 1}, {("b",): 1}, {("c",): 1}
    >>> histories = ([a, a, b, c], [a, c], [a, c, b], [a, {}, c], [{}])
    >>> [grade_sequence([a, b, b, c], seen).guarantee.value for seen in histories]
    ['complete', 'strong', 'weak', 'convergent', 'none']
    """
    assert expected, "there must be a right state to judge by"
    right, right_at = _without_stuttering(expected)
    seen, seen_at = _without_stuttering(observed)
    level = _level_without_claims(right, seen)
    if right == seen:
        return Verdict(guarantee=level, states_checked=len(observed))

    parting = next((i for i, (a, b) in enumerate(zip(right, seen, strict=False)) if a != b), min(len(right), len(seen)))
    if parting < len(seen) and seen[parting] not in right:
        candidates = right_at[parting:] or right_at[-1:]
        nearest = min(candidates, key=lambda index: difference(expected[index], observed[seen_at[parting]]).size)
        return Verdict(
            guarantee=level,
            states_checked=len(observed),
            first_bad_tick=Tick(birth + nearest),
            difference=difference(expected[nearest], observed[seen_at[parting]]),
        )
    return Verdict(
        guarantee=level,
        states_checked=len(observed),
        first_bad_tick=Tick(birth + right_at[min(parting, len(right) - 1)]),
    )


def _level_without_claims(right: Sequence[_StateKey], seen: Sequence[_StateKey]) -> Guarantee:
    """Name the level of states without stuttering. Where they stutter, only the levels up to weak are meant."""
    ends_right = bool(seen) and seen[-1] == right[-1]
    if right == seen:
        return Guarantee.COMPLETE
    if ends_right and _in_order(right, seen):
        return Guarantee.STRONG
    if seen and set(seen) <= set(right):
        return Guarantee.WEAK
    return Guarantee.CONVERGENT if ends_right else Guarantee.NONE


def _in_order(right: Sequence[_StateKey], seen: Sequence[_StateKey]) -> bool:
    remaining = iter(right)
    return all(state in remaining for state in seen)


def _without_stuttering(states: Sequence[Bag]) -> tuple[list[_StateKey], list[int]]:
    keys = [bag_key(state) for state in states]
    at = [index for index, key in enumerate(keys) if index == 0 or key != keys[index - 1]]
    return [keys[index] for index in at], at


def _first_skipped(right: Mapping[Tick, _StateKey], claimed: set[Tick]) -> Tick | None:
    """Return the first tick of the first run of equal right states in which no tick was claimed."""
    run_start: Tick | None = None
    run_shown = True
    previous: _StateKey | None = None
    for tick, state in right.items():
        if state != previous:
            if not run_shown:
                return run_start
            run_start, run_shown, previous = tick, False, state
        run_shown = run_shown or tick in claimed
    return None if run_shown else run_start
