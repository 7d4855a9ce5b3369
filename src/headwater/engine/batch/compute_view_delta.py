"""Compute what a batch of ticks changes in a view, whatever the view is: one join, or segments."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.deltas.on_arrow import ArrowBag, ArrowLookup
from headwater.engine.batch.join_batch import ViewChange, change_view
from headwater.engine.batch.segment_batch import change_segments
from headwater.engine.state.accepted_log import AcceptedLog
from headwater.engine.state.tick_lookup import SegmentLookup
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.segments import SegmentedView


def change_any(
    spark: SparkSession,
    view: SegmentedView,
    schema: pa.Schema,
    guarantee: Guarantee,
    span: tuple[Tick, Tick],
    log: AcceptedLog,
    lookup: ArrowLookup,
    readers: Mapping[RelationName, SegmentLookup],
    computed: MutableMapping[RelationName, ArrowBag],
) -> ViewChange | None:
    """Return how a view changes over the ticks (lo, hi], or None if nothing changed that it needs.

    `schema` is that of its table of changes; `readers` and `computed` matter where it has segments.
    """
    if view.only_join is None:
        return change_segments(spark, view, guarantee, span, log, lookup, readers, computed)
    return change_view(spark, view.only_join, schema, guarantee, span, log, lookup)
