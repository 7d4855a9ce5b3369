"""Segments that are computed in one Spark job: each as a query that later ones read by its name.

    WITH n0 AS (the law of n0 over tables), n1 AS (the law of n1 over n0 and tables), ...
    SELECT 0 AS _segment, <n0's columns>, NULL, ... FROM n0 UNION ALL SELECT 1, NULL, ..., <n1's columns> FROM n1 ...

A job costs more than a small batch's rows do, so segments wait here until somebody needs to see their rows: to look old
rows up by their keys, or because the batch ends. A segment that another one reads is computed once more for it; where
there are many rows, jobs are cheaper than that, and `is_large` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from headwater.deltas.on_arrow import ArrowBag, empty_table
from headwater.deltas.on_spark import run_stamped
from headwater.position import Tick
from headwater.relation import COUNT, TICK, RelationName
from headwater.runtime.batch import shifted
from headwater.views.segments import Segment
from headwater.views.spark_text import quoted

_LARGE_ROWS = 50_000
_SEGMENT = "_segment"

Text = Callable[[Mapping[str, str]], str]
"""Gives a law's query, told the names of the tables that it reads under the words it knows them by."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """The segments that wait for one job. On Spark, ticks count from the batch's beginning `lo`."""

    spark: SparkSession
    lo: Tick
    _tables: dict[str, pa.Table] = field(default_factory=dict)
    _waiting: dict[RelationName, tuple[Segment, str]] = field(default_factory=dict)

    def __contains__(self, name: RelationName) -> bool:
        """Tell whether a segment waits here."""
        return name in self._waiting

    @property
    def is_large(self) -> bool:
        """Whether there are so many rows that computing a segment twice costs more than a job."""
        return bool(sum(table.num_rows for table in self._tables.values()) > _LARGE_ROWS)

    def add(self, segment: Segment, text: Text, inputs: Mapping[str, pa.Table | RelationName]) -> None:
        """Let a segment wait: a law over tables, and over segments that wait here already."""
        names = {}
        for word, given in inputs.items():
            if isinstance(given, RelationName):
                names[word] = given.name
            else:
                names[word] = f"stamped_{len(self._tables)}"
                self._tables[names[word]] = shifted(given, -self.lo)
        self._waiting[segment.name] = segment, text(names)

    def run(self, wanted: Collection[RelationName]) -> dict[RelationName, ArrowBag]:
        """Compute what waits, in one job, and return the changes of the wanted segments."""
        shown = [segment for name, (segment, _) in self._waiting.items() if name in wanted]
        if not shown:
            return {}
        queries = ", ".join(f"{quoted(name.name)} AS (\n{text}\n)" for name, (_, text) in self._waiting.items())
        selects = " UNION ALL ".join(_padded(place, shown) for place in range(len(shown)))
        rows = run_stamped(self.spark, f"WITH {queries} {selects}", self._tables)
        found = {segment.name: self._of(place, segment, rows) for place, segment in enumerate(shown)}
        self._tables, self._waiting = {}, {}
        return found

    def _of(self, place: int, segment: Segment, rows: pa.Table) -> ArrowBag:
        schema = empty_table(segment.relation.arrow_schema()).schema
        own = rows.filter(pc.equal(rows[_SEGMENT], place))
        columns = [own[name] for name in _names(place, segment)]
        typed = pa.table([*columns, own[TICK], own[COUNT]], names=schema.names).cast(schema)
        return ArrowBag(shifted(typed, self.lo))


def _names(place: int, segment: Segment) -> list[str]:
    return [f"s{place}_{number}" for number in range(len(segment.relation.columns))]


def _padded(place: int, shown: list[Segment]) -> str:
    """Return the query for one segment's rows, with NULL in the columns of the others."""
    outputs = [f"{place} AS {_SEGMENT}"]
    for other, segment in enumerate(shown):
        for name, column in zip(_names(other, segment), segment.relation.columns, strict=True):
            value = quoted(column.name) if other == place else "NULL"
            outputs.append(f"CAST({value} AS {column.type}) AS {name}")
    return f"SELECT {', '.join([*outputs, TICK, COUNT])} FROM {quoted(shown[place].name.name)}"
