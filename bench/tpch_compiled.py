"""`python -m bench.tpch_compiled`: what each TPC-H query compiles to, and what a batch of changes reads.

Writes docs/reference/tpch.md from a run: three servers with TPC-H rows, all 22 views, one batch of changes.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path

import psycopg

from bench.refresh import Refresh
from bench.setting import Setting, servers, setting
from bench.stream import apply
from bench.tpch_views import PLACES, QUERIES
from headwater.model.relation import SegmentName
from headwater.observe.events import ViewComputed
from headwater.views.steps.group_step import GroupStep
from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.regroup_step import RegroupStep
from headwater.views.steps.segments import SegmentedView
from headwater.views.steps.union_step import UnionStep

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "tpch.md"
INTRODUCTION = """# The 22 TPC-H queries as views

Written by `python -m bench.tpch_compiled`, from a run: the tables of scale factor {scale:g} in three PostgreSQL
databases (customers and nations; orders and lineitems; parts and suppliers), all 22 queries as views in one project,
with the specification's own parameters, and then two batches of transactions on all tables. Counts are the second
one's: {ticks} transactions, {rows} changed rows. (In its first batch a view with LIMIT puts all rows of its input in
order, once.)

- *segments*: the steps from relations to the view, in order; see `headwater explain`. ORDER BY without LIMIT is nothing
  that a table could keep.
- *kept*: auxiliary tables besides the view, and how many rows they hold together.
- *recomputed*: which parts are not incremental, by their codes; below.
- *changed*: rows that changed in the batch, of those that the view selects; an update is two.
- *read*: old rows that the batch reached from there: of relations, and of auxiliary tables. That is what changes join,
  groups that they touch, and the first rows where there is LIMIT (HW-265); no segment reads all rows of its input.
- *of*: how many rows the view's relations and auxiliary tables hold.
- *in the view*: rows that came or went, over all ticks.

| view | segments | kept | rows kept | recomputed | changed | read: relations | read: auxiliary | of | in the view |
|---|---|---|---|---|---|---|---|---|---|
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.tpch_compiled", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--rows", type=int, default=500, help="changed rows")
    parser.add_argument("--views", nargs="+", default=sorted(file.stem for file in QUERIES.glob("*.sql")))
    options = parser.parse_args()
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "4g")

    from headwater.spark.session import spark_session  # noqa: PLC0415 - after the memory is set

    texts = {view: (QUERIES / f"{view}.sql").read_text() for view in options.views}
    with servers(options.scale, PLACES) as urls, setting(spark_session(), urls, "replica", texts) as place:
        refresh = Refresh(5, place.connections)
        for _ in range(2):
            place.ear.computed.clear()
            changes = refresh.take(options.rows)
            rows = apply(place.connections, changes)
            place.catch_up()
            place.maintain()
        told = INTRODUCTION.format(scale=options.scale, ticks=len(changes), rows=rows)
        PAGE.write_text(told + "\n".join(_lines(place, urls)) + "\n")
    print(PAGE.read_text())


def _lines(place: Setting, urls: dict[str, str]) -> list[str]:
    views = {name: known.view for name, known in place.resolved.views.items()}
    counts = _table_counts(urls)
    lines = [_line(place, view, counts) for view in views.values()]
    reasons = {reason.code: reason for view in views.values() for reason in view.reasons}
    lines += ["", "| code | what is recomputed | what would help |", "|---|---|---|"]
    lines += [f"| {code} | {reasons[code].what} | {reasons[code].remedy} |" for code in sorted(reasons)]
    return lines


def _line(place: Setting, view: SegmentedView, counts: Counter[str]) -> str:
    readers = place.maintainer.views[view.name].readers
    hidden = {segment.name for segment in view.segments[:-1] if segment.is_kept}
    kept = sum(reader.row_count for name, reader in readers.items() if name in hidden)
    computed = [event for event in place.ear.computed if event.view == view.name]
    whole = sum(counts[name.name] for name in view.relations) + kept
    codes = ", ".join(sorted({reason.code for reason in view.reasons})) or "–"
    changed = sum(event.changed_rows for event in computed)
    in_view = sum(event.row_count for event in computed)
    relations, segments = _read(computed)
    return (
        f"| {view.name} | {_steps(view)} | {len(hidden)} | {kept} | {codes} | {changed} | {relations} | {segments} "
        f"| {whole} | {in_view} |"
    )


def _read(computed: list[ViewComputed]) -> tuple[int, int]:
    """Return how many old rows were read: of relations, and of segments."""
    read = [(isinstance(name, SegmentName), count) for event in computed for name, count in event.read_rows.items()]
    return sum(count for hidden, count in read if not hidden), sum(count for hidden, count in read if hidden)


def _steps(view: SegmentedView) -> str:
    words = []
    for segment in view.segments:
        match segment.step:
            case JoinStep(view=join):
                words.append("select" if len(join.occurrences) == 1 else f"join of {len(join.occurrences)}")
            case GroupStep():
                words.append("group")
            case RegroupStep(computed=computed):
                words.append(type(computed).__name__.lower())
            case UnionStep():
                words.append("union")
            case _:
                words.append("recompute")
    return ", ".join(words)


def _table_counts(urls: dict[str, str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for table, source in PLACES.items():
        with psycopg.connect(urls[source]) as connection:
            found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert found is not None
            counts[table] = found[0]
    return counts


if __name__ == "__main__":
    main()
