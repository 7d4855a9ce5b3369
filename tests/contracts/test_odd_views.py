"""Hundreds of odd views: what is said of one speaks of its text, and names nothing that its author did not write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError
from headwater.explain.steps import StepWords
from headwater.explain.summary import how_maintained, kept, recomputed
from headwater.model.relation import Column, Relation, RelationName
from headwater.spark.types import SelectTypes
from headwater.views.compile.compile_view import compile_view
from headwater.views.steps.segments import SegmentedView

PATH = "views/odd.sql"
VIEWS = [
    line
    for line in (Path(__file__).parent / "odd_views.sql").read_text().splitlines()
    if line and not line.startswith("--")
]

INTERNAL = re.compile(
    r"\b[on]\d+\.|`[on]\d+`|\b[cka]\d+\b|\bx\d+\b|total_c\d|known_c\d|headwater_|__|_hw|\w#\d|`typed`|\bvoid\b"
    r"|SubqueryAlias|OneRowRelation|'Project|SQLSTATE|JVM|Traceback|\bjava\.|<class|object at 0x|spark\.sql\."
)
"""Names of ours, of Spark's plans and of Java's and Python's classes."""

SQLGLOT_NAMES = re.compile(r"arg_max|arg_min|quantile|decode_case|ts_or_ds|str_position|group_concat", re.IGNORECASE)
"""Functions under the names of a library."""


def relation(source: str, name: str, /, *, key: tuple[str, ...] = (), shape: bool = False, **types: str) -> Relation:
    columns = tuple(Column(name=column, type=kind, native=kind) for column, kind in types.items())
    unusable = (("shape", "polygon"),) if shape else ()
    return Relation(name=RelationName(source=source, name=name), columns=columns, key=key, unusable=unusable)


ORDERS = relation(
    "shop", "orders", key=("id",), shape=True, id="bigint", customer="int", item="string", price="decimal(12,2)",
    amount="int", at="timestamp", day="date", note="string", weight="double",
)  # fmt: skip
ITEMS = relation("shop", "items", id="int", name="string", kind="string", price="decimal(12,2)")
CUSTOMERS = relation(
    "crm", "customers", key=("id",), id="int", name="string", city="string", since="date", score="double",
    active="boolean",
)  # fmt: skip
CATALOG = {one.name: one for one in (ORDERS, ITEMS, CUSTOMERS)}


def compiled(sql: str, spark: SparkSession) -> SegmentedView:
    return compile_view("odd", sql, CATALOG, SelectTypes(spark=spark, view="odd", path=PATH).columns, path=PATH)


def told(view: SegmentedView) -> str:
    """Return all that `explain` says of the steps, in words."""
    words = StepWords.of(view)
    lines = [how_maintained(view), kept(view, [], words), recomputed(view, words)]
    lines += [line for segment in view.segments for line in segment.step.words(segment, words)]
    lines += [text for reason in view.reasons for text in (reason.what, reason.remedy)]
    return re.sub(r"\b(join|selection|group|regroup|union)_[0-9a-f]{12}\b", "", "\n".join(lines))


def said_of(sql: str, spark: SparkSession) -> tuple[str, HeadwaterError | None]:
    """Return what is said of a view, and its refusal if it is refused."""
    try:
        return told(compiled(sql, spark)), None
    except HeadwaterError as error:
        return str(error), error
    except Exception as error:  # noqa: BLE001 — that is what is looked for
        return f"Traceback: {type(error).__name__}: {error}", None


def test_whatever_is_said_of_a_view_is_in_the_words_of_its_text(spark: SparkSession) -> None:
    wrong, refusals = [], []
    for sql in VIEWS:
        said, error = said_of(sql, spark)
        found = [*INTERNAL.finditer(said), *SQLGLOT_NAMES.finditer(said)]
        names = {one[0] for one in found if one[0].lower() not in sql.lower()}
        wrong += [(sql, sorted(names), said)] if names else []
        refusals += [(sql, error)] if error is not None else []
    assert not wrong, "\n\n".join(f"{sql}\n{names} in: {said}" for sql, names, said in wrong)
    assert [sql for sql, error in refusals if not error.code or not error.hint or error.code == "HW-281"] == []
    assert len(VIEWS) >= 350
    assert 200 <= len(refusals) <= len(VIEWS) - 80, "most are refused, and many are not"


@pytest.mark.parametrize(
    ("sql", "said", "marked"),
    [
        ("SELECT o.id, nvl(o.at, array(1)) AS x FROM shop.orders AS o",
         'Cannot resolve "nvl(o.at, array(1))" due to data type mismatch: Input to `nvl`', "nvl(o.at, array(1))"),
        ("SELECT o.day || array(1) AS x FROM shop.orders AS o", 'Cannot resolve "o.day || array(1)"',
         "o.day || array(1)"),
        ("SELECT o.id\nFROM shop.orders AS o\n  JOIN shop.items AS i ON o.day = i.id;", "o.day = i.id", "o.day = i.id"),
        ("SELECT SUM(shop.orders.amount) OVER (w ORDER BY id) AS r FROM shop.orders WINDOW w AS (ORDER BY id)",
         "Syntax error at or near '('", "("),
        ("SELECT COUNT(*) AS n FROM shop.orders AS o GROUP BY COUNT(*)", '"COUNT(*)"', "COUNT(*)"),
        ("SELECT o.id, max_by(o.note, o.amount) AS x FROM shop.orders AS o GROUP BY o.id", "max_by()",
         "max_by(o.note, o.amount)"),
        ("SELECT o.id, percentile_approx(CAST(o.note AS INT), 0.5) AS x FROM shop.orders AS o GROUP BY o.id",
         "percentile_approx()", "percentile_approx(CAST(o.note AS INT), 0.5)"),
        ("SELECT o.item, o.note, COUNT(*) AS n FROM shop.orders AS o GROUP BY o.item", '"o.note"', "o.note"),
    ],
)  # fmt: skip
def test_a_refusal_quotes_and_marks_what_was_written(sql: str, said: str, marked: str, spark: SparkSession) -> None:
    with pytest.raises(HeadwaterError) as caught:
        compiled(sql, spark)
    assert said in caught.value.detail
    line, marks = caught.value.detail.split("\n")[-2:]
    assert line[marks.index("^") : marks.rindex("^") + 1] == marked


def test_a_window_inside_another_is_computed_anew(spark: SparkSession) -> None:
    """The inner one looks at rows outside the partitions of the outer one that a change touches."""
    inner = "SUM(o.amount) OVER (PARTITION BY o.item)"
    view = compiled(f"SELECT o.id, SUM({inner}) OVER (PARTITION BY o.day) AS r FROM shop.orders AS o", spark)
    assert [reason.code for reason in view.reasons] == ["HW-269"]
    assert "a window function inside another one" in view.reasons[0].what
