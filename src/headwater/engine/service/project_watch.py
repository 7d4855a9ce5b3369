"""Notice that a project's files were changed while it runs, and find out whether the change can be taken up.

A thread reads the project about once a second. What it reads counts once it was read twice the same: an editor may be
half-way through. A changed project is understood before anything is done about it, sources asked and views typed; one
that cannot be taken up is reported once, and what runs goes on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from headwater.engine.service.start import plan_run
from headwater.errors import HeadwaterError, InvalidProject, LoginRefused, SourceUnavailable, errors_of
from headwater.model.project import Project
from headwater.observe.events import Listener, ProjectRefused
from headwater.project.file import load
from headwater.project.plan import Consent
from headwater.project.resolve import ResolvedProject, resolve_project

_log = logging.getLogger(__name__)

_STOP_SECONDS = 60.0


class ProjectWatch:
    """Looks at the files of a project that runs, until the first change that can be taken up."""

    def __init__(
        self,
        running: Project,
        spark: SparkSession,
        listener: Listener,
        found: Callable[[], None],
        consent: Consent,
    ) -> None:
        """Call `found` once there is something to take up. What deletes history needs consent."""
        self.taken: ResolvedProject | None = None
        self.replaced: tuple[str, ...] = ()
        """The views that what is taken up drops or changes."""
        self._consent = consent
        self._running = running
        self._settings = running.settings.service
        self._spark = spark
        self._listener = listener
        self._found = found
        self._told = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch project", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_STOP_SECONDS)

    def _run(self) -> None:
        before: Project | str | None = None
        tried: Project | None = None
        tried_at = 0.0
        while not self._stop.wait(self._settings.project_check_interval_seconds):
            try:
                now = self._read()
                is_settled, before = now == before, now
                if not is_settled or not isinstance(now, Project):
                    continue
                if now == self._running:
                    self._told, tried = "", None
                elif now != tried or time.monotonic() - tried_at > self._settings.project_retry_interval_seconds:
                    tried, tried_at = now, time.monotonic()
                    if self._take_up(now):
                        return
            except Exception:  # noqa: BLE001 - a thread that ended would notice no later change, and nobody would know
                _log.warning("cannot look at the project's files", exc_info=True)

    def _read(self) -> Project | str:
        """Return the project as its files say it now, or why it is none."""
        try:
            return load(self._running.file)
        except HeadwaterError as error:
            self._stop.wait(self._settings.project_check_interval_seconds)
            try:
                return load(self._running.file)
            except HeadwaterError as again:
                if str(again) == str(error):
                    self._tell(error)
                return str(again)

    def _take_up(self, project: Project) -> bool:
        try:
            _require_same_place(self._running, project)
            resolved = resolve_project(project, self._spark)
            resolved.require_rights()
            plan = plan_run(resolved)
            plan.require(self._consent)
        except HeadwaterError as error:
            if not all(_is_away(one) for one in errors_of(error)):
                self._tell(error)
            return False  # it is tried again; where a source is away, nothing is wrong with the project
        self.taken, self.replaced = resolved, plan.dropped + plan.changed
        self._found()
        return True

    def _tell(self, error: HeadwaterError) -> None:
        if str(error) != self._told:
            self._told = str(error)
            self._listener(ProjectRefused(error=error))


def _require_same_place(running: Project, changed: Project) -> None:
    if (running.name, running.warehouse) != (changed.name, changed.warehouse):
        raise InvalidProject(
            "the project's name and warehouse cannot change while it runs",
            code="HW-129",
            detail=f'it runs as "{running.name}" in "{running.warehouse}"; the file says "{changed.name}" '
            f'and "{changed.warehouse}"',
            hint="stop `headwater run`, and start it again",
        )


def _is_away(error: HeadwaterError) -> bool:
    """Tell whether a source does not answer. One that refuses our login does."""
    return isinstance(error, SourceUnavailable) and not isinstance(error, LoginRefused)
