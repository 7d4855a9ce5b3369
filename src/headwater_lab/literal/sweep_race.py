"""SWEEP of two processes that do not wait for each other: the queue is looked at some time after the answer came.

    1: R2 +(0,0)   ── ask R1 ──►
                   ◄── nothing
    2: R1 +(0,0)   delivered before the queue is looked at: taken out of an answer that does not hold it

Some time is one more message to the same source here, which asks nothing. PAPERS.md §2.2.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headwater.deltas.lookup import SawTicks
from headwater.maintenance.published.messages import Answered, Delivered, Effect, Query, Running, ViewHistory
from headwater.maintenance.published.sweep import sweep
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    inner = sweep(view, lo, log)
    effects: Sequence[Effect] = next(inner)
    sources: dict[int, str] = {}
    held: dict[int, Answered[Any]] = {}
    delivered = lo
    while True:
        sources |= {effect.number: effect.source for effect in effects if isinstance(effect, Query)}
        event = yield effects
        match event:
            case Delivered():
                delivered = event.tick
                effects = inner.send(event)
            case Answered() if event.number in held:
                effects = inner.send(replace(held.pop(event.number), sight=SawTicks(upto=delivered)))
            case Answered():
                pause: Query[Any] = Query(number=-event.number, source=sources[event.number], parts=())
                held[pause.number] = event
                effects = (pause,)


SWEEP_RACE = Variant(
    name="sweep-race",
    of="sweep",
    wrong="looks for concurrent changes when it gets to the answer, not where the answer came among them",
    run=_run,
)
