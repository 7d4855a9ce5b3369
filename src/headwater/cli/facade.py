"""What the verbs need of an open project. `headwater.open` gives the real one, tests give a made-up one."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, cast

import typer

from headwater.moment import AtPosition, Moment
from headwater.runtime.events import Listener

if TYPE_CHECKING:  # a verb has to say something within a second: what the others need is not imported
    from headwater.advisor.advice import AdviceResult
    from headwater.demo.scenes import DemoListener
    from headwater.results.checking import CheckResult, DemoResult
    from headwater.results.keeping import AnalyzeResult, RefreshResult
    from headwater.results.lineage import ImpactResult, RowImpactResult, TraceResult, WhyNotResult
    from headwater.results.planning import PlanResult, RunResult
    from headwater.results.reading import ExplainResult, HistoryResult, QueryResult
    from headwater.results.status import ReleaseResult, StatusResult
    from headwater.results.teardown import TeardownResult


class Facade(Protocol):
    """An open project, as the command line sees it. A context manager."""

    def plan(self, *, rebuild: tuple[str, ...]) -> PlanResult:
        """Say what `run` would do if it were asked to compute these views anew."""
        ...

    def run(self, *, until_idle: bool, ticks: int | None, rebuild: tuple[str, ...]) -> RunResult:
        """Maintain the views until idle, for so many ticks, or until interrupted; `rebuild` are computed anew."""
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
        """Say what is worth keeping for a view, or for all of them; with `apply`, write it into the project file."""
        ...

    def trace(self, view: str, *, where: str | None, at: Moment | None, whole_rows: bool) -> TraceResult:
        """Return the source rows that derived rows of a view."""
        ...

    def impact(self, position: AtPosition) -> ImpactResult:
        """Return what one source transaction changed."""
        ...

    def row_impact(self, relation: str, row: str, *, at: Moment | None) -> RowImpactResult:
        """Return the rows of views that derive from a source row."""
        ...

    def why_not(self, view: str, row: str, *, at: Moment | None) -> WhyNotResult:
        """Return what keeps a row out of a view."""
        ...

    def check(self, view: str | None, *, ticks: int | None) -> CheckResult:
        """Recompute a view, or all of them, at so many ticks (None: at all), and compare."""
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
        """Drop what was made at these sources; none named: at all."""
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


def play_demo(seconds: int, listener: DemoListener) -> DemoResult:
    """Play the demo; imported only now, because it brings its own database servers."""
    return cast("DemoResult", import_module("headwater.demo.play").play(seconds=seconds, listener=listener))


def _open(path: Path, listener: Listener) -> Facade:
    """Import Spark and the drivers only for a verb that needs them: `headwater --help` has to be quick."""
    return cast("Facade", import_module("headwater").open(path, listener=listener))
