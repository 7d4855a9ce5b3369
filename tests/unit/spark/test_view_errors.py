"""Which failures stop one view, and which the run."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException, PySparkException, PySparkImportError, PySparkRuntimeError

from headwater.errors import HeadwaterError, ImpossibleRow
from headwater.model.position import Position, Tick
from headwater.model.transaction import Transaction
from headwater.spark.view_errors import is_view_error, stopping_error, unborn_error
from headwater.storage.fenced_table import StorageError


class Said(PySparkException):
    """An error of Spark's, with a SQLSTATE or without."""

    def __init__(self, message: str, state: str | None) -> None:
        super().__init__(message)
        self._state = state

    def getSqlState(self) -> str | None:  # noqa: N802 - PySpark's own name
        return self._state


class OverConnect(Said):
    """An error that came over Spark Connect."""

    def __init__(self, message: str, state: str | None, condition: str | None, status: str) -> None:
        super().__init__(message, state)
        self._said, self._code = condition, SimpleNamespace(name=status)

    def getCondition(self) -> str | None:  # noqa: N802 - as above
        return self._said

    def getGrpcStatusCode(self) -> SimpleNamespace:  # noqa: N802 - as above
        return self._code


@pytest.mark.parametrize(
    "error",
    [
        Said("[DIVIDE_BY_ZERO]", "22012"),
        Said("[USER_RAISED_EXCEPTION] several rows", "P0001"),
        Said("[SCALAR_SUBQUERY_TOO_MANY_ROWS]", "21000"),
        Said("[INTERNAL_ERROR] the optimizer", "XX000"),
        Said("[PLAN_VALIDATION_FAILED_RULE_IN_BATCH] Rule RewriteExceptAll generated an invalid plan", "XXKD0"),
        Said("[UNRESOLVED_COLUMN]", "42703"),
        Said("java.util.regex.PatternSyntaxException: dangling\n\tat java.io.ObjectInputStream.readObject", None),
        OverConnect("[DIVIDE_BY_ZERO]", "22012", "DIVIDE_BY_ZERO", "INTERNAL"),
        OverConnect("(java.lang.RuntimeException) odd", None, None, "INTERNAL"),
        AnalysisException("no condition at all"),
        PySparkRuntimeError("no condition at all"),
        KeyError("o7.c3"),
        AssertionError("an invariant of a step"),
        RecursionError(),
        ImpossibleRow("no", code="HW-502"),
    ],
    ids=repr,
)
def test_what_comes_of_a_query_stops_its_view(error: Exception) -> None:
    assert is_view_error(error)


@pytest.mark.parametrize(
    "error",
    [
        Said("[UNABLE_TO_ACQUIRE_MEMORY]", "53200"),
        Said("[SPARK_JOB_CANCELLED]", "XXKDA"),
        Said("[FAILED_READ_FILE]", "KD001"),
        Said("Job aborted: java.io.IOException: No space left on device", None),
        Said("Task failed: java.lang.OutOfMemoryError: Java heap space", None),
        Said("Job 3 cancelled because SparkContext was shut down", None),
        OverConnect("failed to connect to all addresses", None, None, "UNAVAILABLE"),
        OverConnect("[INVALID_HANDLE.SESSION_CHANGED]", "HY000", "INVALID_HANDLE.SESSION_CHANGED", "INTERNAL"),
        ConnectionRefusedError(),
        PySparkImportError(message="pandas must be installed"),
        OSError("disk"),
        MemoryError(),
        StorageError("the table's log cannot be read"),
        HeadwaterError("a mistake of somebody's", code="HW-207"),
    ],
    ids=repr,
)
def test_what_comes_of_the_machinery_does_not(error: Exception) -> None:
    assert not is_view_error(error)


def test_a_failure_of_ours_says_so() -> None:
    position = Position(source="shop", history="71:1", offset=7)
    transaction = Transaction(position=position, identity=7, committed_at=datetime(2026, 1, 1, tzinfo=UTC))
    for told in (stopping_error("v", KeyError("o7"), Tick(4), transaction), unborn_error("v", KeyError("o7"), Tick(4))):
        assert told.code == "HW-504"
        assert "report" in told.hint
    assert stopping_error("v", Said("[X] bad. SQLSTATE: 22012", "22012"), Tick(4), transaction).code == "HW-520"
