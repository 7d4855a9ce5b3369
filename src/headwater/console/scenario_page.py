"""The lab's page: a scenario as a message-sequence picture, move by move, if the lab is installed.

The lab is a distribution of its own that Headwater does not import. It brings what is shown here as an entry point of
the group `headwater.console`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import entry_points
from typing import Protocol

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from headwater.console.app import Console

GROUP = "headwater.console"
_COLUMN, _TOP, _LINE, _SIDE = 190, 44, 18, 110
_RECEIVE = re.compile(r"warehouse: receive ([A-Za-z_]\w*)")
_ACTOR = re.compile(r"([A-Za-z_]\w*)(?:\.(\w+))?: (.*)")
_ASK = re.compile(r"ask ([A-Za-z_]\w*)\b")
_WAREHOUSE = "warehouse"
_NOT_ONE = frozenset({"all"})
"""Who moves where no single source does."""


class PlayedStep(Protocol):
    """A move of a scenario, and what followed from it, line by line."""

    @property
    def move(self) -> str:
        """The move as a scenario writes it."""

    @property
    def happened(self) -> Sequence[str]:
        """What followed."""


class ScenarioStage(Protocol):
    """What the lab brings."""

    def titles(self) -> Sequence[tuple[str, str]]:
        """Return the scenarios that ship: name and title."""

    def play(self, name: str) -> tuple[Sequence[PlayedStep], Sequence[str]]:
        """Play one to its end: its moves, and lines that say how it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    parts: tuple[str, ...]
    height: float


def routes(console: Console) -> APIRouter:
    """Return the routes of this module."""
    router = APIRouter()

    @router.get("/lab")
    def lab(request: Request) -> HTMLResponse:
        stage = _stage()
        titles = [] if stage is None else stage.titles()
        return console.page(request, "lab.html", titles=titles, is_installed=stage is not None, picture="", name="")

    @router.get("/lab/{name}")
    def scenario(request: Request, name: str) -> HTMLResponse:
        stage = _stage()
        titles = [] if stage is None else stage.titles()
        moves, ending = ((), ()) if stage is None else stage.play(name)
        return console.page(
            request,
            "lab.html",
            titles=titles,
            is_installed=stage is not None,
            picture=draw_sequence(moves),
            name=name,
            ending=ending,
        )

    return router


def _stage() -> ScenarioStage | None:
    for one in entry_points(group=GROUP):
        found: ScenarioStage = one.load()()
        return found
    return None


def draw_sequence(moves: Sequence[PlayedStep]) -> str:
    """Return moves as a message-sequence picture: a lifeline for each source and the warehouse, time goes down."""
    sources = sorted({name for one in moves for name in _named(one) if name != _WAREHOUSE})
    places = {name: _SIDE + number * _COLUMN for number, name in enumerate([*sources, _WAREHOUSE])}
    parts: list[str] = []
    y = float(_TOP)
    for number, one in enumerate(moves, start=1):
        drawn = _draw_move(number, one, places, y)
        parts += drawn.parts
        y += drawn.height
    lines = [
        f'<line class="life" x1="{x}" y1="{_TOP - 14}" x2="{x}" y2="{y:.0f}"/>'
        f'<text class="name" x="{x}" y="{_TOP - 22}" text-anchor="middle">{escape(name)}</text>'
        for name, x in places.items()
    ]
    width = places[_WAREHOUSE] + 620
    return (
        f'<svg class="sequence" viewBox="0 0 {width} {y + 8:.0f}" width="{width}" height="{y + 8:.0f}" role="img" '
        f'aria-label="messages between sources and the warehouse">{"".join(lines)}{"".join(parts)}</svg>'
    )


def _named(one: PlayedStep) -> set[str]:
    received, actor = _RECEIVE.match(one.move), _ACTOR.match(one.move)
    asked = {found[1] for line in one.happened if (found := _ASK.search(line))}
    told = {received[1]} if received else {actor[1]} if actor else set()
    return asked | (told - _NOT_ONE)


def _draw_move(number: int, one: PlayedStep, places: dict[str, int], y: float) -> _Drawn:
    parts = [f'<text class="number" x="16" y="{y + 4:.0f}">{number}</text>']
    warehouse = places[_WAREHOUSE]
    received, actor = _RECEIVE.match(one.move), _ACTOR.match(one.move)
    if received:
        parts.append(_arrow(places[received[1]], warehouse, y, one.move.removeprefix("warehouse: ")))
    elif actor and actor[1] in places:
        x = places[actor[1]]
        parts.append(f'<circle class="event" cx="{x}" cy="{y:.0f}" r="4"/>')
        said = f"{actor[2]}: {actor[3]}" if actor[2] else actor[3]
        parts.append(f'<text x="{x + 9}" y="{y + 4:.0f}">{escape(said)}</text>')
    else:
        parts.append(f'<text x="{places[_WAREHOUSE] + 9}" y="{y + 4:.0f}">{escape(one.move)}</text>')
    for line in one.happened:
        y += _LINE
        if asked := _ASK.search(line):
            parts.append(_arrow(warehouse, places[asked[1]], y, "", is_question=True))
        parts.append(f'<text class="said" x="{warehouse + 14}" y="{y + 4:.0f}">{escape(line)}</text>')
    return _Drawn(parts=tuple(parts), height=_LINE * (len(one.happened) + 1.5))


def _arrow(start: int, end: int, y: float, text: str, *, is_question: bool = False) -> str:
    tip = 7 if end > start else -7
    label = f'<text x="{start + 9}" y="{y - 4:.0f}">{escape(text)}</text>' if text else ""
    kind = "message question" if is_question else "message"
    return f'<path class="{kind}" d="M{start},{y:.0f} L{end},{y:.0f} m{-tip},-4 l{tip},4 l{-tip},4"/>{label}'
