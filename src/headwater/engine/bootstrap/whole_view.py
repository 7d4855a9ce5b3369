"""A view's rows as its steps give them, each computed whole: what its own SQL has to agree with.

A view is born from its author's text and then maintained by its segments. If the two meant different things, every
batch would corrupt it without a word. So a new view is computed in both ways and compared, and so is every state
that `check --steps` looks at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from headwater.deltas.compare_frames import compare_frames
from headwater.deltas.on_spark import fresh_name
from headwater.errors import UnsupportedView
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.segments import Segment, SegmentedView

_SHOWN_LINES = 4

Placed = Callable[[Segment, DataFrame], DataFrame]
"""Takes a segment and its rows; returns the rows that later segments read, perhaps from where it stored them."""


@contextmanager
def whole_view(
    spark: SparkSession, view: SegmentedView, plain: Mapping[RelationName, DataFrame], placed: Placed
) -> Iterator[DataFrame]:
    """Give a view's rows as its segments compute them from plain rows of its relations.

    What several segments read is held by Spark as long as the rows are needed.
    """
    names = {name: fresh_name("whole") for name in (*plain, *(segment.name for segment in view.segments))}
    readers = Counter(name for segment in view.segments for name in segment.inputs)
    held: list[DataFrame] = []
    try:
        for name, frame in plain.items():
            frame.createOrReplaceTempView(names[name])
        for segment in view.segments:
            computed = spark.sql(segment.whole_sql(names))
            rows = placed(segment, computed)
            if rows is computed and readers[segment.name] > 1:
                held.append(rows.persist())
            rows.createOrReplaceTempView(names[segment.name])
        yield rows
    finally:
        for registered in names.values():
            spark.catalog.dropTempView(registered)
        for frame in held:
            frame.unpersist()


def computed_rows(_segment: Segment, rows: DataFrame) -> DataFrame:
    """Return a segment's rows as they are computed."""
    return rows


def require_same_types(view: SegmentedView, by_text: DataFrame, by_steps: DataFrame) -> None:
    """Refuse a view whose steps give a column another type than its SQL."""
    for right, found in zip(by_text.schema, by_steps.schema, strict=True):
        if right.dataType != found.dataType:
            right_type, found_type = right.dataType.simpleString(), found.dataType.simpleString()
            raise _other_meaning(view, f'column "{right.name}" has type {found_type} where its SQL gives {right_type}')


def require_same_rows(view: SegmentedView, by_text: DataFrame, by_steps: DataFrame, tick: Tick) -> None:
    """Refuse a view whose steps give other rows than its SQL, or other counts of them, with what differs."""
    differs = compare_frames(by_text, by_steps)
    if differs:
        raise _other_meaning(
            view, f"at tick {tick} its rows differ from those of its SQL:\n{differs.text(_SHOWN_LINES)}"
        )


def _other_meaning(view: SegmentedView, what: str) -> UnsupportedView:
    return UnsupportedView(
        f'view "{view.name}" would not be maintained as its SQL says',
        code="HW-251",
        detail=f"computed in steps, {what}",
        hint='set maintenance = "recompute-self" for it in headwater.toml, or write it differently; this is an error '
        "in Headwater: please report the SQL and this message",
    )
