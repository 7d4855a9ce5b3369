"""The project as a graph: sources with their relations, the auxiliary tables that views share, views over views.

Each node knows how it is doing at the tick that is shown, and whose fault it is if it is late: its own, or that of
something that it reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from headwater.console.state import ConsoleState
from headwater.errors import HeadwaterError
from headwater.model.position import Tick
from headwater.observe.status import SourceState, SourceStatus, ViewStatus
from headwater.views.text.upstream_views import ViewText, named_directly
from headwater.warehouse.folders import segment_of_table

LATE_SECONDS = 10.0
"""From when on a source or a view is shown as late."""


class Health(Enum):
    """How a node is doing, worst last. Its color in the picture."""

    GOOD = "good"
    IDLE = "idle"
    """Nothing moves it: no maintainer runs."""
    INHERITED = "inherited"
    """It is late because something that it reads is."""
    LATE = "late"
    BROKEN = "broken"
    ABSENT = "absent"
    """It is not there at the tick that is shown."""


class NodeKind(Enum):
    """What a node is."""

    SOURCE = "source"
    RELATION = "relation"
    SEGMENT = "segment"
    VIEW = "view"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of the graph. `lines` are what it says below its name."""

    key: str
    kind: NodeKind
    name: str
    health: Health
    lines: tuple[str, ...] = ()
    link: str = ""
    title: str = ""
    """What a pointer that rests on it shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEdge:
    """Rows flow from one node to another. `flow` is how many changed rows did lately."""

    start: str
    end: str
    flow: int = 0
    health: Health = Health.GOOD


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Nodes by their keys, and edges. `depths` are the columns that nodes stand in."""

    nodes: Mapping[str, Node]
    edges: tuple[FlowEdge, ...]
    depths: Mapping[str, int] = field(default_factory=dict)


def build_graph(state: ConsoleState, tick: Tick | None) -> Graph:
    """Return the graph of a project, as of a tick or as it is now."""
    late = {one.name: source_health(state, one) for one in state.status.sources}
    texts = {file.name: ViewText(name=file.name, sql=file.sql, path=file.path_text) for file in state.project.views}
    for entry in state.catalog.views.values():
        texts.setdefault(entry.name, ViewText(name=entry.name, sql=entry.sql))
    reads = {name: _reads(text, texts) for name, text in texts.items()}
    relations = sorted({one for names, _ in reads.values() for one in names})
    flows = _flows(state, relations)
    nodes: dict[str, Node] = {}
    edges: list[FlowEdge] = []
    for source in state.status.sources:
        nodes[f"source:{source.name}"] = _source_node(state, source, late[source.name], tick)
    for relation in relations:
        source_name = relation.split(".", maxsplit=1)[0]
        health = late.get(source_name, Health.BROKEN)
        nodes[f"relation:{relation}"] = Node(
            key=f"relation:{relation}",
            kind=NodeKind.RELATION,
            name=relation.removeprefix(f"{source_name}."),
            health=health,
            link=f"/source/{source_name}",
            title=f"{relation}: {flows[relation]:,} changed rows lately",
        )
    healths = {one.name: view_health(state, one, reads, late, tick) for one in state.status.views}
    shared = Counter(table for entry in state.catalog.views.values() for table in entry.segments)
    for view in state.status.views:
        nodes[f"view:{view.name}"] = _view_node(state, view, healths[view.name], tick)
        known = state.catalog.views.get(view.name)
        for table in known.segments if known else ():
            key = f"segment:{table}"
            nodes.setdefault(key, _segment_node(table, shared[table], healths[view.name]))
            edges.append(FlowEdge(start=key, end=f"view:{view.name}", health=healths[view.name]))
        names, upstream = reads.get(view.name, ((), ()))
        edges += [
            FlowEdge(start=f"relation:{one}", end=f"view:{view.name}", flow=flows[one], health=late_of(late, one))
            for one in names
        ]
        edges += [
            FlowEdge(start=f"view:{one}", end=f"view:{view.name}", flow=flows[one], health=healths[one])
            for one in upstream
            if one in healths
        ]
    return Graph(nodes=nodes, edges=tuple(edges), depths=_depths(nodes, edges))


def around(graph: Graph, key: str) -> Graph:
    """Return the part of a graph that a node derives from, and that derives from it."""
    kept = {key, *_reached(graph, key, up=True), *_reached(graph, key, up=False)}
    kept |= {f"source:{one.split(':', 1)[1].split('.', maxsplit=1)[0]}" for one in kept if one.startswith("relation:")}
    nodes = {name: node for name, node in graph.nodes.items() if name in kept}
    edges = tuple(edge for edge in graph.edges if edge.start in kept and edge.end in kept)
    return Graph(nodes=nodes, edges=edges, depths={name: graph.depths[name] for name in nodes})


