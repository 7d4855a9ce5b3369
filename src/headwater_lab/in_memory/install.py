"""Install a change in plain Python: the twin for tests and the lab of what Spark does for a warehouse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.maintenance.published.messages import Install
from headwater.maintenance.published.terms import Term, steps_to
from headwater.views.steps.join import Condition, JoinView
from headwater.views.steps.keys import key_outputs, shown_places
from headwater_lab.in_memory.bag import InMemoryBag, InMemoryKeys, Row
from headwater_lab.in_memory.evaluate import evaluate

_Column = tuple[str, str]
_Binding = dict[_Column, Any]
State = Counter[Row]


def install_in_memory(view: JoinView, state: State, install: Install[InMemoryBag]) -> State:
    """Return a view's rows after an install."""
    after = Counter({row: count for row, count in state.items() if not _is_removed(view, row, install)})
    for alias, rows in install.modified.items():
        after = _modified(view, after, alias, rows)
    gained = sum_of_terms(view, install.terms)
    if install.distinct:
        gained = Counter({row: 1 for row, count in gained.items() if count > 0 and not after[row]})
    for row, count in gained.items():
        after[row] += count
    return Counter({row: count for row, count in after.items() if count})


def _modified(view: JoinView, state: State, alias: str, rows: InMemoryBag) -> State:
    """Return a view's rows with new columns of an occurrence, where it has a new row under the same key."""
    places = key_outputs(view, alias)
    columns = [rows.columns.index(column) for column in view.occurrence(alias).relation.key]
    new = {tuple(row[place] for place in columns): row for _, row in rows.entries}
    shown = {place: rows.columns.index(column) for place, column in shown_places(view, alias).items()}
    after: State = Counter()
    for row, count in state.items():
        other = new.get(tuple(row[place] for place in places))
        values = row if other is None else (other[shown[at]] if at in shown else old for at, old in enumerate(row))
        after[tuple(values)] += count
    return after


def _is_removed(view: JoinView, row: Row, install: Install[InMemoryBag]) -> bool:
    for alias, keys in install.removed.items():
        assert isinstance(keys, InMemoryKeys)
        places = key_outputs(view, alias)
        if tuple(row[place] for place in places) in keys.values:
            return True
    return False


def sum_of_terms(view: JoinView, terms: tuple[Term[InMemoryBag], ...]) -> State:
    """Return the signed rows that terms give, whatever their ticks."""
    joins = _joins(view)
    raw: Counter[frozenset[tuple[_Column, Any]]] = Counter()
    for term in terms:
        for binding, count in _combine(joins, term.bound):
            raw[frozenset(binding.items())] += count
    fallible = [condition for condition in view.conditions if condition.fallible]
    total: State = Counter()
    for items, count in raw.items():
        binding = dict(items)
        if count and _holds(fallible, binding):
            total[tuple(evaluate(output.expression, binding) for output in view.outputs)] += count
    return Counter({row: count for row, count in total.items() if count})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Join:
    """How one occurrence joins those before it: by these equal columns, and under what can be tested from then on."""

    alias: str
    columns: tuple[str, ...]
    equal_to: tuple[_Column, ...]
    conditions: tuple[Condition, ...]


def _joins(view: JoinView) -> list[_Join]:
    joins: list[_Join] = []
    visited: set[str] = set()
    for occurrence in view.occurrences:
        alias = occurrence.alias
        steps = steps_to(view, alias, visited)
        tested_before = {id(condition) for join in joins for condition in join.conditions}
        visited.add(alias)
        join = _Join(
            alias=alias,
            columns=tuple(column for step in steps for column in step.columns),
            equal_to=tuple((str(step.via), column) for step in steps for column in step.via_columns),
            conditions=tuple(
                condition
                for condition in view.conditions
                if condition.aliases <= visited and not condition.fallible and id(condition) not in tested_before
            ),
        )
        joins.append(join)
    return joins


def _combine(joins: list[_Join], bags: Mapping[str, InMemoryBag]) -> list[tuple[_Binding, int]]:
    """Join an occurrence's rows to those before it, one occurrence after another: hashed, then tested."""
    found: list[tuple[_Binding, int]] = [({}, 1)]
    for join in joins:
        if not found:
            break
        by_key = _by_key(join, bags[join.alias])
        found = [
            (bound, count * times)
            for binding, count in found
            for row, times in by_key.get(tuple(binding[column] for column in join.equal_to), ())
            if _holds(join.conditions, bound := binding | row)
        ]
    return found


def _by_key(join: _Join, bag: InMemoryBag) -> dict[Row, list[tuple[_Binding, int]]]:
    """Return the rows of an occurrence by the values it is joined on. NULL joins nothing."""
    names = [(join.alias, column) for column in bag.columns]
    places = [bag.columns.index(column) for column in join.columns]
    rows: dict[Row, list[tuple[_Binding, int]]] = {}
    for (_, row), times in bag.entries.items():
        key = tuple(row[place] for place in places)
        if times and None not in key:
            rows.setdefault(key, []).append((dict(zip(names, row, strict=True)), times))
    return rows


def _holds(conditions: Iterable[Condition], binding: _Binding) -> bool:
    return all(evaluate(condition.expression, binding) is True for condition in conditions)
