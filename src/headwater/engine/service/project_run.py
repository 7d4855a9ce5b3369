"""Run a project: one maintainer after the other, a new one whenever the project was changed.

    files changed ──► understood ──► the maintainer ends after the current batch ──► plan ──► a new one begins

Process and Spark stay. Views that did not change go on where they were; the others are dropped, created or built again
as `plan` would say. A rebuild that was asked for and is not finished is asked of the next maintainer again, and goes on
from the chunks that are read.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pyspark.sql import SparkSession

from headwater.deltas.on_spark import make_ready
from headwater.engine.service.maintainer import Maintainer
from headwater.engine.service.project_watch import ProjectWatch
from headwater.engine.service.start import start_maintainer
from headwater.errors import SourceUnavailable
from headwater.model.project import Project
from headwater.observe.events import Listener, PlanningStarted, ProjectChanged, ProjectWarned
from headwater.project.plan import Consent, RunPlan, show_plan
from headwater.project.plan_result import RunEnd, RunResult
from headwater.project.resolve import ResolvedProject, resolve_project

_NO_CONSENT = Consent()


class ProjectRun:
    """Maintains a project until idle, for a number of ticks, or until stopped. `project` is what runs now."""

    def __init__(self, spark: SparkSession, project: Project, listener: Listener) -> None:
        """Run nothing yet."""
        self.project = project
        self.is_starting = True
        """Whether nothing is maintained yet, so that it can be ended at any moment."""
        self._spark = spark
        self._listener = listener
        self._maintainer: Maintainer | None = None
        self._stop = threading.Event()

    def stop(self) -> None:
        """End after the current batch. May come from another thread or a signal."""
        self._stop.set()
        if self._maintainer is not None:
            self._maintainer.stop()

    def run(
        self,
        *,
        until_idle: bool,
        ticks: int | None,
        rebuild: tuple[str, ...],
        consent: Consent = _NO_CONSENT,
        fail_fast: bool = False,
    ) -> RunResult:
        """Maintain. A run that ends once it is idle takes up no changes, the next one does.

        A change that would delete the history of views is taken up only with consent.
        """
        self._listener(PlanningStarted(views=len(self.project.views), sources=len(self.project.sources)))
        make_ready(self._spark)
        resolved = resolve_project(self.project, self._spark)
        done: list[RunResult] = []
        warned: set[str] = set()
        is_changed = False
        while True:
            self._warn(resolved, warned)
            maintainer = self._start(resolved, rebuild, consent, is_first=not done)
            if maintainer is None:
                return _together(done)
            if is_changed:
                self._listener(ProjectChanged(steps=_steps(maintainer.plan, resolved)))
            watch = ProjectWatch(self.project, self._spark, self._listener, maintainer.stop, consent)
            left = None if ticks is None else ticks - sum(one.hi - one.lo for one in done)
            self._maintainer, self.is_starting = maintainer, False
            if self._stop.is_set():
                maintainer.stop()
            if not until_idle:
                watch.start()
            is_away = False
            try:
                done.append(maintainer.run(until_idle=until_idle, ticks=left, fail_fast=fail_fast))
            except SourceUnavailable:
                if not done:  # a first one refuses a source that is away; a later one waits, as the one before did
                    raise
                is_away = True
                self._stop.wait(self.project.settings.service.restart_pause_seconds)
            finally:
                watch.stop()
            is_changed = watch.taken is not None and done[-1].ended is RunEnd.INTERRUPTED
            if self._stop.is_set() or not (is_changed or is_away):
                return _together(done)
            rebuild = tuple(name for name in rebuild if name in maintainer.retiring())
            maintainer.release()
            if watch.taken is not None:
                resolved, self.project = watch.taken, watch.taken.project
                rebuild = tuple(name for name in rebuild if name in resolved.views)
                consent = consent.also(watch.replaced)  # their history may have begun since they were looked at
            is_changed = watch.taken is not None

    def _warn(self, resolved: ResolvedProject, warned: set[str]) -> None:
        """Say what the project should know, each thing once."""
        for warning in (one for one in resolved.warnings if one not in warned):
            self._listener(ProjectWarned(warning=warning))
            warned.add(warning)

    def _start(
        self, resolved: ResolvedProject, rebuild: tuple[str, ...], consent: Consent, *, is_first: bool
    ) -> Maintainer | None:
        """Make a maintainer. Unless it is the first, wait for a source that is away. None: stopped meanwhile."""
        while True:
            try:
                return start_maintainer(self._spark, resolved, self._listener, rebuild, consent)
            except SourceUnavailable:
                if is_first:
                    raise
            if self._stop.wait(self.project.settings.service.restart_pause_seconds):
                return None


def _steps(plan: RunPlan, resolved: ResolvedProject) -> tuple[str, ...]:
    changes = show_plan(plan, resolved).changes
    return tuple(f"{step.action.value} {step.subject.value} {step.name}" for step in changes)


def _together(done: Sequence[RunResult]) -> RunResult:
    """Return what several maintainers did as what one run did."""
    return RunResult(
        lo=done[0].lo,
        hi=done[-1].hi,
        commit_count=sum(one.commit_count for one in done),
        row_count=sum(one.row_count for one in done),
        seconds=sum(one.seconds for one in done),
        ended=done[-1].ended,
    )
