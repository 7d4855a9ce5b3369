"""Bring the published tables of views forward, in a thread of its own: no batch, commit or chore waits for it.

A table that cannot be written is tried again at the next interval. What was published stays readable meanwhile, at an
older tick. It needs no Spark: changes are read part by part.
"""

from __future__ import annotations

import logging
import threading

from headwater.errors import HeadwaterError
from headwater.model.position import Tick
from headwater.model.project import Project
from headwater.observe.events import Listener, PublishFailed, ViewPublished
from headwater.publish.plain_table import publish_view
from headwater.storage.storage_errors import storage_error
from headwater.warehouse.query import Warehouse

_log = logging.getLogger(__name__)


class Publisher:
    """Publishes the views of which the project says so, until stopped."""

    def __init__(self, project: Project, listener: Listener) -> None:
        """Publish nothing yet."""
        self._project = project
        self._listener = listener
        self._tables = {view.name: view.published for view in project.views if view.published is not None}
        self._done: dict[str, tuple[int, Tick]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publish", daemon=True)

    def start(self) -> None:
        """Begin, if there is something to publish."""
        if self._tables:
            self._thread.start()

    def stop(self) -> None:
        """Bring all tables to the last commit, and stop."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=60)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stop.wait(self._project.settings.upkeep.publish_interval_seconds)
            try:
                self._publish()
            except Exception:  # noqa: BLE001 - publishing may fail and is tried again; it must never end the maintainer
                _log.warning("publishing failed and will be tried again", exc_info=True)

    def _publish(self) -> None:
        warehouse = Warehouse.open(self._project.warehouse)
        born = warehouse.catalog().views
        for view, path in self._tables.items():
            if view not in born:
                continue
            state = born[view].generation, warehouse.frontier(view)
            if self._done.get(view) == state:
                continue
            try:
                done = publish_view(warehouse, self._project.name, view, path)
            except Exception as error:
                told = error if isinstance(error, HeadwaterError) else storage_error(error, path)
                if told is None:
                    raise
                self._listener(PublishFailed(view=view, error=told))
                continue
            self._done[view] = state
            self._listener(
                ViewPublished(
                    view=view,
                    tick=done.tick,
                    rows_added=done.rows_added,
                    rows_removed=done.rows_removed,
                    seconds=done.seconds,
                )
            )
