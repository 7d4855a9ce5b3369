"""Everything that happens while a warehouse is maintained, as one stream of typed events.

Logs, progress bars, `run --json`, metrics and the dashboard are renderings of this stream. The code that does something
reports it once, to one listener; `fan_out` lets several listen. Listeners are called on the thread on which the
event happened and must be quick; they change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

from headwater.errors import HeadwaterError
from headwater.model.position import Position, Tick
from headwater.model.relation import RelationName


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStarting:
    """Spark is being started. That takes seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStarted:
    """Spark can be used."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningStarted:
    """The sources are asked about the relations that views read, and Spark for the types of the views' columns."""

    views: int
    sources: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConnected:
    """A source's logs are being followed, each from a position on."""

    source: str
    positions: tuple[Position, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDisconnected:
    """A source did not answer. It will be tried again."""

    source: str
    error: HeadwaterError
    retry_in_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGone:
    """What we need from a source is lost for good. Its views stop."""

    source: str
    error: HeadwaterError


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWarning:
    """Something about a source that a person should know."""

    source: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsAccepted:
    """Transactions of a source are durable in the change log and have their ticks, first to last."""

    source: str
    first: Tick
    last: Tick
    row_count: int
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStarted:
    """The ticks (lo, hi] are being computed together."""

    lo: Tick
    hi: Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCount:
    """What a source was asked: probes (each has one answer), keys sent, rows and bytes received.

    `corrected_row_count` rows of the change log came or went between what answers saw and the tick that was needed.
    """

    probe_count: int = 0
    key_count: int = 0
    row_count: int = 0
    byte_count: int = 0
    corrected_row_count: int = 0

    def __add__(self, other: ProbeCount) -> Self:
        """Return this with what was asked beside it.

        >>> (ProbeCount(probe_count=1, row_count=3) + ProbeCount(probe_count=1)).probe_count
        2
        """
        return replace(
            self,
            probe_count=self.probe_count + other.probe_count,
            key_count=self.key_count + other.key_count,
            row_count=self.row_count + other.row_count,
            byte_count=self.byte_count + other.byte_count,
            corrected_row_count=self.corrected_row_count + other.corrected_row_count,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswered(ProbeCount):
    """A source answered a batch's probes of a relation, for a view."""

    view: str
    relation: RelationName
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewComputed:
    """What a view's ticks (lo, hi] took: changed rows that it needs, old rows that were read for them, by where."""

    view: str
    lo: Tick
    hi: Tick
    changed_rows: int
    read_rows: Mapping[RelationName, int]
    row_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfMaintenanceTested:
    """Whether the ticks (lo, hi] of a view could be computed without asking, and how many keys were known."""

    view: str
    lo: Tick
    hi: Tick
    suffices: bool
    known_key_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCommitted:
    """All kept tables moved from tick lo to tick hi. `seconds` per part (probe, Spark, commit, …)."""

    lo: Tick
    hi: Tick
    row_count: int
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewBorn:
    """A view is readable from this tick on."""

    view: str
    tick: Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewStopped:
    """A view cannot go past a tick. The others go on."""

    view: str
    tick: Tick
    error: HeadwaterError


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDropped:
    """A view is no longer kept."""

    view: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectChanged:
    """The project's files were changed. These steps follow."""

    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRefused:
    """The project's files were changed and are invalid. The old project goes on."""

    error: HeadwaterError


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectWarned:
    """Something that the project says is allowed, and probably not meant."""

    warning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarehouseUpgraded:
    """A warehouse of an older format becomes one of this version's, which older versions cannot read."""

    warehouse: str
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WarehouseAdopted:
    """A warehouse did not say which project it belongs to. From now on it is this one's."""

    project: str
    warehouse: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapProgress:
    """How many rows of a relation have been read, and how fast. The estimate is the source's own and may be off."""

    relation: RelationName
    rows_read: int
    rows_estimated: int
    rows_per_second: float
    """Of what was read since this process began; 0 if nothing was."""
    finished: bool

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes if it goes on like this. None: not known."""
        rest = self.rows_estimated - self.rows_read
        if self.finished:
            return 0.0
        return rest / self.rows_per_second if self.rows_per_second > 0 and rest > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckEstimated:
    """How long it will take to compare states of views, by how long the first of each took."""

    views: tuple[str, ...]
    states_expected: int
    recomputed_expected: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckProgress:
    """How many states of a view have been recomputed and compared."""

    view: str
    states_checked: int
    states_expected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRolled:
    """A kept table's checkpoint now holds the rows as of this tick."""

    table: str
    tick: Tick
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Housekept:
    """Files that no retained commit needs are gone."""

    table: str
    files_removed: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPublished:
    """The plain table of a view, which other engines read, is at a tick."""

    view: str
    tick: Tick
    rows_added: int
    rows_removed: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishFailed:
    """The plain table of a view could not be brought forward. It stays as it was, and is tried again."""

    view: str
    error: HeadwaterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Everything accepted is committed. The sources were followed to where they stood when asked."""

    tick: Tick


Event: TypeAlias = (
    SparkStarting
    | SparkStarted
    | PlanningStarted
    | SourceConnected
    | SourceDisconnected
    | SourceGone
    | SourceWarning
    | TransactionsAccepted
    | BatchStarted
    | ProbeAnswered
    | ViewComputed
    | SelfMaintenanceTested
    | BatchCommitted
    | ViewBorn
    | ViewStopped
    | ViewDropped
    | ProjectChanged
    | ProjectRefused
    | ProjectWarned
    | WarehouseAdopted
    | WarehouseUpgraded
    | BootstrapProgress
    | CheckEstimated
    | CheckProgress
    | CheckpointRolled
    | Housekept
    | ViewPublished
    | PublishFailed
    | Idle
)

Listener: TypeAlias = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    """Ignore an event: the default listener of a session."""
    del event


def fan_out(*listeners: Listener) -> Listener:
    """Return a listener that passes every event to each of several, in their order.

    >>> heard = []
    >>> fan_out(heard.append, heard.append)(Idle(tick=Tick(3)))
    >>> heard
    [Idle(tick=3), Idle(tick=3)]
    """

    def listen(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return listen
