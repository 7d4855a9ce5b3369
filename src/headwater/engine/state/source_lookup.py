"""Look rows up at a source: by one reader, or by a reader of a snapshot for each lookup.

An answer carries what its reader saw, and is used only once the change log holds all that this may have been.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.deltas.extent import WHOLE
from headwater.deltas.first_rows import limited
from headwater.deltas.indexed_rows import is_among
from headwater.deltas.lookup import NO_TICK, Origin, RowResult, SawTransactions
from headwater.deltas.on_arrow import ArrowBag, empty_table, split_by_null
from headwater.deltas.stored_bag import AnyKeys, BagRequest, BagResult
from headwater.engine.state.runner import Runner, Spool
from headwater.errors import SourceUnavailable
from headwater.model.position import Positions
from headwater.model.relation import Relation, RelationName
from headwater.sources.source import Chunk, LogView, Reader, Snapshot


def require_followed(log: LogView, positions: Positions, wait_seconds: float) -> None:
    """Wait until the change log holds all that a reader may have seen. Refuse its answers if that does not come."""
    if not log.wait_for(positions, wait_seconds):
        listed = ", ".join(map(str, positions.values()))
        raise SourceUnavailable(
            f"the log of a source cannot be followed to what was seen: {listed}",
            code="HW-530",
            detail=f"waited {wait_seconds:g} s",
            hint="it is asked again when the source answers",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLookup:
    """The rows of a source's relations as a snapshot shows them. Several threads may use it at once."""

    snapshot: Snapshot
    relations: Mapping[RelationName, Relation]
    log: LogView
    wait_seconds: float
    runner: Runner | None = None

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request, all as one reader shows them."""
        with self.snapshot.reader() as reader:
            found = SourceLookup(reader=reader, relations=self.relations, runner=self.runner).lookup(requests)
            require_followed(self.log, reader.positions, self.wait_seconds)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLookup:
    """The rows of a source's relations as one reader shows them."""

    reader: Reader
    relations: Mapping[RelationName, Relation]
    runner: Runner | None = None
    """What keeps many rows that are found. Without, all are held."""

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request, one entry for each row. No keys are not asked for."""
        return [limited(self._found(request), request) for request in requests]

    def _found(self, request: BagRequest) -> BagResult:
        started, byte_count = time.perf_counter(), 0
        relation = self.relations[request.relation]
        rows = Spool(schema=empty_table(relation.arrow_schema(request.wanted)).schema, runner=self.runner)
        for part in self._read(relation, request):
            byte_count += part.nbytes
            rows.add(ArrowBag.of_plain(part.select(list(request.wanted)), NO_TICK))
        return RowResult(
            rows=rows.bag(),
            sight=SawTransactions(seen=self.reader.seen),
            origin=Origin.SOURCE,
            seconds=time.perf_counter() - started,
            byte_count=byte_count,
        )

    def _read(self, relation: Relation, request: BagRequest) -> Iterator[pa.Table]:
        """Yield what a request finds. Many keys are asked for in several questions."""
        if request.within is None:
            yield from self.reader.read(relation, request.wanted, Chunk(number=0), WHOLE)
            return
        columns = request.within.columns
        for keys in self._key_parts(request.within.keys):
            for part in split_by_null(keys.rename_columns(list(columns))):
                if any(values.null_count for values in part.columns):
                    yield self._under_nulls(relation, request.wanted, part)
                else:
                    yield self.reader.probe(relation, request.wanted, columns, part)

    def _key_parts(self, keys: AnyKeys) -> Iterator[pa.Table]:
        if keys.held is not None:
            yield keys.held.table
            return
        assert self.runner is not None, "what looks up with keys that are stored runs queries on Spark"
        assert keys.stored is not None, "keys have one of two forms"
        yield from self.runner.key_parts(keys.stored)

    def _under_nulls(self, relation: Relation, wanted: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the rows under keys that have a NULL: a source is asked for values only, so the rest is done here."""
        valued = tuple(name for name in keys.column_names if not keys[name].null_count)
        needed = tuple(dict.fromkeys((*wanted, *keys.column_names)))
        values = keys.select(list(valued)).group_by(list(valued)).aggregate([]) if valued else pa.table({})
        rows = self.reader.probe(relation, needed, valued, values)
        return rows.filter(is_among(rows, tuple(keys.column_names), keys)).select(list(wanted))
