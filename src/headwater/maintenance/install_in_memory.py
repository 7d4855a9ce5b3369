"""Install a change in plain Python: the twin for tests and the lab of what Spark does for a warehouse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from headwater.deltas.in_memory import InMemoryBag, InMemoryKeys, Row
from headwater.maintenance.messages import Install
from headwater.maintenance.terms import Term
from headwater.views.evaluate import evaluate
from headwater.views.keys import key_outputs
from headwater.views.normal_form import JoinView

_Binding = dict[tuple[str, str], Any]
State = Counter[Row]


def install_in_memory(view: JoinView, state: State, install: Install[InMemoryBag]) -> State:
    """Return a view's rows after an install."""
    after = Counter({row: count for row, count in state.items() if not _is_removed(view, row, install)})
    gained = sum_of_terms(view, install.terms)
    if install.distinct:
        gained = Counter({row: 1 for row, count in gained.items() if count > 0 and not after[row]})
    for row, count in gained.items():
        after[row] += count
    return Counter({row: count for row, count in after.items() if count})


def _is_removed(view: JoinView, row: Row, install: Install[InMemoryBag]) -> bool:
    for alias, keys in install.removed.items():
        assert isinstance(keys, InMemoryKeys)
        places = key_outputs(view, alias)
        if tuple(row[place] for place in places) in keys.values:
            return True
    return False


def sum_of_terms(view: JoinView, terms: tuple[Term[InMemoryBag], ...]) -> State:
    """Return the signed rows that terms give, whatever their ticks."""
    raw: Counter[Row] = Counter()
    for term in terms:
        for binding, count in _combine(view, term.bound, 0, {}, 1):
            raw[tuple(sorted(binding.items()))] += count
    total: State = Counter()
    for items, count in raw.items():
        binding = dict(items)
        if count and _holds(view, binding, set(), fallible=True):
            total[tuple(evaluate(output.expression, binding) for output in view.outputs)] += count
    return Counter({row: count for row, count in total.items() if count})


def _combine(
    view: JoinView, bags: Mapping[str, InMemoryBag], index: int, binding: _Binding, count: int
) -> Iterator[tuple[_Binding, int]]:
    if index == len(view.occurrences):
        yield binding, count
        return
    alias = view.occurrences[index].alias
    bag = bags[alias]
    for (_, row), times in bag.entries.items():
        bound = binding | {(alias, column): value for column, value in zip(bag.columns, row, strict=True)}
        if times and _holds(view, bound, {alias}, fallible=False):
            yield from _combine(view, bags, index + 1, bound, count * times)


def _holds(view: JoinView, binding: _Binding, latest: set[str], *, fallible: bool) -> bool:
    """Tell whether the conditions hold that can be tested now, and could not before the latest alias was bound."""
    aliases = {alias for alias, _ in binding}
    return all(
        evaluate(condition.expression, binding) is True
        for condition in view.conditions
        if condition.fallible == fallible
        and condition.aliases <= aliases
        and (not latest or condition.aliases & latest or not condition.aliases)
    )
