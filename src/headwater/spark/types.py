"""What types Spark gives the columns of a SELECT: asked over tables that are empty, so nothing runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headwater.model.relation import Column, Relation, RelationName
from headwater.spark.refusal import AskedText, refused_by_spark
from headwater.views.laws.join import renamed_sql, renamings
from headwater.views.text.spark_text import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectTypes:
    """Asks Spark on behalf of a view, whose name and file are shown if Spark cannot run the text.

    `own` is what its author wrote, if the texts may be others that hold it: lines refer to it.
    """

    spark: SparkSession
    view: str
    path: str = ""
    own: str = ""

    def schema(self, sql: str, relations: Mapping[RelationName, Relation]) -> StructType:
        """Return the columns of a SELECT over relations. What Spark cannot run is refused."""
        names = {name: f"headwater_typed_{number}" for number, name in enumerate(relations)}
        tables = ", ".join(f"{quoted(names[name])} AS ({_empty(relation)})" for name, relation in relations.items())
        before = f"WITH {tables} SELECT * FROM (\n"
        try:
            return _typed(self.spark, f"{before}{renamed_sql(sql, names)}\n) AS typed")
        except (PySparkException, Py4JJavaError) as error:  # the second: what Spark itself did not expect of a text
            asked = AskedText(sql=sql, before=before, changes=renamings(sql, names))
            raise refused_by_spark(error, asked, view=self.view, path=self.path, own=self.own or sql) from None

    def columns(self, sql: str, relations: Mapping[RelationName, Relation]) -> tuple[Column, ...]:
        """Return the same as columns of a relation."""
        typed = [(field.name, field.dataType.simpleString()) for field in self.schema(sql, relations)]
        return tuple(Column(name=name, type=kind, native=kind) for name, kind in typed)


@lru_cache(maxsize=10_000)
def _typed(spark: SparkSession, text: str) -> StructType:
    """Return the columns of a text. They are cached by the text, because views are compiled often."""
    return spark.sql(text).schema


def _empty(relation: Relation) -> str:
    values = (f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in relation.columns)
    return f"SELECT {', '.join(values)}"
