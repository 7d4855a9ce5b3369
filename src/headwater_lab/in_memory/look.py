"""Look rows up in a view in plain Python: the twin for tests and the lab of what a warehouse does on Spark."""

from __future__ import annotations

from typing import Any

from headwater.deltas.lookup import RowRequest
from headwater.maintenance.published.messages import QueryPart, step_request
from headwater.views.steps.join import JoinView
from headwater.views.steps.keys import row_outputs
from headwater_lab.in_memory.bag import InMemoryBag
from headwater_lab.in_memory.install import State


def look_in_memory(view: JoinView, state: State, part: QueryPart[InMemoryBag]) -> tuple[RowRequest[Any], InMemoryBag]:
    """Return the rows of an occurrence that a view shows under some keys, each once, and the keys that were found."""
    (step,) = part.steps
    relation = view.occurrence(step.alias).relation.name
    places = row_outputs(view, step.alias)
    shown = {tuple(row[place] for place in places) for row in state}
    all_rows = InMemoryBag.of(view.relations[relation], ((0, row, 1) for row in shown))
    request = step_request(view, step, part.keys)
    assert request.keys is not None, "a view is asked by keys"
    rows = all_rows.matching(request.columns, request.keys)
    return request.with_keys(rows.keys(step.columns, rows, step.columns)), rows
