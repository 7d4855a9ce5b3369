"""The application: who may ask, what every page knows, and the routes, page by page.

Invariants
1. Everything that a page shows is in its URL, the tick included; a request without a tick shows the newest state.
2. GET changes nothing. POST starts a check and nothing else, and only with the token of its form.
3. What needs Spark is never part of a page's first answer: the page asks for it afterwards.
"""

from __future__ import annotations

import contextlib
import hmac
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwater.api.metrics_endpoint import metrics_text
from headwater.api.session import Headwater
from headwater.console.drawing import draw_strip
from headwater.console.graph import age_text
from headwater.console.state import ConsoleState, RowCounts, StateReader, has_warehouse
from headwater.deltas.compare import format_row
from headwater.errors import HeadwaterError, NotReadable
from headwater.model.position import Tick
from headwater.storage.storage_errors import storage_error

_HERE = Path(__file__).parent
_CODE = re.compile("`([^`]+)`")
_MOST_ON_SPARK = 3
_COOKIE = "headwater_console"
_LOCAL = ("127.0.0.1", "localhost", "[::1]", "::1")
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may ask: those who know the token, or without one, programs of this machine that use a local name."""

    token: str = ""
    hosts: tuple[str, ...] = _LOCAL


@dataclass(slots=True)
class Console:
    """What all pages share."""

    project: Headwater
    states: StateReader
    templates: Environment
    is_closing: Callable[[], bool]
    row_counts: RowCounts = field(default_factory=RowCounts)
    _running: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_MOST_ON_SPARK))
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    @contextlib.contextmanager
    def on_spark(self) -> Iterator[None]:
        """Run a block that uses Spark, beside few others: a trace does not wait for a check that takes minutes."""
        with self._running:
            yield

    def page(self, request: Request, template: str, at: Tick | None = None, **values: object) -> HTMLResponse:
        """Return a whole page, as of the tick in its URL, or of one that its path names."""
        state = self.states.read()
        tick = state.tick_of(request.query_params.get("at")) if at is None else at
        context = self.context(request, state, tick) | values
        return HTMLResponse(self.templates.get_template(template).render(context))

    def part(self, request: Request, template: str, **values: object) -> HTMLResponse:
        """Return a part of a page."""
        kept = _kept(request)
        found = self.templates.get_template(template).render({"query": kept, "request": request, **values})
        return HTMLResponse(found)

    def context(self, request: Request, state: ConsoleState, tick: Tick | None) -> dict[str, Any]:
        """Return what every page knows."""
        scale = "time" if request.query_params.get("scale") == "time" else "tick"
        last = state.last
        strip = draw_strip(
            {at: one for at, one in state.accepted.items() if at <= last},
            state.first,
            last,
            tick,
            [one.name for one in state.project.sources],
            scale,
        )
        return {
            "request": request,
            "project": state.project,
            "state": state,
            "status": state.status,
            "tick": tick,
            "strip": strip,
            "scale": scale,
            "query": _kept(request),
            "scale_queries": {one: _with(request, scale=one) for one in ("tick", "time")},
            "newest": _newest(request),
            "path": request.url.path,
            "form_token": self.form_token,
            "lane_names": [one.name for one in state.project.sources],
        }


def create_app(
    project: Headwater,
    access: Access = Access(),
    is_closing: Callable[[], bool] = lambda: False,
) -> FastAPI:
    """Return the console of a project as an application. Once `is_closing`, it ends what it would go on sending."""
    from headwater.console import live, pages, scenario_page, spark_pages, view_page  # noqa: PLC0415 - they name `Console`

    app = FastAPI(title="Headwater", docs_url=None, redoc_url=None, openapi_url=None)
    templates = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "cell": cell_text,
        "number": number_text,
        "moment": moment_text,
        "age": age_text,
        "said": said_text,
    }
    console = Console(project, StateReader(project), templates, is_closing)
    app.mount("/static", StaticFiles(directory=_HERE / "static"), name="static")
    for module in (pages, view_page, spark_pages, scenario_page, live):
        app.include_router(module.routes(console))

    @app.get("/metrics")
    def _metrics() -> Response:
        return Response(metrics_text(project), media_type="text/plain; version=0.0.4")

    @app.exception_handler(HeadwaterError)
    def _refused(request: Request, error: HeadwaterError) -> HTMLResponse:
        return _error_page(console, request, error)

    @app.exception_handler(Exception)
    def _broken(request: Request, error: Exception) -> HTMLResponse:
        return _error_page(console, request, broken(error), status=500)

    app.add_middleware(_Guard, access=access)
    return app


class _Guard:
    """Answers those who may not ask, and puts the headers onto every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = _refusal(Request(scope), self._access)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await (self._app if refusal is None else refusal)(scope, receive, send_with_headers)


