"""The page of a view: its rows at a tick, where each comes from, why another is not there, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from urllib.parse import urlencode

import pyarrow as pa
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from headwater.console.app import Console
from headwater.console.graph import newest_shown
from headwater.console.pages import numeric_columns
from headwater.console.state import ConsoleState
from headwater.deltas.order import By, can_order
from headwater.engine.state.sought import OF
from headwater.errors import HeadwaterError
from headwater.lineage.traced import Traced
from headwater.model.position import Tick
from headwater.model.relation import COUNT, SegmentName
from headwater.views.text.column_origins import ColumnOrigin, OriginKind, column_origins
from headwater.views.text.upstream_views import ViewText, views_below
from headwater.warehouse.folders import segment_of_table

_PAGE = 50
_BATCHES = 20
_TRACED_ROWS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRows:
    """A page of a view's rows. `conditions` select each of them alone, for a trace."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    is_numeric: tuple[bool, ...]
    rows: tuple[tuple[object, ...], ...]
    conditions: tuple[str, ...]
    tick: Tick
    number: int
    has_more: bool
    order: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRows:
    """ShownRows of a relation or of a segment below a traced row, and what they derive from."""

    name: str
    title: str
    is_segment: bool
    origin: str
    columns: tuple[str, ...]
    is_numeric: tuple[bool, ...]
    rows: tuple[tuple[int, tuple[object, ...]], ...]
    left_out: int
    below: tuple[TracedRows, ...]


def routes(console: Console) -> APIRouter:
    """Return the routes of this module."""
    router = APIRouter()

    @router.get("/view/{name}")
    def view(request: Request, name: str) -> HTMLResponse:
        state = console.states.read()
        tick = state.tick_of(request.query_params.get("at"))
        found = state.view(name)
        problem: HeadwaterError | None = None
        rows: ShownRows | None = None
        if found.frontier is not None:
            try:
                rows = _rows(console, request, state, name, tick)
            except HeadwaterError as error:
                problem = error
        return console.page(
            request,
            "view.html",
            view=found,
            rows=rows,
            problem=problem,
            origins=_origins(state, name),
            text=_text(state, name),
            kept=_kept_tables(state, name),
            batches=_batches(state, name, tick),
            shown=newest_shown(state, found),
            copied=_copied(request, state, name, rows, tick),
            row=request.query_params.get("row", ""),
            missing=request.query_params.get("missing", ""),
            filter=request.query_params.get("where", ""),
            with_query=lambda **changed: _changed(request, changed),
        )

    @router.get("/view/{name}/trace")
    def trace(request: Request, name: str, where: str) -> HTMLResponse:
        state = console.states.read()
        tick = state.tick_of(request.query_params.get("at"))
        with console.on_spark():
            found = console.project.trace(name, where=where, at=tick)
        trees = [_traced(one) for one in found.tree]
        totals = [(one.relation, sum(one.rows[COUNT].to_pylist()), one.origin.value) for one in found.relations]
        command = _command("trace", name, found.tick, where=where)
        return console.part(
            request,
            "trace_part.html",
            found=found,
            trees=trees,
            totals=totals,
            count=found.rows.num_rows,
            command=command,
        )

    @router.get("/view/{name}/why-not")
    def why_not(request: Request, name: str, where: str) -> HTMLResponse:
        state = console.states.read()
        tick = state.tick_of(request.query_params.get("at"))
        with console.on_spark():
            found = console.project.why_not(name, where, at=tick)
        command = _command("why-not", name, found.tick, where=where)
        return console.part(request, "why_not_part.html", found=found, command=command)

    @router.get("/view/{name}/explain")
    def explain(request: Request, name: str) -> HTMLResponse:
        with console.on_spark():
            found = console.project.explain(name)
        return console.part(request, "explain_part.html", found=found, command=f"headwater explain {name} --full")

    return router