def _reached(graph: Graph, key: str, *, up: bool) -> set[str]:
    found: set[str] = set()
    todo = [key]
    while todo:
        here = todo.pop()
        next_ones = {edge.start if up else edge.end for edge in graph.edges if (edge.end if up else edge.start) == here}
        todo += next_ones - found
        found |= next_ones
    return found


def late_of(late: Mapping[str, Health], relation: str) -> Health:
    """Return how the source of a relation is doing."""
    return late.get(relation.split(".", maxsplit=1)[0], Health.BROKEN)


def source_health(state: ConsoleState, source: SourceStatus) -> Health:
    """Return how a source is doing."""
    match source.state:
        case SourceState.LOST:
            return Health.BROKEN
        case SourceState.UNAVAILABLE:
            return Health.LATE
        case _ if not is_maintained(state):
            return Health.IDLE
        case _ if (source.lag_seconds or 0) > LATE_SECONDS:
            return Health.LATE
        case _:
            return Health.GOOD


def is_maintained(state: ConsoleState) -> bool:
    """Tell whether a maintainer runs."""
    return state.status.maintainer is not None and state.status.maintainer.alive


def view_health(
    state: ConsoleState,
    view: ViewStatus,
    reads: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]],
    late: Mapping[str, Health],
    tick: Tick | None,
) -> Health:
    """Return how a view is doing. At a tick, that is whether it is there."""
    if view.birth is None or view.frontier is None:
        return Health.ABSENT
    if tick is not None:
        return Health.GOOD if view.birth <= tick <= view.frontier else Health.ABSENT
    if view.stopped is not None:
        return Health.BROKEN
    if not is_maintained(state):
        return Health.IDLE
    if own_lag(state, view) > LATE_SECONDS:
        return Health.LATE
    below = [late_of(late, one) for one in _relations_below(view.name, reads)]
    return Health.INHERITED if Health.LATE in below or Health.BROKEN in below else Health.GOOD


def own_lag(state: ConsoleState, view: ViewStatus) -> float:
    """Return for how many seconds a view has lacked a tick that is accepted. Views with a timetable are never late."""
    if view.frontier is None or view.refresh != "continuous":
        return 0.0
    waiting = [one for tick, one in state.accepted.items() if tick > view.frontier]
    if not waiting:
        return 0.0
    return max(0.0, (state.taken_at - min(one.committed_at for one in waiting)).total_seconds())


def newest_shown(state: ConsoleState, view: ViewStatus) -> datetime | None:
    """Return when the newest transaction was committed that a view shows. None: longer ago than is looked at."""
    ticks = [tick for tick in state.accepted if view.frontier is not None and tick <= view.frontier]
    return state.accepted[max(ticks)].committed_at if ticks else None


def blame(state: ConsoleState, graph: Graph) -> str:  # noqa: PLR0911 - one sentence for each cause, worst first
    """Return what is worst now, and whose fault it is, in one sentence."""
    for view in state.status.views:
        if view.stopped is not None:
            return f"{view.name} stopped at tick {view.stopped.tick}: {view.stopped.summary}."
    for source in state.status.sources:
        if source.state in (SourceState.LOST, SourceState.UNAVAILABLE):
            reading = [
                one.name for one in graph.nodes.values() if one.kind is NodeKind.VIEW and _derives(graph, one, source)
            ]
            said = "is lost" if source.state is SourceState.LOST else "does not answer"
            views = _listed(reading) or "No view"
            return f"{views} cannot go on because source {source.name} {said}: {source.last_error}."
    if not is_maintained(state):
        return "No maintainer runs: everything is as the last one left it. Start `headwater run`."
    for source in state.status.sources:
        if (source.lag_seconds or 0) > LATE_SECONDS:
            return f"The change log is {source.lag_seconds:,.0f} s behind source {source.name} ({source.lag})."
    late = {one.name: own_lag(state, one) for one in state.status.views}
    worst = max(late, key=lambda name: late[name], default="")
    if worst and late[worst] > LATE_SECONDS:
        return f"{worst} is {late[worst]:,.0f} s behind the change log: its batches take longer than its sources write."
    waiting = [one for one in state.status.views if one.frontier is None]
    if waiting:
        return f"{_listed([one.name for one in waiting])} is being filled for the first time."
    return "Everything is up to date: every view shows every transaction that was accepted."


def _derives(graph: Graph, node: Node, source: SourceStatus) -> bool:
    """Tell whether a view reads a source, itself or through other views."""
    starts = {edge.start for edge in graph.edges if edge.end == node.key}
    if any(one.startswith(f"relation:{source.name}.") for one in starts):
        return True
    return any(_derives(graph, graph.nodes[one], source) for one in starts if one.startswith("view:"))


