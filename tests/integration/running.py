"""A maintainer that runs beside a test, and what the test hears of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from audited import AuditedWorld
from pyspark.sql import SparkSession

from headwater.engine.service.maintainer import Maintainer
from headwater.engine.service.start import start_maintainer
from headwater.model.position import Tick
from headwater.observe.events import Event, Listener, ignore_event
from headwater.project.plan import Consent
from headwater.project.plan_result import RunResult
from headwater.project.resolve import resolve_project
from headwater.warehouse.query import Warehouse

_PATIENCE_SECONDS = 600.0
"""Longer than anything takes on a machine that does much else: whoever waits so long waits for what hangs."""


class Beside:
    """Something that keeps a warehouse's views in a thread of its own, until it is stopped."""

    def __init__(self, path: str, events: list[Event], run: Callable[[], RunResult], stop: Callable[[], None]) -> None:
        self.path = path
        self.events = events
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        self._run = run
        self._stop = stop
        self._thread = threading.Thread(target=self._keep_on, daemon=True)
        self._thread.start()

    def _keep_on(self) -> None:
        try:
            self.result = self._run()
        except BaseException as error:  # noqa: BLE001 - raised by `wait_until` and `stop`
            self.error = error

    def heard(self, *kinds: type) -> list[Event]:
        return [event for event in list(self.events) if isinstance(event, kinds)]

    def frontier(self, view: str) -> Tick:
        return Warehouse.open(self.path).frontier(view)

    def wait_until(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not what():
            if self.error is not None:
                raise self.error
            assert time.monotonic() < deadline, f"it did not happen; heard last: {self.events[-3:]}"
            time.sleep(0.05)

    def stop(self) -> None:
        self._stop()
        self._thread.join(timeout=_PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "it hangs"
        if self.error is not None:
            raise self.error


class Running(Beside):
    """A maintainer."""

    def __init__(self, world: AuditedWorld, spark: SparkSession, also: Listener, rebuild: tuple[str, ...]) -> None:
        events: list[Event] = []

        def listen(event: Event) -> None:
            events.append(event)
            also(event)

        project = world.open().project
        self.maintainer: Maintainer = start_maintainer(
            spark, resolve_project(project, spark), listen, rebuild, Consent.of(yes=True)
        )
        run = partial(self.maintainer.run, until_idle=False, ticks=None)
        super().__init__(project.warehouse, events, run, self.maintainer.stop)


@contextmanager
def running(
    world: AuditedWorld, spark: SparkSession, also: Listener = ignore_event, rebuild: tuple[str, ...] = ()
) -> Iterator[Running]:
    """Run a maintainer for a block; what it raised, the block raises at its end."""
    made = Running(world, spark, also, rebuild)
    try:
        yield made
    finally:
        made.stop()
