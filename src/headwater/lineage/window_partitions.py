"""Which partitions rows with window functions' values are in: found, then computed again to see which rows are meant.

A row does not always hold what it was partitioned by, so the rows with its other values are looked up first; they tell
the partitions, and these are read whole and computed.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.unfolded import unfolded
from headwater.lineage.reach import restrict
from headwater.lineage.segment_rows import SegmentRows
from headwater.lineage.sought import OF, Sought, same_values, sought_rows
from headwater.views.segments import RegroupStep, Windows
from headwater.views.spark_text import quoted
from headwater.views.whole import windows_sql


def find_partitions(rows: SegmentRows, step: RegroupStep, computed: Windows, sought: Sought) -> Sought:
    """Return what is sought of a regroup's input: all rows of the partitions that sought rows are in."""
    given = rows.segments[step.input].relation
    passed = {text: name for name, text in computed.outputs if name in sought.columns}
    pairs = {name: passed[quoted(name)] for name in given.column_names if quoted(name) in passed}
    some = rows.of_segment(step.input, restrict(given, pairs, sought.rows))
    whole = rows.of_segment(step.input, restrict(given, {key: key for key in step.keys}, some.rows))
    names = [f"#{number}" for number in range(len(step.keys))]
    keys = ", ".join(f"{quoted(key)} AS {quoted(name)}" for key, name in zip(step.keys, names, strict=True))
    source = f"(SELECT *{f', {keys}' if keys else ''} FROM given) AS named"
    values = windows_sql(computed, step.keys, source, also=names)
    listed = ", ".join([f"s.{quoted(OF)} AS {quoted(OF)}", *(f"w.{quoted(name)} AS {quoted(name)}" for name in names)])
    found = rows.run(
        f"SELECT DISTINCT {listed} FROM sought AS s JOIN ({values}) AS w ON {same_values('w', 's', sought.columns)}",
        {"sought": sought.rows, "given": unfolded(ArrowBag(whole.rows))},
    )
    named = pa.table([found[name] for name in (*names, OF)], names=[*step.keys, OF])
    return sought_rows(named, step.keys, named[OF])
