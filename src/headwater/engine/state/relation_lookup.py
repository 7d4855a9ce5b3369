"""Look up rows of relations: at live sources, in one snapshot each per batch, or in replicas.

The snapshots of a batch are opened first and the change log is followed past what they saw; only then is the end of the
batch chosen. Readers of a source that cannot share a snapshot see more than that: the log is followed past each of them
before its answer is used. So an answer never saw a transaction that the log does not know. A source that can be read as
of a position is read as of where the change log holds it, and nobody has to wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from headwater.deltas.lookup import Origin, SawTransactions, look_up
from headwater.deltas.stored_bag import BagLookup, BagRequest, BagResult
from headwater.engine.state.runner import Runner
from headwater.engine.state.source_lookup import SnapshotLookup
from headwater.errors import SourceUnavailable
from headwater.model.position import Positions
from headwater.model.relation import Relation, RelationName
from headwater.model.settings import DEFAULTS
from headwater.observe.probe_stats import ProbeStats
from headwater.sources.source import LogView, Snapshot, Source
from headwater.spark.jobs import shared


@dataclass(slots=True)
class Snapshots:
    """One snapshot of each source that a batch asks. A context manager."""

    sources: Mapping[str, Source]
    relations: Mapping[RelationName, Relation]
    log: LogView
    wait_seconds: float = DEFAULTS.batch.follow_wait_seconds
    runner: Runner | None = None
    """What keeps many rows that sources answer. Without, all are held."""
    _open: dict[str, Snapshot] = field(default_factory=dict)
    _sights: dict[str, SawTransactions] = field(default_factory=dict)
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
                opened[name] = self._opened(name)
            except SourceUnavailable:
                away.add(name)
        for name, (snapshot, sight, positions) in opened.items():
            if self.log.wait_for(positions, self.wait_seconds):
                self._open[name], self._sights[name] = snapshot, sight
            else:
                away.add(name)
        return frozenset(away)

    def _opened(self, name: str) -> tuple[Snapshot, SawTransactions, Positions]:
        """Open a snapshot of a source, and look what its first reader sees."""
        source, held = self.sources[name], self.log.held(name)
        names = [one for one in self.relations if one.source == name]
        at = held if source.abilities.reads_as_of and held else None
        snapshot = self._stack.enter_context(source.snapshot(names, at=at))
        with snapshot.reader() as reader:
            return snapshot, SawTransactions(seen=reader.seen), reader.positions

    def sight(self, name: str) -> SawTransactions:
        """Return what every reader of a source's snapshot sees at least."""
        return self._sights[name]

    def source(self, relation: Relation) -> SnapshotLookup:
        """Return the lookup of a relation in the snapshot of its source."""
        snapshot = self._open[relation.name.source]
        return SnapshotLookup(
            snapshot=snapshot,
            relations={relation.name: relation},
            log=self.log,
            wait_seconds=self.wait_seconds,
            runner=self.runner,
        )

    def are_valid(self) -> bool:
        """Tell whether every server still is the one that was asked: a restart may lose what a snapshot saw."""
        return all(snapshot.is_valid(self.log) for snapshot in self._open.values())


class CountedLookup(BagLookup, Protocol):
    """A lookup that counts what sources were asked."""

    @property
    def asked(self) -> ProbeStats:
        """What sources were asked."""
        ...

    @property
    def known_key_count(self) -> int | None:
        """How many keys were not asked for because their rows were known. None if that is not tried."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationLookup:
    """The rows of relations: in their replicas, and at the sources for those that have none."""

    relations: Mapping[RelationName, Relation]
    replicas: Mapping[RelationName, BagLookup]
    snapshots: Snapshots
    asked: ProbeStats = field(default_factory=ProbeStats)
    known_key_count: None = None

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request. Several are looked up at once."""
        if len(requests) == 1 or all(request.relation in self.replicas for request in requests):
            found = [self._found(request) for request in requests]  # a replica answers before a thread has begun
        else:
            with ThreadPoolExecutor(len(requests)) as pool:  # a source lets in no more of them than its limit says
                found = list(pool.map(shared(self._found), requests))
        for request, result in zip(requests, found, strict=True):
            if result.origin is Origin.SOURCE:
                self.asked.count(request, result)
        return found

    def _found(self, request: BagRequest) -> BagResult:
        """Return the rows of one request. Nothing is counted here, where threads meet."""
        replica = self.replicas.get(request.relation)
        return look_up(replica or self.snapshots.source(self.relations[request.relation]), request)
