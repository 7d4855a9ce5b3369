"""What `plan` and `run` answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headwater.errors import HeadwaterError
from headwater.model.position import Tick


class Action(Enum):
    """What `run` will do with something."""

    CREATE = "create"
    CHANGE = "change"
    DROP = "drop"
    BOOTSTRAP = "bootstrap"
    WIDEN = "widen"
    KEEP = "keep"
    LEAVE = "leave"
    """A view that Headwater fails to resolve: it is neither created, maintained nor dropped."""


class Subject(Enum):
    """What a step of a plan is about."""

    SOURCE = "source"
    REPLICA = "replica"
    VIEW = "view"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One thing that `run` will do, and why. `row_estimate` says how much a bootstrap has to read."""

    action: Action
    subject: Subject
    name: str
    reason: str = ""
    row_estimate: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSql:
    """A statement that only the owner of a source's tables may run. `ours` if our account may run it itself."""

    source: str
    statement: str
    ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSqlResult:
    """What the owner of a source's tables has to run before it can be followed, and what stands in the way besides."""

    source: str
    statements: tuple[str, ...]
    refusals: tuple[HeadwaterError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """Everything that `run` will do, before anything happens, in the order it will do it."""

    steps: tuple[PlanStep, ...]
    owner_sql: tuple[OwnerSql, ...] = ()
    warnings: tuple[str, ...] = ()
    lost_history: tuple[str, ...] = ()
    """Views whose history will be deleted: `run` asks first, or needs `--yes`."""

    @property
    def changes(self) -> tuple[PlanStep, ...]:
        """The steps that do something."""
        return tuple(step for step in self.steps if step.action not in {Action.KEEP, Action.LEAVE})


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
