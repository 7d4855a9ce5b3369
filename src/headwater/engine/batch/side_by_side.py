"""Compute groups of views beside each other. A batch does not wait for a group that takes much longer than the others.

    batch (4, 9]    fast ──►   commit 9     batch (9, 14]   fast ──►   commit 14                    batch (9, 14]  slow
                    slow ───────────────────────────────────────────────────────────►   slow at 9

A group that is late goes on in its thread, and its views are in no batch until its outcomes are collected, and are
committed. One thread at least is left to the others: with no more of them, the batch waits. It waits, too, where some
group has been late for long: now and then none is, and then what waits for that is done.

Invariants
1. A view is in one batch at a time: `late` names those that must be left out.
2. While a group is late, what it looks rows up in stays as it is: the caller lays nothing on replicas, leaves out the
   views that share an auxiliary table with a late one, and deletes none of the files that batches pass on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

Found = TypeVar("Found")

Group = Sequence[str]

_LATE_TIMES = 4
"""So many times as long as a batch waits for a group, others may be left behind after the first."""


class SideBySide(Generic[Found]):
    """Threads that compute views. The maintainer's loop alone uses it."""

    def __init__(self, at_once: int, patience_seconds: float) -> None:
        """Use as many threads, and wait so long for a group after another one has ended."""
        self.has_threads = at_once > 1
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="view")
        self._most_late = at_once - 1
        self._patience_seconds = patience_seconds
        self._late: dict[Future[Mapping[str, Found]], Group] = {}
        self._late_since = 0.0
        """When the first of those that are late was left behind."""

    @property
    def late(self) -> frozenset[str]:
        """The views that are computed still, of batches that were committed without them."""
        return frozenset(name for group in self._late.values() for name in group)

    def run(
        self, groups: Sequence[Group], compute: Callable[[Group], Mapping[str, Found]], unhurried: Collection[str]
    ) -> dict[str, Found]:
        """Return the outcomes of the groups that end in time, and leave others behind that have no `unhurried` view.

        If one fails, that is raised once all have ended.
        """
        running = {self._pool.submit(compute, group): group for group in groups}
        left = set(running)
        while left:
            ended, left = wait(left, self._patience_seconds, return_when=FIRST_COMPLETED)
            is_alone = len(left) == len(running)
            if not ended and not is_alone and self._leave_behind({one: running[one] for one in left}, unhurried):
                break
        in_time = [one for one in running if one not in self._late and not one.cancelled()]
        wait(in_time)
        return {name: outcome for one in in_time for name, outcome in one.result().items()}

    def _leave_behind(self, left: Mapping[Future[Mapping[str, Found]], Group], unhurried: Collection[str]) -> bool:
        """Leave groups behind, if that is possible. What has not begun is left to the next batch."""
        begun = {one: group for one, group in left.items() if one.running()}
        if len(self._late) + len(begun) > self._most_late or self._is_late_for_long():
            return False
        if any(name in unhurried for group in left.values() for name in group):
            return False
        for one in left.keys() - begun.keys():
            one.cancel()
        if not self._late:
            self._late_since = time.monotonic()
        self._late |= begun
        return True

    def _is_late_for_long(self) -> bool:
        return bool(self._late) and time.monotonic() - self._late_since > _LATE_TIMES * self._patience_seconds

    def wait(self, seconds: float) -> bool:
        """Wait for a late group, not long. Return False if there is none."""
        wait(self._late, seconds, return_when=FIRST_COMPLETED)
        return bool(self._late)

    def ended(self) -> dict[str, Found]:
        """Return the outcomes of late groups that have ended meanwhile."""
        found: dict[str, Found] = {}
        for one in [one for one in self._late if one.done()]:
            del self._late[one]
            found |= one.result()
        return found

    def close(self) -> None:
        """Wait until every thread has ended. What was late is computed again by the next maintainer."""
        self._pool.shutdown()
