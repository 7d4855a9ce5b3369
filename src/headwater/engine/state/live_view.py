"""A view while it is maintained: its tables, how far it has come, and why it cannot go on if it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headwater.deltas.on_arrow import ArrowBag
from headwater.engine.batch.join_batch import ViewChange
from headwater.engine.state.auxiliary_table import AuxiliaryTable
from headwater.engine.state.tick_lookup import SegmentLookup
from headwater.errors import HeadwaterError
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.project.resolve import ResolvedView
from headwater.warehouse.catalog import ViewEntry
from headwater.warehouse.commit_record import Stopped
from headwater.warehouse.kept_table import KeptTable


@dataclass(slots=True, kw_only=True, eq=False)
class LiveView:
    """One view. `frontier` is what the last commit says; the tables may hold more, and that is adopted then.

    `segments` are the auxiliary tables that are kept for it, perhaps for other views too, and its own table where its
    last step looks at its own rows.
    """

    resolved: ResolvedView
    entry: ViewEntry
    table: KeptTable
    frontier: Tick
    segments: Mapping[RelationName, AuxiliaryTable] = field(default_factory=dict)
    stopped: Stopped | None = None

    @property
    def name(self) -> str:
        """The view's name."""
        return self.entry.name

    @property
    def lo(self) -> Tick:
        """The tick where the next batch begins.

        A view that is one join goes on where its table ends. Of a view with segments a dead maintainer may have
        appended some tables and not others, so the batch is computed again from the frontier.
        """
        if self.resolved.view.only_join is None:
            return self.frontier
        return max(self.frontier, self.table.appended_upto())

    @property
    def readers(self) -> dict[RelationName, SegmentLookup]:
        """What is kept for it, as of the frontier: in memory what every batch may look up."""
        unread, at = self.resolved.view.unread, self.frontier
        return {
            name: auxiliary.stored(at) if name in unread else auxiliary.at(at)
            for name, auxiliary in self.segments.items()
        }

    def end(self, hi: Tick) -> Tick:
        """Return where a batch must end: where one ended that was appended in part, else where it would.

        Changes that are told tick by tick are appended from where a table ends, whatever the batch.
        """
        if self.resolved.view.only_join is not None or self.resolved.shares:
            return hi
        tables = (self.table, *(auxiliary.table for auxiliary in self.segments.values()))
        appended = max(table.appended_upto() for table in tables)
        return appended if appended > self.frontier else hi

    def append(self, change: ViewChange, upto: Tick) -> None:
        """Append a batch's changes to the tables; those that have them already are left as they are."""
        for name, rows in change.segments.items():
            self.segments[name].table.append(rows.table, upto)
        self.table.append(change.rows.table, upto)

    def advance(self, change: ViewChange | None, upto: Tick) -> None:
        """Move to a tick whose changes are in the tables."""
        for name, auxiliary in self.segments.items():
            rows = None if change is None else _rows(change, name, self.resolved)
            auxiliary.advance(self.frontier, rows, upto)
        self.frontier = upto

    def stop(self, error: HeadwaterError) -> None:
        """Stop here for good; the others go on."""
        self.stopped = _as_stopped(error)


def _rows(change: ViewChange, name: RelationName, resolved: ResolvedView) -> ArrowBag | None:
    return change.rows if name == resolved.view.output.name else change.segments.get(name)


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
