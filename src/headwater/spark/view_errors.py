"""Tell what comes of a view's query and its rows (a division by zero) from a failure of the machinery (a full disk)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from headwater.deltas.on_spark import NEGATIVE
from headwater.deltas.stored_bag import NotHeldError
from headwater.errors import HeadwaterError, ImpossibleChange, ImpossibleRow, InvalidView
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import Transaction
from headwater.storage.fenced_table import StorageError

_MACHINERY_STATES = ("08", "53", "57", "58", "KD", "XXKDA")
"""SQLSTATEs of what is no query's fault: connections, memory, cancelled jobs, files that cannot be read."""

_MACHINERY_WORDS = re.compile(
    r"java\.io\.|java\.nio\.file|OutOfMemoryError|InterruptedException|ExecutorLost|FetchFailed|No space left"
    r"|SparkContext was shut down|stopped SparkContext|java\.net\.|NoClassDefFoundError"
)
"""What Spark says where it gives no SQLSTATE, if a disk, a network, a virtual machine or a server failed."""


_CONNECTION_CODES = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED"}
"""What became of a call to a server of Spark Connect, where that is no query's fault."""
_LOST_SESSION = ("INVALID_HANDLE", "INVALID_CURSOR")
"""What such a server says of a session or a result that it does not have, after a restart for instance."""

_AFTERWARDS = re.compile(r"\s*\(?SQLSTATE|\n\s*== SQL|\n\s*JVM stacktrace|\n\s+at \w|:?\n[^\n]*\n[ :]*[:+]- ")
"""What stands after a message of Spark's, or ends it: where it comes from, and the plan that it is about."""

_JAVA_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]+(?::\s+|$)")
_CONDITION = re.compile(r"^\[[A-Z_0-9.]+\]\s*")
_ADVICE = re.compile(r"spark\.sql\.|legacy configuration|https?://")
"""Sentences about settings, which are Headwater's own, and references to pages of all there is."""


def is_view_error(error: Exception) -> bool:
    """Tell whether a failure comes of one view's query and its rows, so that the other views can go on.

    Anything that Spark or we raise while a view is computed does, but for what a disk, a connection or a virtual
    machine causes: that would befall every view, and may be gone when it is tried again.
    """
    match error:
        case ImpossibleRow():
            return True
        case (
            HeadwaterError() | NotHeldError() | OSError() | ImportError() | MemoryError() | EOFError() | StorageError()
        ):
            return False
        case PySparkException() if _is_of_connection(error):
            return False
        case PySparkException() if state := error.getSqlState():
            return not state.startswith(_MACHINERY_STATES)
        case PySparkException() | Py4JJavaError():
            lines = (line for line in str(error).splitlines() if not line.lstrip().startswith("at "))
            return not any(map(_MACHINERY_WORDS.search, lines))
        case _:
            return not isinstance(error, Py4JError)


def _is_of_connection(error: PySparkException) -> bool:
    """Tell whether a server of Spark Connect, or the way to it, failed."""
    if (error.getCondition() or "").startswith(_LOST_SESSION):
        return True
    code = getattr(error, "getGrpcStatusCode", None)
    return code is not None and code().name in _CONNECTION_CODES


def stopping_error(view: str, error: BaseException, tick: Tick, transaction: Transaction) -> HeadwaterError:
    """Return why a view stops: what Spark said, and the transaction that brought it about."""
    if isinstance(error, ImpossibleRow):
        return ImpossibleRow(
            f'view "{view}" has no state from tick {tick} on',
            code="HW-502",
            detail=f"{error.detail} (transaction {transaction.position})",
            hint="was the table changed by something its log does not show? Then `headwater teardown --source "
            f"{transaction.source}` and `headwater run` read it again; a view that probes it: `run --rebuild {view}`",
        )
    if not _is_from_spark(error):
        return _own_error(view, error, tick)
    return HeadwaterError(
        f'view "{view}" has no state from tick {tick} on',
        code="HW-520",
        detail=f"{said_by_spark(error)} (transaction {transaction.position})",
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
        f"{' or '.join(dict.fromkeys(name.source for name in names))}, then `headwater run`, reads it again",
    )


