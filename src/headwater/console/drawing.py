"""Pictures as SVG text: the graph of a project, and the strip of transactions that the time slider is.

    sources and their relations      auxiliary tables      views      views over views

Nodes stand in columns by what they read, each near the middle of what it reads, so that few edges cross. An edge is as
wide as what flows. Everything that a pointer shows is also in the text of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from headwater.console.graph import FlowEdge, Graph, Node, NodeKind
from headwater.console.state import Accepted
from headwater.model.position import Tick

_WIDTH, _HEIGHT, _GAP = 240, 46, 14
_RELATION_HEIGHT = 24
_COLUMN = 350
_MARGIN = 16
_LETTERS = 25
_CROWDED = 25
"""Nodes of a column from which on they stand closer, and edges are thinner."""
_SMALL_LETTERS = 34
_STRIP_WIDTH = 1000.0
_LANE_HEIGHT = 12
_MOST_MARKS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def draw_graph(graph: Graph, query: str) -> str:
    """Return the graph as SVG. `query` goes onto every link, so that the tick stays."""
    boxes = _places(graph)
    width = max((box.x + box.width for box in boxes.values()), default=0.0) + _MARGIN
    height = max((box.y + box.height for box in boxes.values()), default=0.0) + _MARGIN
    most = max((edge.flow for edge in graph.edges), default=0)
    edges = [_edge(edge, boxes, most, graph) for edge in graph.edges if edge.start in boxes and edge.end in boxes]
    nodes = [_node(graph.nodes[key], box, query) for key, box in boxes.items()]
    return (
        f'<svg class="graph" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="img" aria-label="sources, auxiliary tables and views">{"".join(edges)}{"".join(nodes)}</svg>'
    )


def _places(graph: Graph) -> dict[str, _Box]:
    """Return where every node is: column by column, in the order of the middle of what it reads."""
    boxes: dict[str, _Box] = {}
    y = float(_MARGIN)
    for node in (one for one in graph.nodes.values() if one.kind is NodeKind.SOURCE):
        relations = [
            one
            for one in graph.nodes.values()
            if one.kind is NodeKind.RELATION and one.key.startswith(f"relation:{node.name}.")
        ]
        boxes[node.key] = _Box(x=_MARGIN, y=y, width=_WIDTH, height=_HEIGHT + _RELATION_HEIGHT * len(relations) + 4)
        for number, one in enumerate(relations):
            top = y + _HEIGHT + number * _RELATION_HEIGHT
            boxes[one.key] = _Box(x=_MARGIN + 8, y=top, width=_WIDTH - 16, height=_RELATION_HEIGHT - 4)
        y += boxes[node.key].height + _GAP
    above: dict[str, list[str]] = {}
    for edge in graph.edges:
        above.setdefault(edge.end, []).append(edge.start)
        if graph.nodes[edge.start].kind is NodeKind.SEGMENT:  # a table stands where what reads it wants it
            above.setdefault(edge.start, []).extend(one.start for one in graph.edges if one.end == edge.end)
    columns = sorted({depth for key, depth in graph.depths.items() if depth > 0})
    for depth in columns:
        keys = [key for key, one in graph.depths.items() if one == depth]
        wanted = {key: _wanted(key, above, boxes) for key in keys}
        y = float(_MARGIN)
        for key in sorted(keys, key=lambda key: (wanted[key], key)):
            top = max(y, wanted[key] - _HEIGHT / 2) if len(keys) <= _CROWDED else y
            boxes[key] = _Box(x=_MARGIN + depth * _COLUMN, y=top, width=_WIDTH, height=_HEIGHT)
            y = top + _HEIGHT + (_GAP if len(keys) <= _CROWDED else _GAP / 2)
    return boxes


def _wanted(key: str, above: Mapping[str, Sequence[str]], boxes: Mapping[str, _Box]) -> float:
    middles = [boxes[one].middle for one in above.get(key, ()) if one in boxes]
    return sum(middles) / len(middles) if middles else float(_MARGIN)


def _node(node: Node, box: _Box, query: str) -> str:
    if node.kind is NodeKind.RELATION:
        inside = (
            f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width}" height="{box.height}" rx="3"/>'
            f'<text x="{box.x + 8:.1f}" y="{box.y + 14:.1f}">{escape(_cut(node.name, _LETTERS))}</text>'
        )
    else:
        lines = "".join(
            f'<text class="said" x="{box.x + 14:.1f}" y="{box.y + 35 + 14 * number:.1f}">'
            f"{escape(_cut(line, _SMALL_LETTERS))}</text>"
            for number, line in enumerate(node.lines[:1])
        )
        counts = (
            f'<text class="count" x="{box.x + box.width - 10:.1f}" y="{box.y + 35:.1f}" '
            f'data-rows="{escape(node.name)}"></text>'
            if node.kind is NodeKind.VIEW
            else ""
        )
        inside = (
            f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width}" height="{box.height:.1f}" rx="6"/>'
            f'<rect class="state" x="{box.x:.1f}" y="{box.y:.1f}" width="5" height="{box.height:.1f}" rx="2"/>'
            f'<text class="name" x="{box.x + 14:.1f}" y="{box.y + 19:.1f}">{escape(_cut(node.name, _LETTERS))}</text>'
            f"{lines}{counts}"
        )
    drawn = (
        f'<g class="node {node.kind.value} {node.health.value}" data-key="{escape(node.key)}">'
        f"<title>{escape(node.title)}</title>{inside}</g>"
    )
    return f'<a href="{escape(node.link)}{escape(query)}">{drawn}</a>' if node.link else drawn


def _edge(edge: FlowEdge, boxes: Mapping[str, _Box], most: int, graph: Graph) -> str:
    start, end = boxes[edge.start], boxes[edge.end]
    x, y, far_x, far_y = start.x + start.width, start.middle, end.x, end.middle
    if graph.nodes[edge.start].kind is NodeKind.RELATION:
        x += 8
    bend = max(40.0, (far_x - x) / 2)
    widest = 5 if len(graph.edges) <= 2 * _CROWDED else 1.5
    width = 1.2 + widest * math.log1p(edge.flow) / math.log1p(most) if most and edge.flow else 1.2
    told = f"{edge.flow:,} changed rows lately" if edge.flow else "nothing flowed lately"
    return (
        f'<path class="edge {edge.health.value}" data-start="{escape(edge.start)}" data-end="{escape(edge.end)}" '
        f'd="M{x:.1f},{y:.1f} C{x + bend:.1f},{y:.1f} {far_x - bend:.1f},{far_y:.1f} {far_x:.1f},{far_y:.1f}" '
        f'stroke-width="{width:.1f}"><title>{told}</title></path>'
    )


def _cut(text: str, letters: int) -> str:
    """Return a text that fits. The middle is left out: names often differ at their ends.

    >>> _cut("customers_who_bought_twice_within_a_week", 20)
    'customers_…in_a_week'
    """
    if len(text) <= letters:
        return text
    half = (letters - 1) // 2
    return f"{text[: letters - 1 - half]}…{text[-half:]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The time slider's strip: the picture, and where ticks are on it (per mille of its width)."""

    svg: str
    places: tuple[tuple[Tick, float], ...]
    low: Tick
    high: Tick
    scale: str
    handle: float
    first_text: str
    last_text: str


