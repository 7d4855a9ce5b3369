"""What every verb answers: frozen values that the terminal, `--json` and Python callers share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

import pyarrow as pa

from headwater.advisor.kinds.parameters import Parameters, Rows
from headwater.guarantee import Guarantee
from headwater.judge.compare import Row
from headwater.judge.grade import Verdict
from headwater.lineage.obstacles import Obstacle
from headwater.lineage.reading import Origin
from headwater.lineage.traced import Traced
from headwater.position import Position, Tick


class Action(Enum):
    """What `run` will do with something."""

    CREATE = "create"
    CHANGE = "change"
    DROP = "drop"
    BOOTSTRAP = "bootstrap"
    KEEP = "keep"


class Subject(Enum):
    """What a step of a plan is about."""

    SOURCE = "source"
    REPLICA = "replica"
    VIEW = "view"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One thing that `run` will do, and why; `row_estimate` says how much a bootstrap has to read."""

    action: Action
    subject: Subject
    name: str
    reason: str = ""
    row_estimate: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSql:
    """A statement that only the owner of a source's tables may run; `ours` if our account may run it itself."""

    source: str
    statement: str
    ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """Everything that `run` will do, before anything happens, in the order it will do it."""

    steps: tuple[PlanStep, ...]
    owner_sql: tuple[OwnerSql, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[PlanStep, ...]:
        """The steps that do something."""
        return tuple(step for step in self.steps if step.action is not Action.KEEP)


class RunEnd(Enum):
    """Why `run` ended."""

    IDLE = "idle"
    TICKS = "ticks"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What one `run` did: the ticks (lo, hi] that it committed, in how many commits."""

    lo: Tick
    hi: Tick
    commit_count: int
    row_count: int
    seconds: float
    ended: RunEnd


class SourceState(Enum):
    """How a source is doing."""

    NOT_STARTED = "not started"
    BOOTSTRAPPING = "bootstrapping"
    FOLLOWING = "following"
    UNAVAILABLE = "unavailable"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """How a source is doing, and how far its log has been followed.

    The lag is how far the change log is behind the source: bytes of the source's own log (which may hold nothing for
    us), and seconds. None: not known, because no maintainer runs or the source does not answer.
    """

    name: str
    state: SourceState
    position: Position | None = None
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    last_error: str = ""
    retry_in_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCount:
    """What a source was asked for a view: probes (each has one answer), keys sent, rows and bytes received.

    `corrected_row_count` rows came or went when answers were brought to the tick that was needed.
    """

    source: str
    view: str
    probe_count: int = 0
    key_count: int = 0
    row_count: int = 0
    byte_count: int = 0
    corrected_row_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a view cannot go past a tick, and what to do about it."""

    tick: Tick
    code: str
    summary: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewStatus:
    """From which tick to which a view is readable, and its rows at the last one; None: not born yet."""

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
    """Who holds the warehouse's lease, and whether it still shows signs of life."""

    holder: str
    epoch: int
    alive: bool
    seen_at: datetime


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
    """A global transaction whose parts need not wait for each other any more; done at once if somebody maintains."""

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
    """How the whole warehouse is doing; the change log holds the ticks `log_first` to `log_last`.

    `messages` is what was asked since `messages_since`, when the last maintainer began.
    """

    warehouse: Path
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


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The rows of a query, and the tick that all views in it were read at."""

    tick: Tick
    table: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRelation:
    """The rows of a relation that derived rows of a view, each once with how often the relation holds it (`_count`)."""

    relation: str
    origin: Origin
    rows: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceResult:
    """Rows of a view at a tick, each once with `_count`, and what they derive from: by relation, and as a tree."""

    view: str
    tick: Tick
    rows: pa.Table
    relations: tuple[TracedRelation, ...]
    tree: tuple[Traced, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """Rows of a relation or view that came (`_count` above 0) and went (below 0) in the ticks (after, upto]."""

    name: str
    after: Tick
    upto: Tick
    rows: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactResult:
    """What one tick changed: its transactions' own rows, and those of every view that had come so far.

    A view that need not show every tick shows this one together with others: its rows are of more ticks than one.
    `not_yet` are views that have not come to the tick, `not_born` those that came to be at it or after.
    """

    tick: Tick
    positions: tuple[Position, ...]
    committed_at: datetime
    relations: tuple[ChangedRows, ...]
    views: tuple[ChangedRows, ...]
    not_yet: tuple[str, ...] = ()
    not_born: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedRows:
    """The rows of a view at a tick that derive from rows of a relation (`of`), each once with `_count`."""

    view: str
    tick: Tick
    rows: pa.Table
    of: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class RowImpactResult:
    """What derives from the rows of a relation that have some values, in every view that reads the relation."""

    relation: str
    row: Mapping[str, object]
    views: tuple[DerivedRows, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A transaction that brings what is missing, and that the view has not come to."""

    tick: Tick
    position: Position
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNotResult:
    """What keeps a row out of a view at a tick, the first obstacle on every way to it; none: it is there."""

    view: str
    tick: Tick
    row: Mapping[str, object]
    obstacles: tuple[Obstacle, ...]
    pending: tuple[Pending, ...] = ()
    stopped: Stop | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """What one commit did to a view: ticks (lo, hi], rows that came and went, seconds per part.

    `probe_count` is how often sources were asked for this view. `spark_job_count` is what its batch ran on Spark, for
    all views together.
    """

    lo: Tick
    hi: Tick
    committed_at: datetime
    rows_added: int
    rows_removed: int
    probe_count: int
    spark_job_count: int
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResult:
    """A view's commits, oldest first."""

    view: str
    birth: Tick
    commits: tuple[HistoryEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshedView:
    """From which tick to which a view was brought."""

    name: str
    lo: Tick
    hi: Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshResult:
    """Views that were brought up to date, by whoever maintains the warehouse or by nobody else."""

    views: tuple[RefreshedView, ...]
    maintained: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainResult:
    """How a view is maintained: a tree to read, and the same as plain data (texts, numbers, lists, mappings)."""

    view: str
    text: str
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCost:
    """What recent batches of a view took by a kind of maintenance, all together.

    `space` is the bytes of the view's rows and of all that is kept to maintain it. `unasked_count` batches asked no
    source. `agrees` if their changes are those that the view has.
    """

    space: int
    rows_in_warehouse: int
    rows_in_source: int
    probe_count: int
    unasked_count: int
    seconds: float
    agrees: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCost:
    """A kind of maintenance of a view: `predicted` by paper 002's corrected formulas, and measured.

    `space` is predicted, in bytes; `read_rows` are what the formulas would say if partners were found by an index.
    None: the paper has no formula for it, or it could not be measured, `because` of something.
    """

    kind: str
    maintenance: str
    in_use: bool
    space: float | None = None
    predicted: Rows | None = None
    read_rows: Rows | None = None
    measured: MeasuredCost | None = None
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewAnalysis:
    """A view's kinds of maintenance, compared over the same batches: so many, with so many ticks and changed rows."""

    view: str
    batch_count: int
    tick_count: int
    changed_rows: int
    parameters: Parameters
    kinds: tuple[KindCost, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeResult:
    """Paper 002 for this warehouse, and the files it was written to."""

    views: tuple[ViewAnalysis, ...]
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCheck:
    """What the judge found for a view, against what was promised."""

    view: str
    promised: Guarantee
    tick: Tick
    verdict: Verdict

    @property
    def kept(self) -> bool:
        """Whether the promise was kept."""
        return self.verdict.guarantee >= self.promised


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What the judge found."""

    views: tuple[ViewCheck, ...]

    @property
    def kept(self) -> bool:
        """Whether every promise was kept."""
        return all(view.kept for view in self.views)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Something that was dropped at a source."""

    source: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeardownResult:
    """What was dropped at the sources, and what could not be reached; the warehouse folder stays."""

    dropped: tuple[Dropped, ...]
    failed: tuple[Dropped, ...]
    warehouse: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A few rows of a view at a tick."""

    view: str
    tick: Tick
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """What the demo showed: so many transactions of so many sources, and what the judge found.

    `answer_count` answers came from probed sources; `corrected_answer_count` of them had seen transactions they should
    not have, or missed some, and were corrected by rebasing.
    """

    transaction_count: int
    source_count: int
    commit_count: int
    answer_count: int
    corrected_answer_count: int
    check: CheckResult
    samples: tuple[Sample, ...]
    seconds: float
