"""A view while it is maintained: its table, how far it has come, and why it cannot go on if it cannot."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwater.errors import HeadwaterError
from headwater.position import Tick
from headwater.runtime.understand import UnderstoodView
from headwater.warehouse.catalog import ViewEntry
from headwater.warehouse.commit_record import Stopped
from headwater.warehouse.kept_table import KeptTable


@dataclass(slots=True, kw_only=True, eq=False)
class LiveView:
    """One view. `frontier` is what the last commit says; the table may hold more, and is adopted then."""

    understood: UnderstoodView
    entry: ViewEntry
    table: KeptTable
    frontier: Tick
    stopped: Stopped | None = None

    @property
    def name(self) -> str:
        """The view's name."""
        return self.entry.name

    @property
    def lo(self) -> Tick:
        """The tick up to which the table holds every change: where the next batch begins."""
        return max(self.frontier, self.table.appended_upto())

    def stop(self, error: HeadwaterError) -> None:
        """Stop here for good; the others go on."""
        self.stopped = _as_stopped(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiringView:
    """A view that is being built anew: as it was, for readers, until the new one is there."""

    entry: ViewEntry
    frontier: Tick
    stopped: Stopped | None

    def stopped_by(self, error: HeadwaterError) -> RetiringView:
        """Return it with the reason why the new one cannot be built."""
        return replace(self, stopped=_as_stopped(error))


def _as_stopped(error: HeadwaterError) -> Stopped:
    return Stopped(
        code=error.code,
        summary=f"{error.summary}: {error.detail}" if error.detail else error.summary,
        hint=error.hint,
    )