def draw_strip(
    accepted: Mapping[Tick, Accepted], first: Tick, last: Tick, tick: Tick | None, sources: Sequence[str], scale: str
) -> Strip:
    """Return the strip of the ticks (first, last], each source in a lane of its own, by tick or by time."""
    times = _times(accepted, first, last)
    low_time, high_time = (min(times.values()), max(times.values())) if times else (0.0, 0.0)

    def place(at: Tick) -> float:
        if scale == "time" and times and high_time > low_time:
            found = times.get(at, low_time if at <= min(times) else high_time)
            return (found - low_time) / (high_time - low_time) * (_STRIP_WIDTH - 8) + 4
        return ((at - first) / max(1, last - first)) * (_STRIP_WIDTH - 8) + 4

    lanes = {name: number for number, name in enumerate(sources)}
    height = max(1, len(sources)) * _LANE_HEIGHT + 4
    marks: dict[tuple[int, int], tuple[Tick, int, str]] = {}
    for at, one in accepted.items():
        for source in one.sources:
            spot = (lanes.get(source, 0), int(place(at) / _STRIP_WIDTH * _MOST_MARKS))
            count = marks[spot][1] + 1 if spot in marks else 1
            marks[spot] = (at, count, source)
    drawn = "".join(
        f'<rect class="mark lane{lane % 6}" x="{place(at) - 1:.1f}" y="{lane * _LANE_HEIGHT + 3}" width="2" '
        f'height="{_LANE_HEIGHT - 3}"><title>{_mark_title(at, count, source, accepted[at].committed_at)}</title></rect>'
        for (lane, _), (at, count, source) in marks.items()
    )
    handle = place(last if tick is None else Tick(min(max(tick, first), last)))
    every = sorted({first, last, *accepted, *([tick] if tick is not None and first <= tick <= last else [])})
    return Strip(
        svg=f'<svg viewBox="0 0 {_STRIP_WIDTH:.0f} {height}" preserveAspectRatio="none" aria-hidden="true">'
        f"{drawn}</svg>",
        places=tuple((at, round(place(at), 1)) for at in every),
        low=first,
        high=last,
        scale=scale,
        handle=handle / _STRIP_WIDTH * 100,
        first_text=_end_text(accepted, first, scale),
        last_text=_end_text(accepted, last, scale),
    )


def _times(accepted: Mapping[Tick, Accepted], first: Tick, last: Tick) -> dict[Tick, float]:
    """Return when each tick was, by the sources' clocks. A tick is never before the one before it."""
    found: dict[Tick, float] = {}
    newest = -math.inf
    for at in sorted(accepted):
        if first <= at <= last:
            newest = max(newest, accepted[at].committed_at.timestamp())
            found[at] = newest
    return found


def _mark_title(at: Tick, count: int, source: str, time: datetime) -> str:
    many = "" if count == 1 else f" and {count - 1} before it"
    return escape(f"tick {at}{many}: {source}, {time:%Y-%m-%d %H:%M:%S}")


def _end_text(accepted: Mapping[Tick, Accepted], at: Tick, scale: str) -> str:
    if scale == "time" and accepted:
        known: Iterable[Tick] = accepted
        nearest = min(known, key=lambda one: abs(one - at))
        return f"{accepted[nearest].committed_at:%H:%M:%S}"
    return f"{at}"
