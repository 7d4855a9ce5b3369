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
from dataclasses import dataclass, field
from typing import Any

from headwater.maintenance.published.messages import Answered, Delivered, Effect, Install, Running
from headwater.maintenance.walk import Questions, Walks
from headwater.model.position import Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPlan:
    """What has to be asked for a transaction, all of it at once, and what to install once everything has been found."""

    questions: tuple[Questions[Any], ...]
    finish: Callable[[Sequence[Any]], Install[Any]]


Begin = Callable[[Tick, Callable[[], Tick]], TransactionPlan]
"""Begins to compute for a tick; the second argument tells the last tick delivered, whenever it is called."""


def one_by_one(questions: Questions[Install[Any]]) -> TransactionPlan:
    """Return the plan to ask one question after another, of which the last answer tells what to install."""
    return TransactionPlan(questions=(questions,), finish=lambda found: found[0])


@dataclass(slots=True)
class Job:
    """A transaction that is being computed: the numbers its questions are known by, and what they have found."""

    plan: TransactionPlan
    numbers: tuple[int, ...]
    found: dict[int, Any] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether everything has been found."""
        return len(self.found) == len(self.numbers)

    def install(self) -> Install[Any]:
        """Return what came of it."""
        return self.plan.finish([self.found[number] for number in self.numbers])


Ready = Callable[[Sequence[Job]], Sequence[Job]]


def oldest_first(jobs: Sequence[Job]) -> Sequence[Job]:
    """Return the jobs that may be installed: from the oldest one on, as long as they have ended."""
    unfinished = next((place for place, job in enumerate(jobs) if not job.has_ended), len(jobs))
    return jobs[:unfinished]


def in_order(lo: Tick, begin: Begin, *, in_flight: int, ready: Ready = oldest_first) -> Running:
    """Compute for up to `in_flight` transactions at once, and install each in its turn."""
    walks: Walks[Any] = Walks()
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
            for number, found in walks.finished():
                next(job for job in jobs if number in job.numbers).found[number] = found
            for job in list(ready(jobs)):
                effects.append(job.install())
                jobs.remove(job)
            if not queue or len(jobs) >= in_flight:
                break
            plan = begin(queue.popleft(), latest)
            started = [walks.start(questions) for questions in plan.questions]
            jobs.append(Job(plan, tuple(number for number, _ in started)))
            effects += [query for _, queries in started for query in queries]
