"""The settings of a project: what an operator may change to trade memory, latency, load and freshness.

No setting changes what a view shows at a tick. Each is a key of the project file, in the table of its group:

    [settings.capture]
    append_pause = "50 ms"

A field is a setting: its type says how the value is written and between which bounds it lies, and the sentence below it
says what it means. The project file reads all fields of this module, and docs/reference/settings.md lists them, so that
a new one stands here alone. The object is passed to the code that needs it; nothing reads it from a global.

>>> DEFAULTS.capture.note_after_bytes == 16 * 2**20
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Annotated, Any, TypeAlias, get_type_hints


class Unit(Enum):
    """How a value is written in the project file."""

    COUNT = "a whole number"
    DURATION = "a length of time"
    SIZE = "a number of bytes"


UNITS: Mapping[Unit, Mapping[str, float]] = {
    Unit.COUNT: {},
    Unit.DURATION: {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "days": 86_400},
    Unit.SIZE: {
        "B": 1,
        "kB": 10**3,
        "KiB": 2**10,
        "MB": 10**6,
        "MiB": 2**20,
        "GB": 10**9,
        "GiB": 2**30,
        "TB": 10**12,
        "TiB": 2**40,
    },
}
"""What one of each unit is, in seconds or bytes."""

_KEY_ENDS = {Unit.COUNT: "", Unit.DURATION: "_seconds", Unit.SIZE: "_bytes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """How a setting's value is written, and its smallest and largest value."""

    unit: Unit
    least: float
    most: float

    def text(self, value: float) -> str:
        """Return a value as it is written in the project file, in the largest unit that leaves it whole.

        >>> Allowed(unit=Unit.DURATION, least=0, most=60).text(0.25), Allowed(unit=Unit.COUNT, least=1, most=9).text(4)
        ('"250 ms"', '4')
        """
        whole = [
            (size, name) for name, size in UNITS[self.unit].items() if value >= size and (value / size).is_integer()
        ]
        if self.unit is Unit.COUNT:
            return f"{value:.0f}"
        size, name = max(whole, default=(1.0, "s" if self.unit is Unit.DURATION else "B"))
        return f'"{value / size:g} {name.removesuffix("s") if name == "days" and value == size else name}"'


