"""The law in plain Python, in its other form: one term per occurrence. The twin for tests and the lab.

    change of V = sum over p of  {entries stamped s at p}  join over o<p {stamp <= s}  join over o>p {stamp < s}

A combination's largest stamp is reached first, from the right, at exactly one occurrence p, so it counts once. `<=`
everywhere counts it for every occurrence that reaches it; `<` everywhere never counts one that two occurrences reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.in_memory.bag import InMemoryBag, Row
from headwater_lab.in_memory.evaluate import evaluate

_Binding = dict[tuple[str, str], Any]


def meets(other: Tick, other_index: int, s: Tick, p: int) -> bool:
    """Tell whether an entry of another occurrence takes part in the term of tick s at occurrence p."""
    return other <= s if other_index < p else other < s


def change_in_memory(view: JoinView, bags: Mapping[RelationName, InMemoryBag], lo: Tick) -> InMemoryBag:
    """Return the view's signed rows, each stamped with the tick at which it comes or goes."""
    names = tuple(output.name for output in view.outputs)
    raw = InMemoryBag.of(("binding",), _terms(view, bags, lo)).net()
    return InMemoryBag.of(names, _finish(view, raw)).net()


def _terms(view: JoinView, bags: Mapping[RelationName, InMemoryBag], lo: Tick) -> Iterator[tuple[int, Row, int]]:
    for p, start in enumerate(view.occurrences):
        for (s, row), count in bags[start.relation.name].entries.items():
            if s > lo:
                binding = {
                    (start.alias, column): value
                    for column, value in zip(bags[start.relation.name].columns, row, strict=True)
                }
                yield from _extend(view, bags, s, p, 0, binding, count)


def _extend(
    view: JoinView, bags: Mapping[RelationName, InMemoryBag], s: Tick, p: int, index: int, binding: _Binding, count: int
) -> Iterator[tuple[int, Row, int]]:
    if index == len(view.occurrences):
        yield s, (tuple(sorted(binding.items())),), count
        return
    if index == p:
        yield from _extend(view, bags, s, p, index + 1, binding, count)
        return
    occurrence = view.occurrences[index]
    bag = bags[occurrence.relation.name]
    for (stamp, row), times in bag.entries.items():
        if meets(stamp, index, s, p):
            bound = binding | {
                (occurrence.alias, column): value for column, value in zip(bag.columns, row, strict=True)
            }
            if _holds(view, bound, fallible=False):
                yield from _extend(view, bags, s, p, index + 1, bound, count * times)


def _holds(view: JoinView, binding: _Binding, *, fallible: bool) -> bool:
    aliases = {alias for alias, _ in binding}
    return all(
        evaluate(condition.expression, binding) is True
        for condition in view.conditions
        if condition.aliases <= aliases and condition.fallible == fallible
    )


def _finish(view: JoinView, raw: InMemoryBag) -> Iterator[tuple[int, Row, int]]:
    """Evaluate what can fail, on combinations that really were: those that did not cancel out."""
    for (tick, (items,)), count in raw.entries.items():
        binding = dict(items)
        if _holds(view, binding, fallible=False) and _holds(view, binding, fallible=True):
            yield tick, tuple(evaluate(output.expression, binding) for output in view.outputs), count
