"""A view while it is maintained: its tables, how far it has come, and why it cannot go on if it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headwater.deltas.stored_bag import Bag
from headwater.engine.batch.join_batch import ViewChange
from headwater.engine.state.auxiliary_table import AuxiliaryTable
from headwater.engine.state.tick_lookup import SegmentLookup
from headwater.errors import HeadwaterError
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.project.resolve import ResolvedView
from headwater.storage.stored_rows import parts
from headwater.warehouse.catalog import ViewEntry
from headwater.warehouse.commit_record import Stopped
from headwater.warehouse.journal import TableChange
from headwater.warehouse.kept_table import KeptTable


@dataclass(slots=True, kw_only=True, eq=False)
class LiveView:
    """One view. `frontier` is what the last commit says, and where the next batch begins.

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
    def readers(self) -> dict[RelationName, SegmentLookup]:
        """What is kept for it, as of the frontier: in memory what every batch may look up."""
        unread, at = self.resolved.view.unread, self.frontier
        return {
            name: auxiliary.stored(at) if name in unread else auxiliary.at(at)
            for name, auxiliary in self.segments.items()
        }

    @property
    def folders(self) -> dict[RelationName, str]:
        """The folders below which many changes are written: of its table and of its auxiliary tables."""
        own = {name: auxiliary.table.changes.path for name, auxiliary in self.segments.items()}
        return {**own, self.resolved.view.output.name: self.table.changes.path}

    def gather(self, change: ViewChange, upto: Tick, gathered: dict[str, TableChange]) -> None:
        """Add a batch's changes to what a commit will carry, by table. What the table has already is left out.

        Of views that share a table, the first that comes to a tick adds its changes.
        """
        tables = [(self.segments[name].table, bag) for name, bag in change.segments.items()]
        for table, rows in (*tables, (self.table, change.rows)):
            before = gathered.get(table.name)
            found = table.change(rows, upto, None if before is None else before.upto)
            if found is not None:
                gathered[table.name] = found if before is None else before.followed_by(found)

    def advance(self, change: ViewChange | None, upto: Tick) -> None:
        """Move to a tick, with the changes up to there."""
        for name, auxiliary in self.segments.items():
            rows = None if change is None else _rows(change, name, self.resolved)
            auxiliary.advance(self.frontier, [] if rows is None else parts(rows), upto)
        self.frontier = upto

    def stop(self, error: HeadwaterError) -> None:
        """Stop here for good. The others go on."""
        self.stopped = _as_stopped(error)


def _rows(change: ViewChange, name: RelationName, resolved: ResolvedView) -> Bag | None:
    return change.rows if name == resolved.view.output.name else change.segments.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiringView:
    """A view that is being built again: as it was, for readers, until the new one is there."""

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
