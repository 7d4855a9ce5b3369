"""What things cost on two cores, as the benches in bench/results have measured it. Each stands here once.

`explain`, `advise`, `analyze`, `trace` and lookups compare these with each other: whether to recompute a view, what to
keep, where to read rows. They decide how something is done, never what a view shows. What a warehouse or a source can
measure itself (the jobs of its batches, the pace of its disk and network) is used instead, where there is enough of it.
All are milliseconds.
"""

from __future__ import annotations

JOB = 150.0
"""A small Spark job, warm. bench/results/latest.md: 153 to 280 for the law of one transaction;
bench/results/tracing.md: 125 per job; bench/results/many_views.md: 90 per job of many. With 150, `explain` tells in 153
of the 176 cases of bench/results/tpch.md whether recomputing is faster; with 100 in 150, with 200 in 149."""

STEP = 50.0
"""To plan and compile one join or aggregate of a query. This one and the four below are fitted to the recomputations of
bench/tpch_views.py (bench/results/tpch.md)."""

SCANNED_ROW = 0.03e-3
"""A row that a Spark job reads. bench/results/tracing.md finds no difference between 0.7 and 7 million rows."""

SELECTED_ROW = 0.3e-3
"""A row that a Spark job selects and joins."""

AGGREGATED_ROW = 0.1e-3
"""A row that one aggregate sums up."""

FETCHED_ROW = 4e-3
"""A row that comes from a source, read whole. By key it is 5 to 11 (bench/results/latest.md, 10,000 transactions)."""

LOCAL_LOOKUP = 20.0
"""To look stored rows up in this process, without Spark: to open the files of a table. Estimated, not benched alone."""

LOCAL_ROW = 0.3e-3
"""A stored row that is read in this process. Estimated, not benched alone."""

HELD_LOOKUP = 1.0
"""To look rows up that are held in memory, by an index: 1,000 keys in 6 million rows
(docs/decisions/2026-11-16_replicas_in_memory.md)."""

QUESTION = 300.0
"""A question to a source that is asked alone: a snapshot, and waiting until the log has come to what it saw. Estimated
from bench/results/tracing.md, where a trace takes 3,672 with questions, and 1,239 from replicas."""

ANSWER = 5.0
"""What a question of a batch costs here, besides the trip: to write it, and to read and rebase its answer. Estimated
from bench/results/latest.md: 16 to 23 for two questions that find 21 rows, trips included."""

BLOCK = 0.05
"""To read a block of 8 kB where there is too little data to time it. Estimated, not benched alone."""
