"""Look rows up at a source: by one reader, or by a reader of a snapshot for each lookup.

An answer carries what its reader saw, and is used only once the change log holds all that this may have been.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.deltas.first_rows import limited
from headwater.deltas.indexed_rows import is_among
from headwater.deltas.lookup import NO_TICK, Origin, RowResult, SawTransactions
from headwater.deltas.on_arrow import ArrowBag, ArrowRequest, ArrowResult, split_by_null
from headwater.errors import SourceUnavailable
from headwater.model.position import Positions
from headwater.model.relation import Relation, RelationName
from headwater.sources.source import LogView, Reader, Snapshot


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

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        """Return the rows of each request, all as one reader shows them."""
        with self.snapshot.reader() as reader:
            found = SourceLookup(reader=reader, relations=self.relations).lookup(requests)
            require_followed(self.log, reader.positions, self.wait_seconds)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLookup:
    """The rows of a source's relations as one reader shows them."""

    reader: Reader
    relations: Mapping[RelationName, Relation]

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        """Return the rows of each request, one entry for each row. No keys are not asked for."""
        return [limited(self._found(request), request) for request in requests]

    def _found(self, request: ArrowRequest) -> ArrowResult:
        started = time.perf_counter()
        rows = self._read(self.relations[request.relation], request)
        return RowResult(
            rows=ArrowBag.of_plain(rows, NO_TICK),
            sight=SawTransactions(seen=self.reader.seen),
            origin=Origin.SOURCE,
            seconds=time.perf_counter() - started,
        )

    def _read(self, relation: Relation, request: ArrowRequest) -> pa.Table:
        wanted = request.wanted
        if request.within is None:
            return self.reader.probe(relation, wanted, (), pa.table({})).select(list(wanted))
        columns, keys = request.within.columns, request.within.keys.named(request.within.columns)
        parts = [
            self._under_nulls(relation, wanted, part)
            if any(values.null_count for values in part.columns)
            else self.reader.probe(relation, wanted, columns, part).select(list(wanted))
            for part in split_by_null(keys)
        ]
        return pa.concat_tables(parts) if parts else relation.arrow_schema(wanted).empty_table()

    def _under_nulls(self, relation: Relation, wanted: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the rows under keys that have a NULL: a source is asked for values only, so the rest is done here."""
        valued = tuple(name for name in keys.column_names if not keys[name].null_count)
        needed = tuple(dict.fromkeys((*wanted, *keys.column_names)))
        values = keys.select(list(valued)).group_by(list(valued)).aggregate([]) if valued else pa.table({})
        rows = self.reader.probe(relation, needed, valued, values)
        return rows.filter(is_among(rows, tuple(keys.column_names), keys)).select(list(wanted))
