"""Rows of segments that are not kept, all of them: computed on Spark from all that they read.

For where more of them are looked up than can be held (`computed_segment`): then computing a whole
segment costs no more than finding its rows group by group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.deltas.lookup import RowRequest, look_up
from headwater.deltas.on_spark import stamped_names
from headwater.deltas.stored_bag import Bag
from headwater.engine.state.runner import Runner
from headwater.engine.state.tick_lookup import TickLookup
from headwater.model.relation import RelationName, SegmentName
from headwater.views.steps.segments import SegmentedView


@dataclass(slots=True, kw_only=True)
class WholeSegments:
    """The rows of a view's segments as a reading of its relations shows them. Each is computed once."""

    view: SegmentedView
    reading: TickLookup
    runner: Runner
    _known: dict[RelationName, Bag] = field(default_factory=dict)

    def rows(self, name: RelationName) -> Bag:
        """Return all rows of a segment, netted, stamped with the tick of the reading."""
        if name not in self._known:
            segment = next(one for one in self.view.segments if one.name == name)
            names = stamped_names(segment.inputs)
            tables = {names[given]: self._input(given).plain() for given in segment.inputs}
            schema, tick = segment.relation.arrow_schema(), self.reading.tick
            found = self.runner.whole(segment.whole_sql(names), tables, schema, tick)
            self._known[name] = self.runner.settled(found.net())
        return self._known[name]

    def _input(self, name: RelationName) -> Bag:
        if not self.reading.holds(name):
            return self.rows(name)
        columns = self.view.relations.get(name)
        if isinstance(name, SegmentName):
            columns = next(one for one in self.view.segments if one.name == name).relation.column_names
        assert columns is not None, "a relation that is read has columns that are needed"
        return look_up(self.reading, RowRequest(relation=name, wanted=columns)).rows.net()