def unborn_error(view: str, error: BaseException, tick: Tick) -> HeadwaterError:
    """Return why a view cannot be computed at the tick where it should begin."""
    if not _is_from_spark(error):
        return _own_error(view, error, tick)
    return HeadwaterError(
        f'view "{view}" has no state at tick {tick}',
        code="HW-522",
        detail=f"{said_by_spark(error)}, in rows that are there now",
        hint=f"correct the rows, or the view's SQL, then run `headwater run --rebuild {view}`",
    )


def query_stopped(error: BaseException) -> HeadwaterError | None:
    """Return why a query has no answer: what Spark said of a value or of stored rows. None for another failure."""
    if is_contradiction(error):
        return ImpossibleChange(
            "the stored rows of a view contradict each other",
            code="HW-163",
            detail=NEGATIVE,
            hint="`headwater check` finds the view and the tick; `headwater run --rebuild VIEW` computes it again",
        )
    if not isinstance(error, Exception) or not is_view_error(error):
        return None
    return InvalidView(
        "the query failed on the rows that it read",
        code="HW-148",
        detail=said_by_spark(error),
        hint="leave such rows out with WHERE, or use a function that gives NULL instead: try_divide, try_cast …",
    )


def unchecked_error(view: str, error: BaseException, tick: Tick) -> HeadwaterError:
    """Return why a view could not be compared with its recomputation at a tick."""
    return HeadwaterError(
        f'view "{view}" cannot be checked at tick {tick}',
        code="HW-506",
        detail=said_by_spark(error),
        hint="correct the row, or the view's SQL, that this comes of; if Spark itself failed, run the check again",
    )


def not_understood(view: str, error: BaseException) -> HeadwaterError:
    """Return why a view's text cannot be taken apart, if that is a mistake of Headwater."""
    return HeadwaterError(
        f'view "{view}" is not understood, though nothing is known to be wrong with it',
        code="HW-281",
        detail=f"{type(error).__name__}: {said_by_spark(error)}",
        hint="this is an error of Headwater's: please report it with the view's SQL; the other views go on",
    )


def _own_error(view: str, error: BaseException, tick: Tick) -> HeadwaterError:
    return HeadwaterError(
        f'view "{view}" cannot be computed at tick {tick}',
        code="HW-504",
        detail=f"{type(error).__name__}: {error}",
        hint="this is an error of Headwater's: please report it with the view's SQL; the other views go on",
    )


def _is_from_spark(error: BaseException) -> bool:
    return isinstance(error, (PySparkException, Py4JJavaError))


def said_by_spark(error: BaseException) -> str:
    r"""Return what Spark said, without its plan, its code's places, and settings that are not a user's to change.

    >>> advice = 'If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error.'
    >>> said_by_spark(ValueError(f"[DIVIDE_BY_ZERO] Division by zero. {advice} SQLSTATE: 22012; line 1 pos 7"))
    'Division by zero. [DIVIDE_BY_ZERO]'
    >>> said_by_spark(ValueError("[NO_JOIN] This cannot be joined:\nJoin Inner\n:  +- Project [id#1]\n+- Filter"))
    'This cannot be joined [NO_JOIN]'
    """
    text = _root(error) if isinstance(error, Py4JJavaError) else str(error)
    text = _AFTERWARDS.split(text, maxsplit=1)[0].strip()
    text = _JAVA_CLASS.sub("", text)
    text, condition = _CONDITION.sub("", text), _CONDITION.match(text)
    kept = [part for part in re.split(r"(?<=[.!?])\s+", text) if not _ADVICE.search(part)]
    message = " ".join(kept).replace("..", ".") or "it failed without a message"
    return f"{message} {condition[0].strip()}" if condition else message


def _root(error: Py4JJavaError) -> str:
    """Return what was said first: a thread that waited for another says only that it did."""
    cause = error.java_exception
    while _WAITED in cause.toString() and cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString())


_WAITED = "Exception thrown in awaitResult"
