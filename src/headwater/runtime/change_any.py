"""Compute what a batch of ticks changes in a view, whatever the view is: one join, or segments."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.deltas.on_arrow import ArrowBag
from headwater.guarantee import Guarantee
from headwater.position import Tick
from headwater.relation import RelationName
from headwater.runtime.accepted_log import AcceptedLog
from headwater.runtime.batch import Performer, ViewChange, change_view
from headwater.runtime.old_rows import OldRows
from headwater.runtime.segment_batch import change_segments
from headwater.views.segments import SegmentedView


def change_any(
    spark: SparkSession,
    view: SegmentedView,
    schema: pa.Schema,
    guarantee: Guarantee,
    span: tuple[Tick, Tick],
    log: AcceptedLog,
    perform: Performer,
    readers: Mapping[RelationName, OldRows],
    computed: MutableMapping[RelationName, ArrowBag],
) -> ViewChange | None:
    """Return how a view changes over the ticks (lo, hi], or None if nothing changed that it needs.

    `schema` is that of its table of changes; `readers` and `computed` matter where it has segments.
    """
    if view.only_join is None:
        return change_segments(spark, view, guarantee, span, log, perform, readers, computed)
    return change_view(spark, view.only_join, schema, guarantee, span, log, perform)
