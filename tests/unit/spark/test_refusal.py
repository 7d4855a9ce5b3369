"""What Spark says of a text of ours, told of the text that was written."""

from __future__ import annotations

from pyspark.errors import PySparkException, QueryContextType

from headwater.spark.refusal import AskedText, refused_by_spark

OWN = "SELECT nvl(o.day, 1) AS d\nFROM shop.orders o;"
PLAN = "'Project [coalesce(day#1, 1)]\n+- SubqueryAlias headwater_typed_0"


class Place:
    """Where Spark finds a mistake."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last

    def contextType(self) -> QueryContextType:  # noqa: N802 — as Spark has it
        return QueryContextType.SQL

    def startIndex(self) -> int:  # noqa: N802
        return self.first

    def stopIndex(self) -> int:  # noqa: N802
        return self.last


class Mismatch(PySparkException):
    """Spark's words for values of two types."""

    def __init__(self, place: Place) -> None:
        said = 'Cannot resolve "coalesce(day, 1)": input to `coalesce` of `headwater_typed_0` differs.'
        super().__init__(f"{said} SQLSTATE: 42K09; line 2 pos 7;\n{PLAN}")
        self.place = place

    def getCondition(self) -> str:  # noqa: N802
        return "DATATYPE_MISMATCH.DATA_DIFF_TYPES"

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802
        return {"sqlExpr": '"coalesce(day, 1)"', "functionName": "`coalesce`"}

    def getQueryContext(self) -> list[Place]:  # type: ignore[override]  # noqa: N802
        return [self.place]


def test_the_authors_words_and_place_stand_for_ours() -> None:
    whole = f"WITH `b` AS (SELECT 1)\nSELECT * FROM (\n{OWN.rstrip(';')}\n) AS whole"
    start = whole.index("shop.orders")
    changes = [(start, start + len("shop.orders"), "`headwater_typed_0`")]
    asked = AskedText(sql=whole, before="WITH t AS (SELECT 1) ", changes=changes)
    at = len(asked.before) + whole.index("nvl(")
    error = refused_by_spark(
        Mismatch(Place(at, at + len("nvl(o.day, 1)") - 1)), asked, view="v", path="views/v.sql", own=OWN
    )
    assert str(error) == (
        'Spark cannot run view "v" [HW-244]\n'
        '  why: Spark says: Cannot resolve "nvl(o.day, 1)": input to `nvl` of "shop.orders" differs. '
        "[DATATYPE_MISMATCH.DATA_DIFF_TYPES]\n"
        "       in views/v.sql\n"
        "       line 1: SELECT nvl(o.day, 1) AS d\n"
        "                      ^^^^^^^^^^^^^\n"
        "  do:  correct the SQL: convert values with CAST where types differ"
    )


def test_a_place_outside_the_authors_text_is_not_marked() -> None:
    asked = AskedText(sql=OWN, before="WITH t AS (SELECT 1) ", changes=[])
    error = refused_by_spark(Mismatch(Place(0, 4)), asked, view="v", path="", own=OWN)
    assert "^" not in error.detail
    assert "Project" not in error.detail


def test_java_is_not_shown() -> None:
    error = refused_by_spark(
        RuntimeError("java.lang.IllegalStateException: no rows\n\tat org.apache.X"),
        AskedText(sql=OWN, before="", changes=[]), view="v", path="", own=OWN,
    )  # fmt: skip
    assert error.detail == "Spark says: no rows"
