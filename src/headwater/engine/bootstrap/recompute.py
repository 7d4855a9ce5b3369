"""Recompute a view from whole relations: what bootstraps compute new views by, and what `check` compares with.

Only a whole text of the view is run, over plain rows: a row that a relation holds k times stands k times.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.deltas.on_spark import fresh_name, quoted, select_over
from headwater.engine.bootstrap.corrections import Corrections
from headwater.engine.bootstrap.staging import StagedRelation
from headwater.model.relation import RelationName
from headwater.spark.types import SelectTypes
from headwater.storage.spark_files import read_files
from headwater.views.laws.exact_sums import exact_sums_on_spark
from headwater.views.laws.join import renamed_sql
from headwater.views.steps.segments import SegmentedView
from headwater.warehouse.state import roll


def rows_at(spark: SparkSession, staged: StagedRelation, corrections: Corrections) -> DataFrame:
    """Return what was staged of a relation, with its corrections."""
    files = [chunk.path for chunk in staged.chunks]
    rows = read_files(spark, files, staged.relation.arrow_schema(staged.wanted))
    missed = corrections.rows()
    return rows if missed is None else roll(rows, missed, back=False)


def recompute(
    spark: SparkSession, view: SegmentedView, whole: str, plain: Mapping[RelationName, DataFrame]
) -> DataFrame:
    """Run a view's whole text over plain rows of its relations.

    Columns that do not matter to it may be missing. So may relations that its text names and that do not matter to it:
    they are empty here.
    The text is the author's with orders completed: by the compiler for a view that is born (`SegmentedView.whole`), by
    the judge for one that is judged. Its sums of doubles are those that they are defined to be (`exact_sums`).
    """
    described = view.described
    types = SelectTypes(spark=spark, view=view.name, path=view.path).columns
    text = exact_sums_on_spark(whole, described, types)
    names = {relation: fresh_name("whole") for relation in described}
    none, frames = spark.range(0), {}
    for name, relation in described.items():
        columns = (
            F.col(quoted([column.name])[0])
            if column.name in view.relations.get(name, ())
            else F.lit(None).cast(column.type).alias(column.name)
            for column in relation.columns
        )
        frames[names[name]] = plain.get(name, none).select(*columns)
    return select_over(spark, renamed_sql(text, names, name=view.name, path=view.path), frames)
