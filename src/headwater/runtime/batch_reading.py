"""Read rows as of the tick where a batch begins, for segments that are computed from them.

Relations are asked for as a sweep asks for them, in the batch's snapshots and replicas, and rebased; rows that nobody
needs are left out of answers and log alike. What is kept is looked up, lineage too: from lineage that is kept
of a join, its rows are found without its operands. So what is computed is what would be kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.on_arrow import ArrowBag
from headwater.lineage.reading import Found, Origin, Wish
from headwater.maintenance.questions import Ask, Log, Probe
from headwater.maintenance.rebase import rebase, refuse_negative
from headwater.position import Tick
from headwater.relation import COUNT, RelationName
from headwater.runtime.batch import Performer
from headwater.runtime.old_rows import OldRows, looked_up
from headwater.runtime.stored_segment import StoredSegment
from headwater.views.segments import SEGMENTS

_IN_MEMORY, _STORED, _ASKED = 1.0, 150.0, 500.0
"""Milliseconds for a lookup; whether a relation has a replica is not known here, so all are taken to be asked for."""


@dataclass(slots=True, kw_only=True)
class BatchReading:
    """Rows as of `tick`; `read` counts them."""

    tick: Tick
    log: Log[ArrowBag]
    perform: Performer
    kept: Mapping[RelationName, OldRows]
    read: Counter[RelationName] = field(default_factory=Counter)

    def rows(self, wish: Wish) -> Found | None:
        """Return the rows that are wished for; None for a segment that is not kept."""
        if wish.name.source != SEGMENTS:
            return self._found(wish, self._asked(wish), Origin.SOURCE)
        kept = self.kept.get(wish.name)
        return None if kept is None else self._found(wish, looked_up(kept, wish), Origin.HIDDEN_TABLE)

    def cost(self, name: RelationName, _key_count: int) -> float | None:
        """Return about how many milliseconds a lookup takes; None for a segment that is not kept."""
        if name.source != SEGMENTS:
            return _ASKED
        kept = self.kept.get(name)
        return None if kept is None else _STORED if isinstance(kept, StoredSegment) else _IN_MEMORY

    def _asked(self, wish: Wish) -> pa.Table:
        columns, keys = (wish.within.columns, wish.within.keys) if wish.within else ((), None)
        probe: Probe[Any] = Probe(relation=wish.name, wanted=wish.columns, columns=columns, keys=keys)
        [answer] = self.perform(Ask(probes=(probe,)))
        rows = rebase(probe, answer, self.log, self.tick).selected(wish.rows)
        refuse_negative(pc.sum(pc.less(rows.table[COUNT], 0)).as_py() or 0, str(wish.name), self.tick)
        return rows.table.select([*wish.columns, COUNT])

    def _found(self, wish: Wish, rows: pa.Table, origin: Origin) -> Found:
        self.read[wish.name] += rows.num_rows
        return Found(rows=rows, origin=origin)