def _rows(console: Console, request: Request, state: ConsoleState, name: str, tick: Tick | None) -> ShownRows:
    """Return the rows that a page's URL asks for."""
    where, order = request.query_params.get("where", ""), request.query_params.get("order", "")
    written = request.query_params.get("page", "1")
    number = max(1, int(written)) if written.isdecimal() else 1
    schema = state.warehouse.kept_table(name).schema
    clause = _order(schema, order)
    sql = f"SELECT * FROM {_quoted(name)}{_where(where)}{clause}"
    found = console.project.query(f"{sql} LIMIT {_PAGE + 1} OFFSET {(number - 1) * _PAGE}", at=tick)
    shown = found.table.slice(0, _PAGE)
    values = list(zip(*(column.to_pylist() for column in shown.columns), strict=True))
    columns = tuple(shown.column_names)
    return ShownRows(
        columns=columns,
        types=tuple(str(field.type) for field in found.table.schema),
        is_numeric=numeric_columns(found.table.schema),
        rows=tuple(values),
        conditions=tuple(condition(found.table.schema, row) for row in values),
        tick=found.tick,
        number=number,
        has_more=found.table.num_rows > _PAGE,
        order=order,
        where=where,
    )


def _where(where: str) -> str:
    """Return the condition as a clause. Whatever is in it, a comment too, what follows it stays."""
    return f" WHERE ({where}\n)" if where.strip() else ""


def _order(schema: pa.Schema, order: str) -> str:
    """Return ORDER BY: by what was asked for first, then by all columns, so that pages do not overlap."""
    asked = order.removeprefix("-")
    names = [asked] if asked in schema.names else []
    names += [one for one in schema.names if one != asked and can_order(schema, (By(one),))]
    parts = [f"{_quoted(one)} DESC" if one == asked and order.startswith("-") else _quoted(one) for one in names]
    return f" ORDER BY {', '.join(parts)}" if parts else ""


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def condition(schema: pa.Schema, row: Sequence[object]) -> str:
    """Return a condition that is true for a row and for no other.

    >>> print(condition(pa.schema([("no", pa.int64()), ("city", pa.string())]), (7, None)))
    `no` = 7 AND `city` IS NULL
    """
    parts = [
        f"{_quoted(field.name)} IS NULL" if value is None else f"{_quoted(field.name)} = {_literal(field.type, value)}"
        for field, value in zip(schema, row, strict=True)
    ]
    return " AND ".join(parts)