def broken(error: Exception) -> HeadwaterError:
    """Return what to say of an error that is not ours."""
    return storage_error(error) or HeadwaterError(
        "the console failed at this",
        code="HW-765",
        detail=f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}",
        hint="nothing was changed; report it, with what `headwater ui --debug` prints",
    )


def require_form(console: Console, token: str) -> None:
    """Refuse a POST that does not come from a form of this console."""
    if not hmac.compare_digest(token.encode(), console.form_token.encode()):
        raise NotReadable(
            "this form is from another run of the console",
            code="HW-761",
            detail="its token is not the one that this console gave out",
            hint="open the page again, and press the button there",
        )


def _refusal(request: Request, access: Access) -> Response | None:
    """Return what is answered to a request that may not ask. A page of another site may not, by any name of ours."""
    if not _is_own(request):
        return Response("another site may link to the console, and may not ask it", status_code=403)
    host = request.headers.get("host", "")
    name = host.rsplit(":", maxsplit=1)[0] if not host.endswith("]") else host
    if not access.token:
        return None if name in access.hosts else Response("unknown host", status_code=421)
    given = request.query_params.get("token")
    if given is not None and hmac.compare_digest(given.encode(), access.token.encode()):
        answer = RedirectResponse(str(request.url.remove_query_params("token")), status_code=303)
        answer.set_cookie(_COOKIE, access.token, httponly=True, samesite="strict")
        return answer
    if hmac.compare_digest(request.cookies.get(_COOKIE, "").encode(), access.token.encode()):
        return None
    return Response("open the address with the token that `headwater ui` printed", status_code=403)


def _is_own(request: Request) -> bool:
    """Tell whether a page of ours or a person asks, by what browsers say. A page of another site could make us work."""
    if request.headers.get("sec-fetch-site") != "cross-site":
        return True
    mode, shown_in = (request.headers.get(f"sec-fetch-{name}") for name in ("mode", "dest"))
    return (request.method, mode, shown_in) == ("GET", "navigate", "document")


def _error_page(console: Console, request: Request, error: HeadwaterError, status: int = 400) -> HTMLResponse:
    if request.headers.get("x-part"):
        found = console.templates.get_template("error_part.html").render(error=error)
        return HTMLResponse(found, status_code=status)
    values = {"error": error, "project": console.project.project, "query": "", "newest": "/"}
    base: Mapping[str, object] = {"state": None, "strip": None, "tick": None, "path": request.url.path, "status": None}
    if has_warehouse(console.project.project):
        with contextlib.suppress(HeadwaterError):
            base = console.context(request, console.states.read(), None)
    return HTMLResponse(console.templates.get_template("error.html").render({**base, **values}), status_code=status)


def _kept(request: Request) -> str:
    """Return what every link takes along: the tick, and the slider's scale."""
    kept = {name: request.query_params[name] for name in ("at", "scale") if request.query_params.get(name)}
    return f"?{urlencode(kept)}" if kept else ""


def _newest(request: Request) -> str:
    """Return where this page shows what is newest. A transaction is always of its tick."""
    path = request.url.path
    return "/" if path.startswith(("/transaction/", "/difference")) else path + _with(request, at="")


def _with(request: Request, **changed: str) -> str:
    """Return this page's query with some of it changed. An empty value takes it out."""
    values = {**dict(request.query_params), **changed}
    return "?" + urlencode({name: value for name, value in values.items() if value})


def cell_text(value: object) -> str:
    """Return a value as it is shown in a table: as the command line shows it."""
    return value if isinstance(value, str) else format_row((value,))[1:-1]


def said_text(value: object) -> Markup:
    """Return a sentence with what stands between backticks as code.

    >>> said_text("start `run` <now>")
    Markup('start <code>run</code> &lt;now&gt;')
    """
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(str(value)))))  # noqa: S704 - escaped before


def number_text(value: float | None) -> str:
    """Return a number with commas, or a dash for none."""
    return "–" if value is None else f"{value:,}"


def moment_text(value: datetime | None) -> str:
    """Return a time to the second."""
    return "–" if value is None else value.astimezone(UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
