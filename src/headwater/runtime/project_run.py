"""Run a project: one maintainer after the other, a new one whenever the project was changed.

    files changed ──► understood ──► the maintainer ends after the batch at hand ──► plan ──► a new one begins

Process and Spark stay. Views that did not change go on where they were; the others are dropped, created or built anew
as `plan` would say. A rebuild that was asked for and is not finished is asked of the next maintainer again, and goes on
from the chunks that are read.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pyspark.sql import SparkSession

from headwater.errors import SourceUnavailable
from headwater.project import Project
from headwater.results.planning import RunEnd, RunResult
from headwater.runtime.events import Listener, PlanningStarted, ProjectChanged
from headwater.runtime.maintainer import Maintainer
from headwater.runtime.plan import show_plan
from headwater.runtime.project_watch import ProjectWatch
from headwater.runtime.start import plan_run, start_maintainer
from headwater.runtime.understand import Understood, understand

_RETRY_SECONDS = 1.0


class ProjectRun:
    """Maintains a project until idle, for so many ticks, or until stopped. `project` is what runs now."""

    def __init__(self, spark: SparkSession, project: Project, listener: Listener) -> None:
        """Run nothing yet."""
        self.project = project
        self._spark = spark
        self._listener = listener
        self._maintainer: Maintainer | None = None
        self._stop = threading.Event()

    def stop(self) -> None:
        """End after the batch at hand; may come from another thread or a signal."""
        self._stop.set()
        if self._maintainer is not None:
            self._maintainer.stop()

    def run(self, *, until_idle: bool, ticks: int | None, rebuild: tuple[str, ...]) -> RunResult:
        """Maintain; a run that ends once it is idle takes up no changes, the next one does."""
        self._listener(PlanningStarted(views=len(self.project.views), sources=len(self.project.sources)))
        understood = understand(self.project, self._spark)
        done: list[RunResult] = []
        while True:
            maintainer = start_maintainer(self._spark, understood, self._listener, rebuild)
            watch = ProjectWatch(self.project, self._spark, self._listener, maintainer.stop)
            left = None if ticks is None else ticks - sum(one.hi - one.lo for one in done)
            self._maintainer = maintainer
            if self._stop.is_set():
                maintainer.stop()
            if not until_idle:
                watch.start()
            is_away = False
            try:
                done.append(maintainer.run(until_idle=until_idle, ticks=left))
            except SourceUnavailable:
                if not done:  # a first one refuses a source that is away; a later one waits, as the one before did
                    raise
                is_away = True
                self._stop.wait(_RETRY_SECONDS)
            finally:
                watch.stop()
            is_changed = watch.taken is not None and done[-1].ended is RunEnd.INTERRUPTED
            if self._stop.is_set() or not (is_changed or is_away):
                return _together(done)
            rebuild = tuple(name for name in rebuild if name in maintainer.retiring())
            maintainer.release()
            if watch.taken is not None:
                understood, self.project = watch.taken, watch.taken.project
                rebuild = tuple(name for name in rebuild if name in understood.views)
                self._listener(ProjectChanged(steps=_steps(understood, rebuild)))


def _steps(understood: Understood, rebuild: tuple[str, ...]) -> tuple[str, ...]:
    changes = show_plan(plan_run(understood, rebuild), understood).changes
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
