"""What `status`, `history`, `refresh` and `release` answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from headwater.model.guarantee import Guarantee
from headwater.model.position import Position, Tick
from headwater.observe.events import ProbeCount


class SourceState(Enum):
    """How a source is doing."""

    NOT_STARTED = "not started"
    BOOTSTRAPPING = "bootstrapping"
    FOLLOWING = "following"
    UNAVAILABLE = "unavailable"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationReading:
    """How far a relation is read for the first time. The estimate is the source's own and may be off."""

    relation: str
    rows_read: int
    rows_estimated: int
    rows_per_second: float
    seconds_left: float | None
    """None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """How a source is doing, how far its logs have been followed, and where its newest transaction in them ends.

    A log goes on past its newest transaction: other tables and other databases write into it too.
    The lag is how far the change log is behind the source: as much of the source's own log (which may hold nothing for
    us), in bytes where it is counted so, and seconds. None: not known, because no maintainer runs or the source does
    not answer.
    """

    name: str
    state: SourceState
    positions: tuple[Position, ...] = ()
    last_transaction: Position | None = None
    lag: str = ""
    """The lag in the unit that the source counts its log by."""
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    last_error: str = ""
    hint: str = ""
    """What to do about the error."""
    retry_in_seconds: float | None = None
    slot: str = ""
    """The slot by which this warehouse follows it; empty while there is none."""
    reading: tuple[RelationReading, ...] = ()
    """The relations that are being read for the first time."""
    polled_every_seconds: float | None = None
    """How often it is polled, if it is: its views are exact at every poll."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCount(ProbeCount):
    """What a source was asked for a view."""

    source: str
    view: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a view cannot go past a tick, and what to do about it."""

    tick: Tick
    code: str
    summary: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewStatus:
    """From which tick to which a view is readable, and its rows at the last one. None if it is not created yet."""

    name: str
    guarantee: Guarantee
    birth: Tick | None = None
    frontier: Tick | None = None
    row_count: int | None = None
    stopped: Stop | None = None
    refresh: str = "continuous"
    due_at: datetime | None = None
    """When it is next brought up to date, if that goes by the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStatus:
    """The last commit."""

    tick: Tick
    committed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainerStatus:
    """Who holds the warehouse's lease, and whether it still sends heartbeats."""

    holder: str
    epoch: int
    alive: bool
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatus:
    """What the maintainer's process holds of rows, in bytes, and its limit: `[maintenance] memory`.

    What is read of the sources and not appended yet may be counted although it is in a temporary file.
    """

    limit_bytes: int
    used_bytes: int
    """What is in use in all: the sum of the five parts."""
    arrow_bytes: int
    """What Arrow holds, for whatever."""
    captures_bytes: int
    """What was read of the sources and is not in the change log yet."""
    tail_bytes: int
    """The newest rows of the change log."""
    journal_bytes: int
    """Changes of views that are committed and not in the views' own tables yet."""
    rows_bytes: int
    """Rows of replicas and group tables, and their indexes."""
    batch_bytes: int
    """The rest of what Arrow holds: mostly what the current batch computes with."""
    mapped_bytes: int
    """Rows of replicas and group tables that are mapped from files. They count against no limit."""
    spark_limit_bytes: int | None = None
    """What Spark's driver may use, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPart:
    """A global transaction that is incomplete: the sources whose parts have arrived and those whose are missing.

    Its age counts from when the first of the parts was committed, by its source's clock.
    """

    id: str
    arrived: tuple[str, ...]
    missing: tuple[str, ...]
    committed_at: datetime
    age_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseResult:
    """A global transaction whose parts need not wait for each other any more. A running maintainer does it at once."""

    released: WaitingPart
    maintained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfMaintenanceCount:
    """How many batches a view decided about by what it knew, for how many of them no source was asked.

    `known_key_count` keys need not be asked for in all of them.
    """

    view: str
    batch_count: int = 0
    unasked_count: int = 0
    known_key_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusResult:
    """How the whole warehouse is doing. The change log holds the ticks `log_first` to `log_last`.

    `messages` is what was asked since `messages_since`, when the last maintainer began.
    """

    warehouse: str
    sources: tuple[SourceStatus, ...]
    views: tuple[ViewStatus, ...]
    last_commit: CommitStatus | None
    maintainer: MaintainerStatus | None
    log_first: Tick | None
    log_last: Tick | None
    messages: tuple[MessageCount, ...] = ()
    messages_since: datetime | None = None
    waiting_parts: tuple[WaitingPart, ...] = ()
    self_maintenance: tuple[SelfMaintenanceCount, ...] = ()
    memory: MemoryStatus | None = None
    """None where no maintainer runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshedView:
    """From which tick to which a view was brought."""

    name: str
    lo: Tick
    hi: Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshResult:
    """Views that were brought up to date, by a running maintainer or by this process."""

    views: tuple[RefreshedView, ...]
    maintained: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """What one commit did to a view: ticks (lo, hi], rows that came and went, seconds per part.

    `asked` is what sources were asked for this view. `spark_job_count` is what its batch ran on Spark, for all views
    together.
    """

    lo: Tick
    hi: Tick
    committed_at: datetime
    rows_added: int
    rows_removed: int
    asked: tuple[MessageCount, ...]
    spark_job_count: int | None
    seconds: Mapping[str, float]
    view_seconds: float = 0.0
    """How long this view took of the batch, looking rows up and computing."""
    commit_seconds: float | None = None
    """How long the commit took. The next batch of the same maintainer says it, so of the newest it is not known."""

    @property
    def timing(self) -> Mapping[str, float | None]:
        """Where the batch's time went, in milliseconds: the parts of `seconds`, each once.

        Views that are computed beside each other look up and compute at the same time: their parts may be more than
        the whole. `rest` belongs to no view: choosing where the batch ends, and waiting for threads.
        """
        parts = {
            name: 1000 * self.seconds.get(name, 0.0) for name in ("snapshot", "probe", "spark", "compute", "gather")
        }
        known = parts["probe"] + parts["spark"]
        commit = None if self.commit_seconds is None else 1000 * self.commit_seconds
        told = {
            "open": parts["snapshot"],
            "look up": parts["probe"],
            "law": parts["spark"],
            "rest": max(0.0, parts["compute"] - known),
            "gather": parts["gather"],
            "commit": commit,
            "whole": parts["snapshot"] + max(parts["compute"], 0.0) + parts["gather"] + (commit or 0.0),
            "this view": 1000 * self.view_seconds,
        }
        return {name: None if one is None else round(one, 1) for name, one in told.items()}

    @property
    def probe_count(self) -> int:
        """How often sources were asked for this view."""
        return sum(count.probe_count for count in self.asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTiming:
    """Where the time of one batch went, in milliseconds by part. None: not known yet."""

    lo: Tick
    hi: Tick
    committed_at: datetime
    spark_job_count: int | None
    milliseconds: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingResult:
    """Where the time of the batches went that changed a view, oldest first."""

    view: str
    batches: tuple[BatchTiming, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResult:
    """A view's commits, oldest first."""

    view: str
    birth: Tick
    commits: tuple[HistoryEntry, ...]

    def timing(self) -> TimingResult:
        """Return where the time of these batches went."""
        return TimingResult(
            view=self.view,
            batches=tuple(
                BatchTiming(
                    lo=one.lo,
                    hi=one.hi,
                    committed_at=one.committed_at,
                    spark_job_count=one.spark_job_count,
                    milliseconds=one.timing,
                )
                for one in self.commits
            ),
        )
