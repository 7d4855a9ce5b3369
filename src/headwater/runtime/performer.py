"""Perform an algorithm's questions: on live sources, in one snapshot each per batch, or in replicas.

The snapshots of a batch are opened first and the change log is followed past what they saw; only then is the end of the
batch chosen. So an answer never saw a transaction that the log does not know.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from headwater.deltas.on_arrow import ArrowBag, ArrowKeys
from headwater.errors import SourceUnavailable
from headwater.maintenance.questions import Answer, Ask, Probe, SawTransactions
from headwater.position import Position
from headwater.relation import COUNT, TICK, Relation, RelationName
from headwater.runtime.asked import ProbeCount
from headwater.runtime.replica_reader import ReplicaReader
from headwater.runtime.spark_jobs import shared
from headwater.sources.source import Snapshot, Source

_FOLLOW_SECONDS = 10.0


class Following(Protocol):
    """Whoever knows how far the sources' logs have been followed."""

    def wait_for(self, position: Position, timeout_seconds: float) -> bool:
        """Wait until the change log knows everything up to a position; tell whether it does."""
        ...


@dataclass(slots=True)
class Snapshots:
    """One snapshot of each source that a batch asks. A context manager."""

    sources: Mapping[str, Source]
    following: Following
    _open: dict[str, Snapshot] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        """Keep the snapshots for a block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close them all."""
        self._stack.close()

    def __contains__(self, name: str) -> bool:
        """Tell whether a source's snapshot is open."""
        return name in self._open

    def open(self, names: Iterable[str]) -> frozenset[str]:
        """Open snapshots of sources, then wait until the change log knows all that they saw.

        Return the sources that are away, or whose log cannot be followed so far: the batch is tried again without them.
        """
        opened = {}
        away = set()
        for name in names:
            try:
                opened[name] = self._stack.enter_context(self.sources[name].snapshot())
            except SourceUnavailable:
                away.add(name)
        for name, snapshot in opened.items():
            if self.following.wait_for(snapshot.position, _FOLLOW_SECONDS):
                self._open[name] = snapshot
            else:
                away.add(name)
        return frozenset(away)

    def sight(self, name: str) -> SawTransactions:
        """Return what the snapshot of a source saw."""
        return SawTransactions(seen=self._open[name].seen)

    def probe(self, relation: Relation, probe: Probe[ArrowKeys]) -> Answer[ArrowBag]:
        """Ask a source."""
        snapshot = self._open[relation.name.source]
        keys = pa.table({}) if probe.keys is None else probe.keys.table
        found = snapshot.probe(relation, probe.wanted, probe.columns, keys)
        ones = pa.repeat(pa.scalar(1, pa.int64()), found.num_rows)
        stamped = found.select(list(probe.wanted)).append_column(TICK, ones).append_column(COUNT, ones)
        return Answer(rows=ArrowBag(stamped), sight=self.sight(relation.name.source))

    def are_valid(self) -> bool:
        """Tell whether every server still is the one that was asked: a restart may lose what a snapshot saw."""
        return all(snapshot.is_valid() for snapshot in self._open.values())


class Performer:
    """Answers the questions of one view's sweep."""

    def __init__(
        self,
        relations: Mapping[RelationName, Relation],
        replicas: Mapping[RelationName, ReplicaReader],
        snapshots: Snapshots,
    ) -> None:
        """Look relations up in their replicas, and ask the sources for those that have none."""
        self._relations = relations
        self._replicas = replicas
        self._snapshots = snapshots
        self.asked: dict[RelationName, ProbeCount] = {}

    def __call__(self, ask: Ask[ArrowKeys]) -> Sequence[Answer[ArrowBag]]:
        """Answer the probes of one question, at once where there are several."""
        if len(ask.probes) == 1:
            answered = [self._answer(ask.probes[0])]
        else:
            with ThreadPoolExecutor(len(ask.probes)) as pool:  # a source lets in no more of them than its limit says
                answered = list(pool.map(shared(self._answer), ask.probes))
        for probe, (_, cost) in zip(ask.probes, answered, strict=True):
            if cost is not None:
                self.asked.setdefault(probe.relation, ProbeCount()).add(cost)
        return [answer for answer, _ in answered]

    def _answer(self, probe: Probe[ArrowKeys]) -> tuple[Answer[ArrowBag], ProbeCount | None]:
        """Return an answer and what asking a source for it cost; nothing is counted here, where threads meet."""
        started = time.perf_counter()
        replica = self._replicas.get(probe.relation)
        if replica is not None:
            return replica.lookup(probe.wanted, probe.columns, probe.keys), None
        answer = self._snapshots.probe(self._relations[probe.relation], probe)
        cost = ProbeCount(
            probe_count=1,
            key_count=0 if probe.keys is None else len(probe.keys),
            row_count=len(answer.rows),
            byte_count=answer.rows.table.nbytes,
            seconds=time.perf_counter() - started,
        )
        return answer, cost
