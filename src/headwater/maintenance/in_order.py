"""In order: compute for several transactions at once, install in the order in which they were accepted.

    7 ──────────── answer ─────────► install 7, 8
    8 ──── answer ──► waits for 7

Both states that a transaction's change lies between are right only if every install finds the view at the tick before.
Paper 001's Theorem 2 says "in the order in which they have been queried"; it must be the order in which they got their
initial versions. In the order in which they are completed, 332 of 1,000 runs only converge (PAPERS.md §4).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.maintenance.messages import Answered, Delivered, Effect, Install, Running
from headwater.maintenance.walk import Questions, Walks
from headwater.position import Tick

Begin = Callable[[Tick, Callable[[], Tick]], Questions[Install[Any]]]
"""Begins to compute for a tick; the second argument tells the last tick delivered, whenever it is called."""


@dataclass(slots=True)
class Job:
    """A transaction that is being computed: the number it is known by while it asks, and what came of it."""

    number: int
    install: Install[Any] | None = None


Ready = Callable[[Sequence[Job]], Sequence[Job]]


def oldest_first(jobs: Sequence[Job]) -> Sequence[Job]:
    """Return the jobs that may be installed: from the oldest one on, as long as they have ended."""
    unfinished = next((place for place, job in enumerate(jobs) if job.install is None), len(jobs))
    return jobs[:unfinished]


def in_order(lo: Tick, begin: Begin, *, in_flight: int, ready: Ready = oldest_first) -> Running:
    """Compute for up to `in_flight` transactions at once, and install each in its turn."""
    walks: Walks[Install[Any]] = Walks()
    queue: deque[Tick] = deque()
    jobs: list[Job] = []
    effects: list[Effect] = []
    delivered = lo

    def latest() -> Tick:
        return delivered

    while True:
        event = yield effects
        effects = []
        match event:
            case Delivered():
                assert event.tick == delivered + 1, "ticks are delivered in order, none left out"
                delivered = event.tick
                queue.append(delivered)
            case Answered():
                effects += walks.take(event)
        while True:
            ended = dict(walks.finished())
            for job in jobs:
                job.install = ended.get(job.number, job.install)
            for job in list(ready(jobs)):
                assert job.install is not None, "only what has ended is installed"
                effects.append(job.install)
                jobs.remove(job)
            if not queue or len(jobs) >= in_flight:
                break
            number, queries = walks.start(begin(queue.popleft(), latest))
            jobs.append(Job(number))
            effects += queries
