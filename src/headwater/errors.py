"""Every error a user can meet: what failed (summary), why (detail), what to do (hint), and a code to search for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches


class HeadwaterError(Exception):
    """Something Headwater refuses or cannot do.

    >>> print(HeadwaterError('cannot read view "sales"', code="HW-001", detail="it has no rows", hint="run first"))
    cannot read view "sales" [HW-001]
      why: it has no rows
      do:  run first
    """

    def __init__(self, summary: str, *, code: str = "", detail: str = "", hint: str = "") -> None:
        """Keep the parts apart so that a terminal, a log line and `--json` can each show them their own way."""
        super().__init__(summary)
        self.summary = summary
        self.code = code
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        """Return the summary with its reason and remedy on lines of their own."""
        lines = [self.summary + (f" [{self.code}]" if self.code else "")]
        if self.detail:
            lines.append("  why: " + self.detail.replace("\n", "\n       "))
        if self.hint:
            lines.append("  do:  " + self.hint.replace("\n", "\n       "))
        return "\n".join(lines)


class SeveralErrors(HeadwaterError):
    """Several errors that were found together.

    >>> print(several_errors([HeadwaterError("no table", code="HW-001", hint="make it"), HeadwaterError("too old")]))
    2 things stand in the way [HW-346]
    no table [HW-001]
      do:  make it
    too old
    """

    def __init__(self, summary: str, *, code: str, detail: str, errors: Sequence[HeadwaterError]) -> None:
        """Keep them in the order they were found."""
        super().__init__(summary, code=code, detail=detail)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        """Return each error as if it were alone."""
        return "\n".join((f"{self.summary} [{self.code}]", *map(str, self.errors)))


def several_errors(errors: Sequence[HeadwaterError]) -> SeveralErrors:
    """Return errors as one."""
    return SeveralErrors(
        f"{len(errors)} things stand in the way", code="HW-346", detail="\n".join(map(str, errors)), errors=errors
    )


class ErrorList:
    """Collects errors, so that all are shown at once.

    >>> errors = ErrorList()
    >>> for text in ("first", "second", "first"):
    ...     with errors.gathered():
    ...         raise HeadwaterError(text)
    >>> [error.summary for error in errors.found]
    ['first', 'second']
    """

    def __init__(self) -> None:
        """Start with none."""
        self.found: list[HeadwaterError] = []

    def add(self, *errors: HeadwaterError) -> None:
        """Combine errors. Equal ones are kept once."""
        for error in errors:
            if str(error) not in map(str, self.found):
                self.found.append(error)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Take in what a block raises, and go on after it."""
        try:
            yield
        except HeadwaterError as error:
            self.add(*errors_of(error))

    def raise_all(self) -> None:
        """Raise what was gathered: nothing, the only error, or all of them as one."""
        match self.found:
            case []:
                return
            case [error]:
                raise error
            case _:
                raise several_errors(self.found)


def errors_of(error: HeadwaterError) -> tuple[HeadwaterError, ...]:
    """Return the errors that an error stands for."""
    return error.errors if isinstance(error, SeveralErrors) else (error,)


class InvalidProject(HeadwaterError):
    """headwater.toml or the project folder says something that cannot be meant."""


class InvalidView(HeadwaterError):
    """A view's SQL is wrong: it does not parse, or names something that is not there or not unique."""


class UnsupportedView(HeadwaterError):
    """A view's SQL is right, but cannot be maintained (yet) or must never be (it depends on when it runs)."""


class SourceRefused(HeadwaterError):
    """A source answered, but cannot be used as it is: missing rights, wrong identity, a standby, an unknown type."""


class SourceUnavailable(HeadwaterError):
    """A source did not answer. It may answer later."""


class LoginRefused(SourceUnavailable):
    """A source does not let our account in. It may do so later, with the same password or a new one."""


class SourceLost(HeadwaterError):
    """What we need from a source is gone for good: its slot, its log, its timeline."""


class ImpossibleChange(HeadwaterError):
    """A change contradicts what is known: a row would have to exist fewer than zero times."""


class ImpossibleRow(ImpossibleChange):
    """A batch removes rows that do not exist. The states before it can still be computed."""


class LeaseLost(HeadwaterError):
    """Another maintainer has taken this warehouse over. This one must stop."""


class NotReadable(HeadwaterError):
    """The asked state is not there: past a view's frontier, before its birth, or out of retention."""


class WarehouseRefused(HeadwaterError):
    """The warehouse on disk cannot be used: another format version, or not a warehouse."""


class ConfirmationNeeded(HeadwaterError):
    """The request deletes the history of views, and there is no consent."""

    def __init__(self, summary: str, *, code: str, detail: str, hint: str, views: tuple[str, ...]) -> None:
        """Keep the names of the views, so that a person can be asked about them."""
        super().__init__(summary, code=code, detail=detail, hint=hint)
        self.views = views


class UnfaithfulLog(HeadwaterError):
    """The change log lost, repeated or invented a transaction."""


def did_you_mean(written: str, names: tuple[str, ...], *, otherwise: str) -> str:
    """Return a hint that names what was probably meant.

    >>> did_you_mean("retentoin", ("path", "retention"), otherwise="remove it")
    'did you mean "retention"?'
    >>> did_you_mean("colour", ("path", "retention"), otherwise="remove it")
    'remove it'
    """
    near = get_close_matches(written, names, n=1)
    return f'did you mean "{near[0]}"?' if near else otherwise
