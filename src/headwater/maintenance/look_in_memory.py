"""Look rows up in a view in plain Python: the twin for tests and the lab of what a warehouse does on Spark."""

from __future__ import annotations

from headwater.deltas.in_memory import InMemoryBag, InMemoryKeys
from headwater.maintenance.install_in_memory import State
from headwater.maintenance.messages import Fragment, Part
from headwater.maintenance.questions import Probe
from headwater.views.keys import row_outputs
from headwater.views.normal_form import JoinView


def look_in_memory(view: JoinView, state: State, part: Part[InMemoryBag]) -> Fragment[InMemoryBag]:
    """Return the rows of an occurrence that a view shows under some keys, each once, and the keys that were found."""
    (step,) = part.steps
    relation = view.occurrence(step.alias).relation.name
    places = row_outputs(view, step.alias)
    shown = {tuple(row[place] for place in places) for row in state}
    all_rows = InMemoryBag.of(view.relations[relation], ((0, row, 1) for row in shown))
    assert isinstance(part.keys, InMemoryKeys), "a look goes by keys"
    rows = all_rows.matching(step.columns, part.keys)
    keys = rows.keys(step.columns, rows, step.columns)
    probe = Probe(relation=relation, wanted=view.relations[relation], columns=step.columns, keys=keys)
    return Fragment(probe=probe, rows=rows)