def _listed(names: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more views"


def _reads(text: ViewText, texts: Mapping[str, ViewText]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the relations and the views that a view names itself. A text that cannot be read names none."""
    try:
        named = named_directly(text.sql)
    except HeadwaterError:
        return (), ()
    relations = tuple(dict.fromkeys(one for one in named if "." in one))
    return relations, tuple(dict.fromkeys(one.lower() for one in named if one.lower() in texts and "." not in one))


def _relations_below(name: str, reads: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]) -> set[str]:
    relations, upstream = reads.get(name, ((), ()))
    return {*relations, *(found for one in upstream if one != name for found in _relations_below(one, reads))}


def _flows(state: ConsoleState, relations: Iterable[str]) -> Counter[str]:
    """Return how many rows of each relation and view changed lately: in the ticks that the log's newest part holds."""
    flows: Counter[str] = Counter()
    log, last = state.warehouse.log, state.warehouse.log.last_tick
    known = {str(name): name for name in log.relations()}
    for relation in relations:
        if relation in known:
            flows[relation] = log.row_count(known[relation], max(state.first, Tick(last - 500)), last)
    for commit in state.commits:
        statistics = commit.record.statistics
        for view, delta in statistics.rows.items() if statistics else ():
            flows[view] += delta.rows_added + delta.rows_removed
    return flows


def _source_node(state: ConsoleState, source: SourceStatus, health: Health, tick: Tick | None) -> Node:
    if tick is not None:
        own = [one for at, one in state.accepted.items() if at <= tick and source.name in one.sources]
        said = f"{own[-1].committed_at:%H:%M:%S}" if own else "no transaction yet"
        lines = (f"last transaction {said}",)
    else:
        behind = source.lag or (f"{source.lag_seconds:.1f} s" if source.lag_seconds else "")
        lines = (source.state.value + (f", {behind} behind" if behind else ""),)
    position = ", ".join(map(str, source.positions)) or "nothing followed yet"
    return Node(
        key=f"source:{source.name}",
        kind=NodeKind.SOURCE,
        name=source.name,
        health=health,
        lines=lines,
        link=f"/source/{source.name}",
        title=f"{source.name}: {source.state.value}, followed to {position}",
    )


def _segment_node(table: str, readers: int, health: Health) -> Node:
    name = segment_of_table(table)
    said = "kept for one view" if readers == 1 else f"kept for {readers} views"
    return Node(
        key=f"segment:{table}", kind=NodeKind.SEGMENT, name=name, health=health, lines=(said,), title=f"{table}: {said}"
    )


def _view_node(state: ConsoleState, view: ViewStatus, health: Health, tick: Tick | None) -> Node:
    if view.frontier is None:
        said: tuple[str, ...] = ("not filled yet",)
    elif tick is not None:
        said = ("",) if health is not Health.ABSENT else (f"ticks {view.birth} to {view.frontier}",)
    else:
        shown = newest_shown(state, view)
        age = "" if shown is None else f", {age_text((state.taken_at - shown).total_seconds())} old"
        said = (f"tick {view.frontier}{age}",)
    return Node(
        key=f"view:{view.name}",
        kind=NodeKind.VIEW,
        name=view.name,
        health=health,
        lines=said,
        link=f"/view/{view.name}",
        title=f"{view.name}: {view.guarantee.value}, {health.value}"
        + ("" if view.stopped is None else f", {view.stopped.summary}"),
    )


def age_text(seconds: float) -> str:
    """Return a length of time in one unit.

    >>> age_text(0.42), age_text(75), age_text(7300), age_text(200000)
    ('0.4 s', '1 min', '2 h', '2 d')
    """
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.1f} s"


def _depths(nodes: Mapping[str, Node], edges: Sequence[FlowEdge]) -> dict[str, int]:
    """Return the column of each node: sources, auxiliary tables if there are any, each view after all that it reads."""
    first = 2 if any(node.kind is NodeKind.SEGMENT for node in nodes.values()) else 1
    upstream: dict[str, list[str]] = {}
    for edge in edges:
        if nodes[edge.start].kind is NodeKind.VIEW:
            upstream.setdefault(edge.end, []).append(edge.start)
    found: dict[str, int] = {}

    def depth(key: str, path: frozenset[str]) -> int:
        if key not in found:
            match nodes[key].kind:
                case NodeKind.SOURCE | NodeKind.RELATION:
                    found[key] = 0
                case NodeKind.SEGMENT:
                    found[key] = 1
                case NodeKind.VIEW:
                    below = [depth(one, path | {key}) for one in upstream.get(key, ()) if one not in path]
                    found[key] = 1 + max(below, default=first - 1)
        return found[key]

    for key in nodes:
        depth(key, frozenset())
    return found
