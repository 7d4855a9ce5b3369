"""What types Spark gives the columns of a SELECT: asked over tables that are empty, so nothing runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headwater.errors import InvalidView
from headwater.relation import Column, Relation, RelationName
from headwater.runtime.data_errors import said_by_spark
from headwater.views.law import renamed_sql
from headwater.views.spark_text import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectTypes:
    """Asks Spark on behalf of a view, whose name and file are told if Spark cannot run the text."""

    spark: SparkSession
    view: str
    path: str = ""

    def schema(self, sql: str, relations: Mapping[RelationName, Relation]) -> StructType:
        """Return the columns of a SELECT over relations; what Spark cannot type is refused in its words."""
        names = {name: f"headwater_typed_{number}" for number, name in enumerate(relations)}
        tables = ", ".join(f"{quoted(names[name])} AS ({_empty(relation)})" for name, relation in relations.items())
        try:
            return _typed(self.spark, f"WITH {tables} SELECT * FROM (\n{renamed_sql(sql, names)}\n) AS typed")
        except (PySparkException, Py4JJavaError) as error:  # the second: what Spark itself did not expect of a text
            raise InvalidView(
                f'Spark cannot run view "{self.view}"',
                code="HW-244",
                detail=said_by_spark(error),
                hint=f"correct the SQL{f' in {self.path}' if self.path else ''}; casts are explicit in ANSI mode",
            ) from None

    def columns(self, sql: str, relations: Mapping[RelationName, Relation]) -> tuple[Column, ...]:
        """Return the same as columns of a relation."""
        typed = [(field.name, field.dataType.simpleString()) for field in self.schema(sql, relations)]
        return tuple(Column(name=name, type=kind, native=kind) for name, kind in typed)


@lru_cache(maxsize=10_000)
def _typed(spark: SparkSession, text: str) -> StructType:
    """Return the columns of a text, which is all that decides about them; views are understood again and again."""
    return spark.sql(text).schema


def _empty(relation: Relation) -> str:
    values = (f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in relation.columns)
    return f"SELECT {', '.join(values)}"
