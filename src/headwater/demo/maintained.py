"""The maintainer in its own thread, so that the demo can write, look and wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from pyspark.sql import SparkSession

from headwater.engine.service.maintainer import Maintainer
from headwater.engine.service.start import start_maintainer
from headwater.errors import SourceUnavailable
from headwater.observe.events import Event, Listener, SourceConnected, fan_out
from headwater.project.resolve import ResolvedProject
from headwater.sources.source import shown_positions

_LOOK_SECONDS = 0.2
_FOLLOW_SECONDS = 60.0
_REST_SECONDS = 120.0


class Maintained:
    """A running maintainer, seen from another thread."""

    def __init__(self, spark: SparkSession, resolved: ResolvedProject, listener: Listener) -> None:
        """Open the warehouse. Nothing runs before `start`."""
        self._followed: set[str] = set()
        self._error: BaseException | None = None
        self._resolved = resolved
        self.maintainer: Maintainer = start_maintainer(spark, resolved, fan_out(self._hear, listener))
        self._thread = threading.Thread(target=self._run, name="maintainer", daemon=True)

    def start(self) -> None:
        """Begin to maintain."""
        self._thread.start()

    def stop(self) -> None:
        """End after the current batch."""
        self.maintainer.stop()
        self._thread.join()

    def require_alive(self) -> None:
        """Raise the error that ended the maintainer or stopped a view."""
        if self._error is not None:
            raise self._error
        for view in list(self.maintainer.views.values()):
            if view.stopped is not None:
                raise SourceUnavailable(
                    f'view "{view.name}" stopped',
                    code=view.stopped.code,
                    detail=view.stopped.summary,
                    hint=view.stopped.hint,
                )

    @property
    def are_views_born(self) -> bool:
        """Whether every view can be read."""
        return self.maintainer.views.keys() == self._resolved.views.keys()

    def wait_until_followed(self) -> None:
        """Wait until the log of every source is followed: what is committed from now on gets a tick."""
        self._wait(lambda: self._followed >= self._resolved.sources.keys(), _FOLLOW_SECONDS, lambda: None)

    def come_to_rest(self, meanwhile: Callable[[], None]) -> None:
        """Wait until every view has come to the last transaction that any source has committed by now."""
        for source in self._resolved.sources.values():
            shown = shown_positions(source, self._resolved.followed_names(source.name))
            reached = partial(self.maintainer.acceptor.wait_for, shown, _LOOK_SECONDS)
            self._wait(reached, _REST_SECONDS, meanwhile)
        last = self.maintainer.log.last_tick
        self._wait(lambda: self._slowest() >= last, _REST_SECONDS, meanwhile)

    def _slowest(self) -> int:
        return min(view.frontier for view in list(self.maintainer.views.values()))

    def _wait(self, done: Callable[[], bool], seconds: float, meanwhile: Callable[[], None]) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            self.require_alive()
            if time.monotonic() > deadline:
                raise SourceUnavailable(
                    "the maintainer does not end",
                    code="HW-702",
                    detail=f"waited {seconds:.0f} s",
                    hint="is this machine very busy? Play the demo again, perhaps with --seconds 5",
                )
            meanwhile()
            time.sleep(_LOOK_SECONDS)  # how often a person sees the picture change meanwhile

    def _hear(self, event: Event) -> None:
        if isinstance(event, SourceConnected):
            self._followed.add(event.source)

    def _run(self) -> None:
        try:
            self.maintainer.run(until_idle=False, ticks=None)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that looks
            self._error = error


@contextmanager
def maintained(spark: SparkSession, resolved: ResolvedProject, listener: Listener) -> Iterator[Maintained]:
    """Maintain a project's views for a block."""
    running = Maintained(spark, resolved, listener)
    running.start()
    try:
        yield running
    finally:
        running.stop()
    running.require_alive()
