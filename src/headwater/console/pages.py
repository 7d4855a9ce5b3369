"""The pages that need the warehouse alone: overview, transactions, the difference of two ticks, and sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import pyarrow as pa
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from headwater.console.app import Console
from headwater.console.drawing import draw_graph
from headwater.console.graph import around, blame, build_graph
from headwater.console.state import ConsoleState
from headwater.deltas.on_arrow import summed_up
from headwater.deltas.order import By, can_order
from headwater.errors import NotReadable
from headwater.lineage.result import ChangedRows
from headwater.model.moment import AtPosition
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK

_SHOWN_ROWS = 200
_COUNTING_SECONDS = 0.5
"""How long one request counts rows; the page asks again for the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChange:
    """Signed rows as a table of a page: columns, and rows with their counts."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[object, ...]], ...]
    left_out: int
    together: str = ""
    is_numeric: tuple[bool, ...] = ()


def routes(console: Console) -> APIRouter:  # noqa: C901 - one function per address
    """Return the routes of this module."""
    router = APIRouter()

    @router.get("/")
    def overview(request: Request) -> HTMLResponse:
        state = console.states.read()
        tick = state.tick_of(request.query_params.get("at"))
        focus = request.query_params.get("focus", "")
        graph = build_graph(state, tick)
        shown = around(graph, f"view:{focus}") if focus else graph
        picture = draw_graph(shown, console.context(request, state, tick)["query"])
        sentence = blame(state, graph) if tick is None else _as_of(state, tick)
        return console.page(request, "overview.html", graph=graph, picture=picture, sentence=sentence, focus=focus)

    @router.get("/row-counts")
    def counts(at: str = "") -> JSONResponse:
        state = console.states.read()
        found, is_partial = console.row_counts.count(state, state.tick_of(at), _COUNTING_SECONDS)
        return JSONResponse({"counts": found, "partial": is_partial})

    @router.get("/find")
    def find(name: str = "") -> RedirectResponse:
        state, asked = console.states.read(), name.strip()
        if any(one.name == asked for one in state.status.views):
            return RedirectResponse(f"/view/{asked}", status_code=303)
        if any(one.name == asked for one in state.status.sources):
            return RedirectResponse(f"/source/{asked}", status_code=303)
        return find_transaction(asked)

    @router.get("/transaction")
    def find_transaction(moment: str = "", scale: str = "") -> RedirectResponse:
        state = console.states.read()
        tick = state.tick_of(moment) or state.last
        kept = urlencode({"at": str(tick), **({"scale": scale} if scale else {})})
        return RedirectResponse(f"/transaction/{tick}?{kept}", status_code=303)

    @router.get("/transaction/{tick}")
    def transaction(request: Request, tick: int) -> HTMLResponse:
        state = console.states.read()
        accepted = state.accepted.get(Tick(tick))
        if accepted is None:
            raise _no_transaction(state, tick)
        position = accepted.transactions[-1].position
        asked = AtPosition(source=position.source, log=position.log, text=position.text)
        found = console.project.impact(asked)
        return console.page(
            request,
            "transaction.html",
            at=Tick(tick),
            accepted=accepted,
            number=tick,
            found=found,
            relations=[shown_change(one) for one in found.relations],
            views=[shown_change(one) for one in found.views],
            before=tick - 1 if Tick(tick - 1) in state.accepted else None,
            after=tick + 1 if Tick(tick + 1) in state.accepted else None,
        )

    @router.get("/difference")
    def difference(request: Request, low: int, high: int) -> HTMLResponse:
        state = console.states.read()
        low, high = min(low, high), max(low, high)
        between = [one for tick, one in sorted(state.accepted.items()) if low < tick <= high]
        changes = [_between(console, state, name, Tick(low), Tick(high)) for name in state.catalog.views]
        return console.page(
            request, "difference.html", low=low, high=high, between=between, changes=[one for one in changes if one]
        )

    @router.get("/source/{name}")
    def source(request: Request, name: str) -> HTMLResponse:
        state = console.states.read()
        found = state.source(name)
        tick = state.tick_of(request.query_params.get("at"))
        own = [
            one for at, one in sorted(state.accepted.items()) if name in one.sources and (tick is None or at <= tick)
        ]
        log = state.warehouse.log
        relations = [
            (str(one), [(field.name, str(field.type)) for field in log.relation_schema(one)])
            for one in log.relations()
            if one.source == name
        ]
        asked = [one for one in state.status.messages if one.source == name]
        since = state.status.messages_since
        return console.page(
            request,
            "source.html",
            source=found,
            newest=own[::-1][:20],
            relations=relations,
            asked=asked,
            asked_seconds=None if since is None else max(1.0, (state.taken_at - since).total_seconds()),
        )

    @router.get("/source/{name}/rights")
    def rights(request: Request, name: str) -> HTMLResponse:
        found = console.project.owner_sql(name)
        return console.part(request, "rights_part.html", found=found)

    return router


def shown_change(changed: ChangedRows) -> ShownChange:
    """Return signed rows as a page shows them: similar ones together, no more than a person reads."""
    columns = tuple(one for one in changed.rows.column_names if one != COUNT)
    sortable = [name for name in columns if can_order(changed.rows.schema, (By(name),))]
    ordered = changed.rows.sort_by([*((name, "ascending") for name in sortable), (COUNT, "ascending")])
    shown = ordered.slice(0, _SHOWN_ROWS)
    values = list(zip(*(shown[name].to_pylist() for name in columns), strict=True)) if columns else []
    together = (
        f"shown together with ticks {changed.after + 1} to {changed.upto}" if changed.upto - changed.after > 1 else ""
    )
    return ShownChange(
        name=changed.name,
        columns=columns,
        rows=tuple(zip(shown[COUNT].to_pylist(), values, strict=True)),
        left_out=changed.rows.num_rows - shown.num_rows,
        together=together,
        is_numeric=numeric_columns(changed.rows.select(columns).schema),
    )


def numeric_columns(schema: pa.Schema) -> tuple[bool, ...]:
    """Return for each column whether its values are numbers: those stand on the right."""
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return tuple(any(test(field.type) for test in numbers) for field in schema)


def _between(console: Console, state: ConsoleState, name: str, low: Tick, high: Tick) -> ShownChange | None:
    """Return what changed in a view in the ticks (low, high] that it can be read at. None: it cannot."""
    birth, frontier = state.warehouse.view(name).birth, state.warehouse.frontier(name)
    low, high = max(low, birth), min(high, frontier)
    if low >= high:
        return None
    found = summed_up(console.project.changes(name, low, high).drop_columns([TICK])).sort_by(COUNT)
    change = shown_change(ChangedRows(name=name, after=low, upto=high, rows=found))
    return ShownChange(
        name=name, columns=change.columns, rows=change.rows, left_out=change.left_out, is_numeric=change.is_numeric
    )


def _as_of(state: ConsoleState, tick: Tick) -> str:
    readable = [one for one in state.status.views if one.birth is not None and one.birth <= tick]
    there = [one.name for one in readable if one.frontier is not None and tick <= one.frontier]
    one = state.accepted.get(tick)
    when = f", committed {one.committed_at:%Y-%m-%d %H:%M:%S} by {', '.join(one.sources)}" if one else ""
    return f"As of tick {tick}{when}: {len(there)} of {len(state.status.views)} views can be read."


def _no_transaction(state: ConsoleState, tick: int) -> NotReadable:
    ticks: Sequence[Tick] = sorted(state.accepted)
    return NotReadable(
        f"no transaction is known at tick {tick}",
        code="HW-762",
        detail=f"the newest part of the change log holds ticks {ticks[0]} to {ticks[-1]}" if ticks else "there is none",
        hint="choose one on the time slider; `headwater impact SOURCE:POSITION` finds older ones",
    )