Count: TypeAlias = Annotated[int, Allowed(unit=Unit.COUNT, least=1, most=10**12)]
Percent: TypeAlias = Annotated[int, Allowed(unit=Unit.COUNT, least=1, most=100)]
Seconds: TypeAlias = Annotated[float, Allowed(unit=Unit.DURATION, least=0.001, most=86_400)]
Pause: TypeAlias = Annotated[float, Allowed(unit=Unit.DURATION, least=0, most=86_400)]
"""Seconds that may be none at all."""
Bytes: TypeAlias = Annotated[int, Allowed(unit=Unit.SIZE, least=0, most=2**50)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """From the log of a source to the change log."""

    capture_rows: Count = 20_000
    """Changed rows of a source after which its transactions are handed over together."""
    capture_time_seconds: Seconds = 0.05
    """How long transactions of a source are collected before they are handed over, while more come."""
    append_rows: Count = 100_000
    """Changed rows after which one append to the change log takes no more transactions."""
    append_pause_seconds: Pause = 0.1
    """The longest pause between two appends, in which transactions gather. A batch waits no longer for them."""
    append_pause_times: Count = 4
    """The pause is as many times as long as the append before it, up to `append_pause`."""
    note_after_bytes: Bytes = 16 * 2**20
    """How much log without changes for us is followed before that is noted, so that the source may forget it."""
    note_interval_seconds: Pause = 60.0
    """The same after this time, however little was followed."""
    held_wait_seconds: Pause = 5.0
    """How long a batch waits for a source that stands still at an incomplete global transaction."""
    reconnect_first_seconds: Seconds = 0.2
    """The pause before a lost source is connected to again; it doubles each time."""
    reconnect_longest_seconds: Seconds = 15.0
    """The longest such pause."""
    login_first_seconds: Seconds = 0.5
    """The pause after a refused login, in which the server is not asked again; it doubles each time."""
    login_longest_seconds: Seconds = 30.0
    """The longest such pause."""
    report_interval_seconds: Seconds = 5.0
    """How often, at least, what is durable here is acknowledged to a source; more often if its own timeout is short."""
    partition_check_interval_seconds: Pause = 10.0
    """How often the catalog of a source is asked whether partitions were attached or detached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """One batch of maintenance. `[maintenance]` says how large it is and how long it waits."""

    held_rows: Count = 300_000
    """Signed rows up to which a bag of a batch is held in memory, or fewer, by `[maintenance] memory`."""
    lookup_rows: Count = 3_000_000
    """Stored rows that one lookup searches in this process, part by part; for more it starts a Spark job."""
    replica_behind_rows: Count = 20_000
    """Changed rows after which a replica is brought forward to the views; until then they are read in the log."""
    views_at_once: Count = 4
    """Views that a batch computes at a time, no more than there are processors. Those that share steps take turns."""
    slow_view_wait_seconds: Seconds = 30.0
    """How long a batch waits for views after others have ended. Then it commits without them, and they follow."""
    recomputed_ticks: Count = 100
    """Ticks in one batch of a view that is recomputed at every tick; other views wait for it no longer."""
    follow_wait_seconds: Seconds = 10.0
    """How long a batch waits until the change log holds all that a source's answer may have seen."""
    idle_wait_seconds: Seconds = 60.0
    """How long `run --until-idle` waits for a source's log before it looks again."""
    answer_wait_seconds: Seconds = 0.5
    """How long a published algorithm waits for answers before it installs those it has."""
    ask_again_pause_seconds: Pause = 0.5
    """The pause of a published algorithm before it asks a source again that did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepSettings:
    """What keeps a warehouse quick and small, beside the batches."""

    interval_seconds: Seconds = 5.0
    """How often it is looked for something to do."""
    remote_interval_seconds: Seconds = 30.0
    """The same where the warehouse is on an object store: each look is a few requests for every table."""
    fold_commits: Count = 100
    """Commits after which their changes are moved from the journal into the tables of the views."""
    fold_interval_seconds: Seconds = 30.0
    """The same after this time, however few commits there were."""
    journal_files: Count = 32
    """Data files of the journal after which they are merged, without the changes that the tables have."""
    checkpoint_interval_seconds: Seconds = 30.0
    """The shortest time between two checkpoints of a view."""
    checkpoint_time_percent: Percent = 5
    """The share of the time that checkpoints of one view may take; the larger it is, the more rarely they are made."""
    publish_interval_seconds: Seconds = 10.0
    """How often the plain tables of views with `publish` are brought forward, beside the batches."""
    replica_refresh_rows: Count = 200_000
    """Changed rows after which a replica is stored again, or a group table read again, once they are a fifth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapSettings:
    """The first reading of relations, and the first computation of views."""

    chunk_rows: Count = 500_000
    """Rows of a relation that are read and stored together; what is stored is not read again after a restart."""
    readers: Count = 4
    """Chunks of a relation that are read at a time; `probe_connections` of the source is a limit too, and the cores."""
    views_at_once: Count = 4
    """Views that are computed at a time, but no more than there are processors."""
    small_rows: Count = 20_000
    """A view is computed by one Spark task, and its rows are written here, if it and all it reads have no more rows."""
    open_transactions_wait_seconds: Seconds = 60.0
    """How long the first reading of a source waits for transactions there that are still open."""
    follow_wait_seconds: Seconds = 60.0
    """How long it waits until the change log holds all that was read."""
    adopt_wait_seconds: Seconds = 60.0
    """How long new views wait for the shared group tables of others; then they compute their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSettings:
    """Reading views, and waiting for them."""

    local_rows: Count = 1_000_000
    """A query of a view of no more rows is answered in this process if it can be; otherwise Spark is started."""
    handed_rows: Count = 20_000
    """A view of no more rows is read here and handed to Spark, which else reads the files itself."""
    judged_rows: Count = 100_000
    """Rows of a relation, and of a view, that `check` gives to DuckDB as a second judge."""
    after_wait_seconds: Seconds = 60.0
    """How long `query --after` waits for a view."""
    refresh_wait_seconds: Seconds = 600.0
    """How long `refresh` waits for a running maintainer."""
    follow_wait_seconds: Seconds = 120.0
    """How long `check`, `trace` and the like wait until a running maintainer has followed a source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The running service."""

    status_interval_seconds: Seconds = 0.5
    """How often `run` writes how its sources are doing, for `status`."""
    remote_look_interval_seconds: Seconds = 2.0
    """How often `run` looks into a warehouse on an object store for messages, and says there how it is doing.

    Each time is a few requests, which cost money; in a folder it looks ten times in a second.
    """
    project_check_interval_seconds: Seconds = 0.7
    """How often the project's files are looked at for changes."""
    project_retry_interval_seconds: Seconds = 10.0
    """How often a changed project that could not be taken up is tried again."""
    executor_wait_seconds: Seconds = 120.0
    """How long a Spark that runs elsewhere may take to answer, and its executors until one runs the first task."""
    restart_pause_seconds: Pause = 1.0
    """The pause before views or a bootstrap are started again whose source is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a project, in groups. A group is a table `[settings.NAME]` of the project file."""

    capture: CaptureSettings = field(default_factory=CaptureSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    upkeep: UpkeepSettings = field(default_factory=UpkeepSettings)
    bootstrap: BootstrapSettings = field(default_factory=BootstrapSettings)
    reading: ReadingSettings = field(default_factory=ReadingSettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)


DEFAULTS = Settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One field of a group: its name in Python, its key in the project file, what it may be, and its default."""

    field: str
    key: str
    allowed: Allowed
    default: float


def groups() -> dict[str, Any]:
    """Return the groups of settings by name, with their defaults."""
    return {group.name: getattr(DEFAULTS, group.name) for group in fields(Settings)}


def settings_of(group: Any) -> dict[str, Setting]:
    """Return the settings of a group by their keys.

    >>> settings_of(DEFAULTS.capture)["note_after"].field
    'note_after_bytes'
    """
    hints = get_type_hints(type(group), include_extras=True)
    found = [
        Setting(
            field=one.name,
            key=one.name.removesuffix(_KEY_ENDS[hints[one.name].__metadata__[0].unit]),
            allowed=hints[one.name].__metadata__[0],
            default=getattr(group, one.name),
        )
        for one in fields(group)
    ]
    return {setting.key: setting for setting in found}
