"""Every error a user can meet: what failed (summary), why (detail), what to do (hint), and a code to search for."""

from __future__ import annotations


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


class InvalidProject(HeadwaterError):
    """headwater.toml or the project folder says something that cannot be meant."""


class InvalidView(HeadwaterError):
    """A view's SQL is wrong: it does not parse, or names something that is not there or not unique."""


class UnsupportedView(HeadwaterError):
    """A view's SQL is right, but cannot be maintained (yet) or must never be (it depends on when it runs)."""


class SourceRefused(HeadwaterError):
    """A source answered, but cannot be used as it is: missing rights, wrong identity, a standby, an unknown type."""


class SourceUnavailable(HeadwaterError):
    """A source did not answer; it may answer later."""


class LoginRefused(SourceUnavailable):
    """A source does not let our account in; it may do so later, with the same password or a new one."""


class SourceLost(HeadwaterError):
    """What we need from a source is gone for good: its slot, its log, its timeline."""


class ImpossibleChange(HeadwaterError):
    """A change contradicts what is known: a row would have to exist fewer than zero times."""


class ImpossibleRow(ImpossibleChange):
    """A batch takes rows away that are not there; the states before it can still be computed."""


class LeaseLost(HeadwaterError):
    """Another maintainer has taken this warehouse over; this one must stop."""


class NotReadable(HeadwaterError):
    """The asked state is not there: past a view's frontier, before its birth, or out of retention."""


class WarehouseRefused(HeadwaterError):
    """The warehouse on disk cannot be used: another format version, or not a warehouse."""


class ConfirmationNeeded(HeadwaterError):
    """What was asked for deletes the history of views, and nobody has said that this is meant."""

    def __init__(self, summary: str, *, code: str, detail: str, hint: str, views: tuple[str, ...]) -> None:
        """Keep the names of the views, so that a person can be asked about them."""
        super().__init__(summary, code=code, detail=detail, hint=hint)
        self.views = views


class UnfaithfulLog(HeadwaterError):
    """The change log lost, repeated or invented a transaction."""


class InvalidScenario(HeadwaterError):
    """A scenario of the lab is not written as one, or cannot be played as it is written."""
