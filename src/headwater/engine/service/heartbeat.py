"""The heartbeat, in a thread of its own: however long a batch takes, the lease is renewed and `status` is fresh.

A reader may wait beside the maintainer until a source's log was followed. The heartbeat notices it, and hastens the
source.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from headwater.changelog.accept import Acceptor
from headwater.engine.service.live_status import write_status
from headwater.errors import HeadwaterError
from headwater.model.position import Position
from headwater.model.settings import ServiceSettings
from headwater.observe.messages import Messages
from headwater.observe.status import MemoryStatus
from headwater.storage.object_store import look_seconds
from headwater.warehouse.lease import release_lease, renew_lease
from headwater.warehouse.mailbox import awaited_positions

_log = logging.getLogger(__name__)

_LEASE_SECONDS = 5.0
_LOOK_SECONDS = 0.1


class SignsOfLife:
    """Says that this process maintains a warehouse, and how its sources are doing, until stopped."""

    def __init__(
        self,
        warehouse: str,
        epoch: int,
        acceptor: Acceptor,
        messages: Messages,
        memory: Callable[[], MemoryStatus],
        is_bootstrapping: Callable[[], bool],
        settings: ServiceSettings,
    ) -> None:
        """Say nothing yet."""
        self._warehouse = warehouse
        self._epoch = epoch
        self._acceptor = acceptor
        self._messages = messages
        self._memory = memory
        self._is_bootstrapping = is_bootstrapping
        self._look_seconds = look_seconds(warehouse, _LOOK_SECONDS, settings.remote_look_interval_seconds)
        self._status_seconds = max(self._look_seconds, settings.status_interval_seconds)
        self._told: dict[str, Position] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Say how far everything has come, and that this process is done: the next need not wait."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_LEASE_SECONDS)
        try:
            write_status(self._warehouse, self._acceptor, self._messages, self._memory(), bootstrapping=False)
            release_lease(self._warehouse, self._epoch)
        except (OSError, HeadwaterError):
            _log.warning("cannot say that this maintainer has stopped", exc_info=True)

    def _run(self) -> None:
        renewed_at = said_at = 0.0
        while not self._stop.wait(self._look_seconds):
            try:
                if time.monotonic() - renewed_at > _LEASE_SECONDS:
                    renew_lease(self._warehouse, self._epoch)
                    renewed_at = time.monotonic()
                if self._is_awaited() or time.monotonic() - said_at > self._status_seconds:
                    bootstrapping, memory = self._is_bootstrapping(), self._memory()
                    write_status(self._warehouse, self._acceptor, self._messages, memory, bootstrapping=bootstrapping)
                    said_at = time.monotonic()
            except Exception:  # noqa: BLE001 - a full disk, say: who has to write there for its work will tell
                _log.warning("the heartbeat failed", exc_info=True)

    def _is_awaited(self) -> bool:
        """Tell whether somebody waits for what has not been said yet. Sources that are not there yet are hastened."""
        accepted = self._acceptor.accepted_to()
        found = False
        for name, thread in self._acceptor.threads().items():
            for log, position in awaited_positions(self._warehouse, name).items():
                reached = accepted.get(log)
                if reached is None or position.history != reached.history:
                    continue  # the reader that waits saw another history of the source
                if position <= reached:
                    found = found or self._told.get(log) != position
                    self._told[log] = position
                else:
                    thread.hasten(position)
        return found
