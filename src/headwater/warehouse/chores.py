"""What to clean up now: a pure decision over facts. `housekeeping` does it.

Laws
1. Nothing a reader may still want is removed: rows leave a table only below its horizon, and files leave the disk only
   `grace` after they left their table.
2. A view's horizon stays at or below its checkpoint's tick: the state at the horizon is the oldest one that can be
   rolled back to; and at or below the tick up to which it is folded. The change log's horizon stays at or below every
   tick that is still needed: the frontier of every view, the tick of every replica and checkpoint.
3. Small files are merged in tiers, so that each row is rewritten a few times and not once for every append: files below
   1 MB become files of 1 MB, those become files of 16 MB, those of 256 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from headwater.model.position import Tick

TIERS = (1 << 20, 16 << 20, 256 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """When to clean up. `keep_ticks` and `keep_for` are the project's retention. None means for ever."""

    fold_commits: int = 100
    fold_every: timedelta = timedelta(seconds=30)
    journal_files: int = 32
    files_per_tier: int = 40
    entries_per_clean: int = 100
    vacuum_every: timedelta = timedelta(minutes=30)
    grace_hours: int = 1
    stray_hours: int = 24
    keep_ticks: int | None = None
    keep_for: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What a decision about one Delta table needs. `droppable` is the tick up to which its rows are not needed.

    A table that is `replaced` as a whole, time and again, has the files that its writer thought right.
    """

    path: str
    file_sizes: Sequence[int]
    version: int
    cleaned_version: int
    vacuumed_at: datetime
    horizon: Tick
    droppable: Tick
    replaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """Merge the data files below a size."""

    path: str
    below_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRows:
    """Take rows up to a tick out of a table."""

    path: str
    upto: Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuum:
    """Delete the files that left a table long enough ago."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanLog:
    """Checkpoint a table's own log and remove what is before."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Put what is in the journal into the tables that it is of."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trim:
    """Merge the journal's data files, without what its tables have."""

    path: str


Chore: TypeAlias = Fold | Trim | DropRows | Compact | Vacuum | CleanLog


def chores(table: TableFacts, policy: Policy, now: datetime) -> list[Chore]:
    """Return what should be done about a table now, in the order to do it.

    >>> facts = TableFacts(path="t", file_sizes=[2_000] * 50, version=90, cleaned_version=80,
    ...                    vacuumed_at=datetime(2026, 1, 1), horizon=Tick(0), droppable=Tick(7))
    >>> chores(facts, Policy(), datetime(2026, 1, 1))
    [DropRows(path='t', upto=7), Compact(path='t', below_bytes=1048576)]
    """
    chores: list[Chore] = []
    if table.droppable > table.horizon:
        chores.append(DropRows(path=table.path, upto=table.droppable))
    for tier, target in enumerate(TIERS):
        floor = TIERS[tier - 1] // 2 if tier else 0
        small = sum(floor <= size < target // 2 for size in table.file_sizes)
        if small >= policy.files_per_tier and not table.replaced:
            chores.append(Compact(path=table.path, below_bytes=target))
            break
    if now - table.vacuumed_at >= policy.vacuum_every:
        chores.append(Vacuum(path=table.path))
    if table.version - table.cleaned_version >= policy.entries_per_clean:
        chores.append(CleanLog(path=table.path))
    return chores


def is_fold_due(policy: Policy, *, commits: int, since: timedelta, refers: bool) -> bool:
    """Tell whether the journal is to be folded: many commits or some time after the last time, files at once.

    >>> is_fold_due(Policy(), commits=3, since=timedelta(seconds=5), refers=False)
    False
    """
    return refers or commits >= policy.fold_commits or (commits > 0 and since >= policy.fold_every)


def droppable(policy: Policy, *, last: Tick, old_enough: Tick, needed: Tick) -> Tick:
    """Return the tick up to which rows may go: out of retention by number and by age, and no longer needed.

    >>> droppable(Policy(keep_ticks=100), last=Tick(500), old_enough=Tick(0), needed=Tick(450))
    400
    >>> droppable(Policy(), last=Tick(500), old_enough=Tick(500), needed=Tick(450))
    0
    """
    limits = [] if policy.keep_ticks is None else [last - policy.keep_ticks]
    limits += [] if policy.keep_for is None else [old_enough]
    return Tick(max(0, min([*limits, needed]))) if limits else Tick(0)
