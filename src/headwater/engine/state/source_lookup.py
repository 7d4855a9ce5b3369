"""Look rows up at a source, in one of its snapshots."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.deltas.first_rows import limited
from headwater.deltas.indexed_rows import is_among
from headwater.deltas.lookup import NO_TICK, Origin, RowResult, SawTransactions
from headwater.deltas.on_arrow import ArrowBag, ArrowRequest, ArrowResult, split_by_null
from headwater.model.relation import Relation, RelationName
from headwater.sources.source import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLookup:
    """The rows of a source's relations as a snapshot shows them. Several threads may use it at once."""

    snapshot: Snapshot
    relations: Mapping[RelationName, Relation]

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        """Return the rows of each request, one entry for each row; no keys are not asked for."""
        return [limited(self._found(request), request) for request in requests]

    def _found(self, request: ArrowRequest) -> ArrowResult:
        started = time.perf_counter()
        rows = self._read(self.relations[request.relation], request)
        return RowResult(
            rows=ArrowBag.of_plain(rows, NO_TICK),
            sight=SawTransactions(seen=self.snapshot.seen),
            origin=Origin.SOURCE,
            seconds=time.perf_counter() - started,
        )

    def _read(self, relation: Relation, request: ArrowRequest) -> pa.Table:
        wanted = request.wanted
        if request.within is None:
            return self.snapshot.probe(relation, wanted, (), pa.table({})).select(list(wanted))
        columns, keys = request.within.columns, request.within.keys.named(request.within.columns)
        parts = [
            self._under_nulls(relation, wanted, part)
            if any(values.null_count for values in part.columns)
            else self.snapshot.probe(relation, wanted, columns, part).select(list(wanted))
            for part in split_by_null(keys)
        ]
        return pa.concat_tables(parts) if parts else relation.arrow_schema(wanted).empty_table()

    def _under_nulls(self, relation: Relation, wanted: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the rows under keys that have a NULL: a source is asked for values only, so the rest is done here."""
        valued = tuple(name for name in keys.column_names if not keys[name].null_count)
        needed = tuple(dict.fromkeys((*wanted, *keys.column_names)))
        values = keys.select(list(valued)).group_by(list(valued)).aggregate([]) if valued else pa.table({})
        rows = self.snapshot.probe(relation, needed, valued, values)
        return rows.filter(is_among(rows, tuple(keys.column_names), keys)).select(list(wanted))
