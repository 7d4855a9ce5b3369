"""What the verbs need of an open project. `headwater.open` gives the real one, tests give a made-up one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, cast

import typer

from headwater.model.moment import AtPosition, Moment
from headwater.observe.events import Listener

if TYPE_CHECKING:  # a verb has to say something within a second: what the others need is not imported
    from headwater.advisor.advice import AdviceResult
    from headwater.advisor.analysis import AnalyzeResult
    from headwater.api.results import HistoryResult, QueryResult
    from headwater.demo.scenes import DemoListener
    from headwater.explain.result import ExplainResult
    from headwater.judge.result import CheckResult, DemoResult
    from headwater.lineage.result import ImpactResult, RowImpactResult, TraceResult, WhyNotResult
    from headwater.observe.status import RefreshResult, ReleaseResult, StatusResult
    from headwater.project.plan_result import OwnerSqlResult, PlanResult, RunResult
    from headwater.project.teardown_result import TeardownResult
    from headwater.prove.result import ProveResult


class Facade(Protocol):
    """An open project, as the command line sees it. A context manager."""

    def plan(self, *, rebuild: tuple[str, ...]) -> PlanResult:
        """Say what `run` would do, with these views computed again."""
        ...

    def owner_sql(self, source: str) -> OwnerSqlResult:
        """Say what the owner of a source's tables has to run first."""
        ...

    def run(
        self,
        *,
        until_idle: bool,
        ticks: int | None,
        rebuild: tuple[str, ...],
        yes: bool | Collection[str],
        fail_fast: bool,
    ) -> RunResult:
        """Maintain the views until idle, for `ticks` ticks, or until interrupted. `rebuild` are computed again.

        The history of views is deleted only with a yes, to all or to these.
        """
        ...

    def status(self) -> StatusResult:
        """Say how the warehouse is doing, without the sources."""
        ...

    def query(self, sql: str, *, at: Moment | None, after: AtPosition | None) -> QueryResult:
        """Run a query over the views at one tick."""
        ...

    def history(self, view: str) -> HistoryResult:
        """List a view's commits."""
        ...

    def explain(self, view: str) -> ExplainResult:
        """Say how a view is maintained."""
        ...

    def advise(self, view: str | None, *, algorithm: str, traces_per_hour: float | None, apply: bool) -> AdviceResult:
        """Say what is worth keeping for a view, or for all of them. With `apply`, write it into the project file."""
        ...

    def trace(self, view: str, *, where: str | None, at: Moment | None, whole_rows: bool) -> TraceResult:
        """Return the source rows that derived rows of a view."""
        ...

    def impact(self, position: AtPosition) -> ImpactResult:
        """Return what one source transaction changed."""
        ...

    def row_impact(self, relation: str, where: str, *, at: Moment | None) -> RowImpactResult:
        """Return the rows of views that derive from a source row."""
        ...

    def why_not(self, view: str, where: str, *, at: Moment | None) -> WhyNotResult:
        """Return what keeps a row out of a view."""
        ...

    def check(self, view: str | None, *, ticks: int | None, steps: bool) -> CheckResult:
        """Recompute a view, or all of them, at `ticks` ticks, and compare. None means all ticks."""
        ...

    def release(self, global_id: str) -> ReleaseResult:
        """Let the parts of a global transaction go without each other."""
        ...

    def analyze(self, view: str | None) -> AnalyzeResult:
        """Say what each kind of maintenance would cost a view, or all of them."""
        ...

    def refresh(self, *views: str) -> RefreshResult:
        """Bring views up to date now."""
        ...

    def teardown(self, *, sources: tuple[str, ...]) -> TeardownResult:
        """Drop what was made at these sources, or at all if none is named."""
        ...

    def __enter__(self) -> Self:
        """Keep the project open for a block."""
        ...

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        ...


Opener: TypeAlias = Callable[[Path, Listener], Facade]


def open_project(context: typer.Context, path: Path, listener: Listener) -> Facade:
    """Return the open project: by the opener that a test put into the context, or else the real one."""
    opener = cast("Opener | None", context.obj)
    return _open(path, listener) if opener is None else opener(path, listener)


def require_demo() -> None:
    """Refuse to play the demo without the packages that it needs, before anything else is imported for it."""
    import_module("headwater.demo.needed").require_packages()


def play_demo(seconds: int, listener: DemoListener) -> DemoResult:
    """Play the demo. It is imported here, because it brings its own database servers."""
    return cast("DemoResult", import_module("headwater.demo.play").play(seconds=seconds, listener=listener))


def play_proof(
    seconds: float,
    view_limit: int | None,
    seed: int,
    replay: Path | None,
    to: Path,
    record: Path | None,
    report: Callable[[ProveResult], None],
) -> ProveResult:
    """Run `prove`. It is imported here, because it brings Spark."""
    prove = import_module("headwater.prove.proof").prove
    return cast(
        "ProveResult",
        prove(seconds=seconds, view_limit=view_limit, seed=seed, replay=replay, to=to, record=record, report=report),
    )


def _open(path: Path, listener: Listener) -> Facade:
    """Import Spark and the drivers only for a verb that needs them: `headwater --help` has to be quick."""
    return cast("Facade", import_module("headwater").open(path, listener=listener))