def _literal(kind: pa.DataType, value: object) -> str:  # noqa: PLR0911 - one line per kind of value
    match value:
        case bool():
            return str(value).lower()
        case float() if math.isfinite(value):
            return f"{value!r}D" if pa.types.is_float64(kind) else f"CAST('{value!r}' AS FLOAT)"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case int():
            return str(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case bytes():
            return f"X'{value.hex()}'"
        case list():
            parts = ("NULL" if one is None else _literal(kind.value_type, one) for one in value)
            return f"ARRAY({', '.join(parts)})"
        case _:
            escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"


def _text(state: ConsoleState, name: str) -> str:
    """Return a view's SQL: as its file has it, or as it was when the view was filled if there is no file any more."""
    files = {file.name: file.sql for file in state.project.views}
    return files[name].strip() if name in files else state.catalog.views[name].sql


def _origins(state: ConsoleState, name: str) -> Mapping[str, ColumnOrigin]:
    """Return from which columns of its relations each column of a view comes."""
    entry = state.catalog.views.get(name)
    if entry is None:
        return {}
    texts = {one.name: ViewText(name=one.name, sql=one.sql, path=one.path_text) for one in state.project.views}
    texts.setdefault(name, ViewText(name=name, sql=entry.sql))
    relations = {str(one): state.warehouse.log.relation_schema(one).names for one in state.warehouse.log.relations()}
    outputs = state.warehouse.kept_table(name).schema.names
    try:
        return column_origins(texts[name].sql, views_below(name, texts), outputs, relations)
    except HeadwaterError:
        return {one: ColumnOrigin(kind=OriginKind.ROWS) for one in outputs}


def _kept_tables(state: ConsoleState, name: str) -> list[tuple[str, int, list[str]]]:
    """Return the auxiliary tables of a view: each one's segment, its rows, and the other views that use it."""
    if name not in state.catalog.views:
        return []
    entry, tables = state.catalog.views[name], state.warehouse.kept_segments(name)
    readers = {
        table: [one.name for one in state.catalog.views.values() if table in one.segments and one.name != name]
        for table in entry.segments
    }
    found = []
    for table in entry.segments:
        kept = tables[segment_of_table(table)]
        found.append((segment_of_table(table), kept.row_count(kept.committed_upto()), readers[table]))
    return found


def _batches(state: ConsoleState, name: str, tick: Tick | None) -> list[dict[str, object]]:
    """Return what the last batches of a view did and what they took, newest first."""
    found: list[dict[str, object]] = []
    for commit in reversed(state.commits):
        statistics = commit.record.statistics
        if statistics is None or name not in statistics.rows or (tick is not None and statistics.lo >= tick):
            continue
        delta = statistics.rows[name]
        found.append(
            {
                "ticks": f"{statistics.lo + 1}"
                if statistics.hi == statistics.lo + 1
                else f"{statistics.lo + 1}–{statistics.hi}",
                "committed_at": commit.committed_at,
                "changed": delta.changed_rows,
                "read": delta.read_rows,
                "added": delta.rows_added,
                "removed": delta.rows_removed,
                "asked": sum(one.probe_count for one in delta.asked.values()),
                "seconds": delta.seconds,
                "whole": sum(statistics.seconds.values()),
            }
        )
        if len(found) == _BATCHES:
            break
    return found


def _copied(
    request: Request, state: ConsoleState, name: str, rows: ShownRows | None, tick: Tick | None
) -> list[tuple[str, str]]:
    """Return what the copy buttons copy: what is on the page, as SQL, as a command, and as Python."""
    del request
    at = state.view(name).frontier if tick is None else tick
    if at is None:
        return []
    plain = rows is None or "--" not in rows.where
    where = "" if rows is None else f" WHERE {rows.where}" if plain and rows.where.strip() else _where(rows.where)
    order = _order(state.warehouse.kept_table(name).schema, rows.order) if rows and rows.order else ""
    sql = f"SELECT * FROM {name}{where}{order}"
    said = sql.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`").replace("$", "\\$")
    python = f"import headwater\n\nrows = headwater.open({str(state.project.folder)!r}).query({sql!r}, at={at}).table"
    return [("SQL", sql), ("CLI", f'headwater query "{said}" --at {at}'), ("Python", python)]


def _command(verb: str, name: str, tick: Tick, *, where: str) -> str:
    said = where.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`").replace("$", "\\$")
    return f'headwater {verb} {name} --where "{said}" --at {tick}'


def _changed(request: Request, changed: Mapping[str, str]) -> str:
    values = {**dict(request.query_params), **changed}
    return "?" + urlencode({name: value for name, value in values.items() if value})


def _traced(one: Traced) -> TracedRows:
    rows = one.rows.slice(0, _TRACED_ROWS)
    values = list(zip(*(rows[name].to_pylist() for name in one.columns), strict=True)) if one.columns else []
    return TracedRows(
        name=str(one.name),
        title=one.title,
        is_segment=isinstance(one.name, SegmentName),
        origin=one.origin.value,
        columns=one.columns,
        is_numeric=numeric_columns(one.rows.drop_columns([COUNT, OF]).schema),
        rows=tuple(zip(rows[COUNT].to_pylist(), values, strict=True)),
        left_out=one.rows.num_rows - rows.num_rows,
        below=tuple(_traced(part) for part in one.below),
    )
