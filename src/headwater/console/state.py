"""What every page needs of a warehouse, read once for all requests of a moment: status, commits, and transactions.

A page is a function of its URL and of one `ConsoleState`. Pages of the same second share one, so that a browser that
asks for several parts sees them of one commit, and 200 views are not counted for each of them.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from headwater.api.session import Headwater
from headwater.errors import HeadwaterError, NotReadable
from headwater.model.moment import AtTick, parse_moment
from headwater.model.position import Tick
from headwater.model.project import Project
from headwater.model.transaction import Transaction
from headwater.observe.status import SourceStatus, StatusResult, ViewStatus
from headwater.project.file import load
from headwater.storage.storage_errors import stored
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.commit_record import Commit
from headwater.warehouse.format import is_warehouse
from headwater.warehouse.lease import maintainer_is_alive
from headwater.warehouse.query import Warehouse

FRESH_SECONDS = 1.0
"""How long a reading is shared."""
SHOWN_TICKS = 2000
"""How many ticks a time slider spans."""
SHOWN_COMMITS = 400
"""How many commits are looked at for what flows, and for how batches went."""


_KEPT_COUNTS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A tick, and the transactions that became it: one, or the parts of a global transaction."""

    tick: Tick
    transactions: tuple[Transaction, ...]

    @property
    def committed_at(self) -> datetime:
        """When the last of its parts was committed."""
        return max(one.committed_at for one in self.transactions)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that committed it."""
        return tuple(dict.fromkeys(one.source for one in self.transactions))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleState:
    """The warehouse as of its newest commit, and how everything is doing."""

    project: Project
    warehouse: Warehouse
    status: StatusResult
    catalog: Catalog
    sequence: int
    """The number of the newest commit."""
    commits: Sequence[Commit]
    """The newest commits, oldest first."""
    first: Tick
    """Every tick after this one is in `accepted`."""
    accepted: Mapping[Tick, Accepted]
    taken_at: datetime

    @property
    def frontiers(self) -> Mapping[str, Tick]:
        """The newest tick of each view."""
        return {one.name: one.frontier for one in self.status.views if one.frontier is not None}

    @property
    def last(self) -> Tick:
        """The newest tick that is known: accepted, or seen by some reader."""
        return max([*self.frontiers.values(), self.status.log_last or Tick(0)])

    def view(self, name: str) -> ViewStatus:
        """Return how a view is doing. One that is not there is refused."""
        found = next((one for one in self.status.views if one.name == name), None)
        if found is None:
            self.project.view(name)
            self.warehouse.view(name)
        assert found is not None, "a view of the project or of the warehouse is in its status"
        return found

    def source(self, name: str) -> SourceStatus:
        """Return how a source is doing. One that is not declared is refused."""
        self.project.source(name)
        return next(one for one in self.status.sources if one.name == name)

    def tick_of(self, text: str | None) -> Tick | None:
        """Return the tick that a moment means for the warehouse as a whole. None for no moment: the newest state."""
        if not text:
            return None
        moment = parse_moment(text)
        if isinstance(moment, AtTick):
            return moment.tick
        for name in self.catalog.views:
            return self.warehouse.resolve_at(name, moment)
        raise NotReadable(
            f"{moment} means no tick yet",
            code="HW-760",
            detail="no view has been filled, so that no state can be read",
            hint="wait until `headwater run` has filled the first view",
        )


class StateReader:
    """Reads the warehouse of a project, at most once in `FRESH_SECONDS`."""

    def __init__(self, project: Headwater, clock: Callable[[], float] = time.monotonic) -> None:
        """Read nothing yet."""
        self.project = project
        self._clock = clock
        self._lock = threading.Lock()
        self._newest: tuple[float, ConsoleState] | None = None
        self._known: tuple[str, dict[Tick, Accepted]] = ("", {})

    def read(self) -> ConsoleState:
        """Return a reading that is fresh enough. Where there is no warehouse yet, that is an error that says so."""
        with self._lock:
            now = self._clock()
            if self._newest is None or now - self._newest[0] > FRESH_SECONDS:
                before, self._newest = self._newest, None  # after an error, everything is opened again
                with stored(self.project.project.warehouse):
                    self._newest = now, self._read() if before is None else self._renewed(before[1])
            return self._newest[1]

    def _renewed(self, before: ConsoleState) -> ConsoleState:
        """Return the state again where nothing moves: no maintainer runs, and nobody committed or changed the files."""
        project, warehouse = self._loaded(), before.warehouse
        warehouse.log.refresh()
        is_same = (
            project == before.project
            and not maintainer_is_alive(warehouse.path)
            and (before.status.maintainer is None or not before.status.maintainer.alive)
            and warehouse.head().sequence == before.sequence
            and warehouse.log.last_tick == (before.status.log_last or 0)
        )
        return replace(before, taken_at=datetime.now(UTC)) if is_same else self._read()

    def _loaded(self) -> Project:
        with contextlib.suppress(HeadwaterError):  # files that are being edited: the last ones that made sense go on
            self.project.project = load(self.project.project.folder)
        return self.project.project

    def _read(self) -> ConsoleState:
        self._loaded()
        status = self.project.status(count_rows=False)
        project = self.project.project
        warehouse = Warehouse.open(project.warehouse, project.settings.reading)
        head = warehouse.head()
        last, horizon = warehouse.log.last_tick, warehouse.log.horizon()
        first = Tick(max(horizon, last - SHOWN_TICKS))
        return ConsoleState(
            project=project,
            warehouse=warehouse,
            status=status,
            catalog=warehouse.catalog(),
            sequence=head.sequence,
            commits=warehouse.commits.read(max(0, head.sequence - SHOWN_COMMITS)),
            first=first,
            accepted=self._accepted(warehouse, first, last),
            taken_at=datetime.now(UTC),
        )

    def _accepted(self, warehouse: Warehouse, first: Tick, last: Tick) -> Mapping[Tick, Accepted]:
        """Return the ticks of the log. What was read before is not read again: a tick never changes."""
        address, known = self._known
        if address != warehouse.path or (known and max(known) > last):
            known = {}
        since = Tick(max(first, max(known, default=0)))
        fresh: dict[Tick, list[Transaction]] = {}
        for tick, one in warehouse.log.transactions(None, since, last) if since < last else ():
            fresh.setdefault(tick, []).append(one)
        found = {tick: one for tick, one in known.items() if tick > first}
        found |= {tick: Accepted(tick=tick, transactions=tuple(parts)) for tick, parts in fresh.items()}
        self._known = warehouse.path, found
        return dict(found)


class RowCounts:
    """How many rows views have, counted once for each view and tick, and from there on by what commits say.

    Counting opens a table of its own for every view; a commit says exactly what it added and removed.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: OrderedDict[tuple[str, int, Tick], int] = OrderedDict()
        self._newest: dict[tuple[str, int], tuple[Tick, int]] = {}

    def count(self, state: ConsoleState, tick: Tick | None, seconds: float) -> tuple[dict[str, int], bool]:
        """Return the counts at a tick, or at each view's newest, and whether some are missing: time was up."""
        deadline = time.monotonic() + seconds
        found: dict[str, int] = {}
        frontiers = state.frontiers
        for name, entry in state.catalog.views.items():
            frontier = frontiers.get(name, entry.birth)
            at = frontier if tick is None else tick
            if not entry.birth <= at <= frontier:
                continue
            count = self._counted(state, entry, at)
            if count is None:
                if time.monotonic() > deadline:
                    return found, True
                count = state.warehouse.row_count(name, at)
            self._keep(entry, at, count, is_newest=at == frontier)
            found[name] = count
        return found, False

    def _counted(self, state: ConsoleState, entry: ViewEntry, at: Tick) -> int | None:
        key = (entry.name, entry.generation)
        if (*key, at) in self._known:
            return self._known[*key, at]
        if key not in self._newest or self._newest[key][0] > at:
            return None
        since, count = self._newest[key]
        statistics = [one.record.statistics for one in state.commits if one.record.statistics is not None]
        later = sorted((one for one in statistics if one.hi > since and one.lo < at), key=lambda one: one.lo)
        if [one.lo for one in later] != [since, *(one.hi for one in later[:-1])] or later[-1].hi != at:
            return None
        deltas = [one.rows[entry.name] for one in later if entry.name in one.rows]
        return count + sum(one.rows_added - one.rows_removed for one in deltas)

    def _keep(self, entry: ViewEntry, at: Tick, count: int, *, is_newest: bool) -> None:
        self._known[entry.name, entry.generation, at] = count
        if len(self._known) > _KEPT_COUNTS:
            self._known.popitem(last=False)
        if is_newest:
            self._newest[entry.name, entry.generation] = (at, count)


def has_warehouse(project: Project) -> bool:
    """Tell whether there is anything to show."""
    return is_warehouse(project.warehouse)
