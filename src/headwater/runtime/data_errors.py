"""Tell an error in the data (a division by zero) from an error of the machinery (a lost executor)."""

from __future__ import annotations

from pyspark.errors import PySparkException

from headwater.errors import HeadwaterError, ImpossibleRow
from headwater.position import Tick
from headwater.transaction import Transaction

_DATA_EXCEPTION = "22"
"""The class of SQLSTATEs that the standard reserves for values that an operation cannot take."""


def is_data_error(error: BaseException) -> bool:
    """Tell whether Spark refused a value, rather than failed, or the rows cannot be what they are said to be."""
    if isinstance(error, ImpossibleRow):
        return True
    return isinstance(error, PySparkException) and (error.getSqlState() or "").startswith(_DATA_EXCEPTION)


def stopping_error(view: str, error: BaseException, tick: Tick, transaction: Transaction) -> HeadwaterError:
    """Return why a view stops: what Spark said, and the transaction that brought it about."""
    if isinstance(error, ImpossibleRow):
        return ImpossibleRow(
            f'view "{view}" has no state from tick {tick} on',
            code="HW-502",
            detail=f"{error.detail} (transaction {transaction.position})",
            hint="was the table changed by something its log does not show? Then `headwater teardown --source "
            f"{transaction.source}` and `headwater run` read it anew; a view that probes it: `run --rebuild {view}`",
        )
    return HeadwaterError(
        f'view "{view}" has no state from tick {tick} on',
        code="HW-520",
        detail=f"{_said(error)} (transaction {transaction.position})",
        hint=f"correct the row, or the view's SQL, then run `headwater run --rebuild {view}`",
    )


def unborn_error(view: str, error: BaseException, tick: Tick) -> HeadwaterError:
    """Return why a view cannot be computed at the tick where it should begin."""
    return HeadwaterError(
        f'view "{view}" has no state at tick {tick}',
        code="HW-522",
        detail=f"{_said(error)}, in rows that are there now",
        hint=f"correct the rows, or the view's SQL, then run `headwater run --rebuild {view}`",
    )


def _said(error: BaseException) -> str:
    return str(error).split("\n\nJVM stacktrace")[0].split(" SQLSTATE")[0].strip()
