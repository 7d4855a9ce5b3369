"""Tell an error in the data (a division by zero) from an error of the machinery (a lost executor)."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.errors import PySparkException

from headwater.errors import HeadwaterError, ImpossibleChange, ImpossibleRow, InvalidView
from headwater.position import Tick
from headwater.relation import RelationName
from headwater.transaction import Transaction
from headwater.warehouse.state import NEGATIVE

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


def is_contradiction(error: BaseException) -> bool:
    """Tell whether Spark met a row that is taken away more often than it was there."""
    return NEGATIVE in str(error)


def contradiction_error(relations: Iterable[RelationName], tick: Tick) -> HeadwaterError:
    """Return the error of a replica, one of these relations', that contradicts its change log."""
    names = list(relations)
    return ImpossibleChange(
        f"the replica of {' or '.join(map(str, names))} contradicts the change log at tick {tick}",
        code="HW-503",
        detail=NEGATIVE,
        hint="was a table changed by something its log does not show? `headwater teardown --source` "
        f"{' or '.join(dict.fromkeys(name.source for name in names))}, then `headwater run`, reads it anew",
    )


def unborn_error(view: str, error: BaseException, tick: Tick) -> HeadwaterError:
    """Return why a view cannot be computed at the tick where it should begin."""
    return HeadwaterError(
        f'view "{view}" has no state at tick {tick}',
        code="HW-522",
        detail=f"{_said(error)}, in rows that are there now",
        hint=f"correct the rows, or the view's SQL, then run `headwater run --rebuild {view}`",
    )


def query_stopped(error: BaseException) -> HeadwaterError | None:
    """Return why a query has no answer: what Spark said of a value, or of stored rows; None: it failed otherwise."""
    if is_contradiction(error):
        return ImpossibleChange(
            "the stored rows of a view contradict each other",
            code="HW-163",
            detail=NEGATIVE,
            hint="`headwater check` finds the view and the tick; `headwater run --rebuild VIEW` computes it again",
        )
    if not is_data_error(error):
        return None
    return InvalidView(
        "the query failed on the rows that it read",
        code="HW-148",
        detail=_said(error),
        hint="leave such rows out with WHERE, or use a function that gives NULL instead: try_divide, try_cast …",
    )


def _said(error: BaseException) -> str:
    return str(error).split("\n\nJVM stacktrace")[0].split(" SQLSTATE")[0].strip()
