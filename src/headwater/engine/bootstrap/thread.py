"""Run a bootstrap beside the maintainer's loop, again and again until its sources answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from headwater.engine.bootstrap.bootstrap import Bootstrap, Bootstrapped
from headwater.engine.state.replica_reader import ReplicaReader
from headwater.errors import SourceUnavailable
from headwater.model.relation import RelationName
from headwater.observe.events import Event

_STOP_SECONDS = 60.0


class BootstrapThread:
    """A bootstrap under way."""

    def __init__(self, job: Bootstrap, replicas: Callable[[], Mapping[RelationName, ReplicaReader]]) -> None:
        """Begin at once. `replicas` returns the copies that are in use when it is asked."""
        self._listener = job.listener
        self._job = replace(job, listener=self._tell)
        self._replicas = replicas
        self._stop = threading.Event()
        self._made: Bootstrapped | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="bootstrap", daemon=True)
        self._thread.start()

    def made(self) -> Bootstrapped | None:
        """Return what was made once it is, None before. What went wrong for good is raised."""
        if self._error is not None:
            raise self._error
        return self._made

    def stop(self) -> None:
        """End it where it is. The next maintainer goes on from the chunks that are staged."""
        self._stop.set()
        self._thread.join(timeout=_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._made = self._job.run(self._replicas)
            except SourceUnavailable:
                self._stop.wait(self._job.resolved.project.settings.service.restart_pause_seconds)
                continue
            except _StoppedError:
                return
            except BaseException as error:  # noqa: BLE001 - `made` raises it again
                self._error = error
            return

    def _tell(self, event: Event) -> None:
        if self._stop.is_set():
            raise _StoppedError
        self._listener(event)


class _StoppedError(Exception):
    """Ends a bootstrap whose maintainer was asked to stop."""
