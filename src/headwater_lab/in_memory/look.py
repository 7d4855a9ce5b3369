"""Look rows up in a view in plain Python: the twin for tests and the lab of what a warehouse does on Spark."""

from __future__ import annotations

from headwater.deltas.lookup import RowRequest, restricted
from headwater.maintenance.published.messages import Fragment, QueryPart
from headwater.views.steps.join import JoinView
from headwater.views.steps.keys import row_outputs
from headwater_lab.in_memory.bag import InMemoryBag, InMemoryKeys
from headwater_lab.in_memory.install import State


def look_in_memory(view: JoinView, state: State, part: QueryPart[InMemoryBag]) -> Fragment[InMemoryBag]:
    """Return the rows of an occurrence that a view shows under some keys, each once, and the keys that were found."""
    (step,) = part.steps
    relation = view.occurrence(step.alias).relation.name
    places = row_outputs(view, step.alias)
    shown = {tuple(row[place] for place in places) for row in state}
    all_rows = InMemoryBag.of(view.relations[relation], ((0, row, 1) for row in shown))
    assert isinstance(part.keys, InMemoryKeys), "a look goes by keys"
    rows = all_rows.matching(step.columns, part.keys)
    keys = rows.keys(step.columns, rows, step.columns)
    probe = RowRequest(relation=relation, wanted=view.relations[relation], within=restricted(step.columns, keys))
    return Fragment(request=probe, rows=rows)
