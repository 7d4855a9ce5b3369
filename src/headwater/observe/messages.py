"""What was asked of the sources since a maintainer began, by view and source: the messages that maintenance costs.

And how often nothing had to be asked, by views that decide that batch by batch, and how far first readings have come.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from headwater.model.relation import RelationName
from headwater.observe.events import BootstrapProgress, Event, ProbeAnswered, SelfMaintenanceTested
from headwater.observe.status import MessageCount, RelationReading, SelfMaintenanceCount


class Messages:
    """Counts probes and answers. A listener, which may be called on any thread."""

    def __init__(self) -> None:
        """Begin at zero, now."""
        self.since = datetime.now(UTC)
        self._counts: dict[tuple[str, str], MessageCount] = {}
        self._tested: dict[str, SelfMaintenanceCount] = {}
        self._reading: dict[RelationName, BootstrapProgress] = {}
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Add what a source answered.

        >>> from headwater.model.relation import RelationName
        >>> sales = RelationName(source="shop", name="sales")
        >>> answered = ProbeAnswered(view="v", relation=sales, probe_count=2, key_count=9, row_count=30, byte_count=700,
        ...                          corrected_row_count=1, seconds=0.01)
        >>> messages = Messages()
        >>> for event in (answered, answered): messages(event)
        >>> messages.counts()
        [MessageCount(probe_count=4, key_count=18, row_count=60, byte_count=1400, corrected_row_count=2, \
source='shop', view='v')]
        """
        match event:
            case ProbeAnswered():
                self._add_answer(event)
            case SelfMaintenanceTested():
                self._add_test(event)
            case BootstrapProgress():
                self._note_reading(event)
            case _:
                pass

    def _add_answer(self, event: ProbeAnswered) -> None:
        key = (event.relation.source, event.view)
        with self._lock:
            self._counts[key] = self._counts.get(key, MessageCount(source=key[0], view=key[1])) + event

    def _add_test(self, event: SelfMaintenanceTested) -> None:
        with self._lock:
            count = self._tested.get(event.view, SelfMaintenanceCount(view=event.view))
            self._tested[event.view] = replace(
                count,
                batch_count=count.batch_count + 1,
                unasked_count=count.unasked_count + event.suffices,
                known_key_count=count.known_key_count + event.known_key_count,
            )

    def _note_reading(self, event: BootstrapProgress) -> None:
        with self._lock:
            self._reading.pop(event.relation, None)
            if not event.finished:
                self._reading[event.relation] = event

    def reading(self, source: str) -> Sequence[RelationReading]:
        """Return how far the relations of a source are read that are being read for the first time."""
        with self._lock:
            progress = [one for name, one in sorted(self._reading.items()) if name.source == source]
        return [
            RelationReading(
                relation=str(one.relation),
                rows_read=one.rows_read,
                rows_estimated=one.rows_estimated,
                rows_per_second=one.rows_per_second,
                seconds_left=one.seconds_left,
            )
            for one in progress
        ]

    def tested(self) -> Sequence[SelfMaintenanceCount]:
        """Return how often views decided whether to ask, by view."""
        with self._lock:
            return [self._tested[view] for view in sorted(self._tested)]

    def counts(self) -> Sequence[MessageCount]:
        """Return the counts by source and view."""
        with self._lock:
            return [self._counts[key] for key in sorted(self._counts)]
