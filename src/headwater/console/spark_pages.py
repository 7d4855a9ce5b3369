"""The pages that need Spark or ask sources: plan, advice and certificate. Each asks after it is shown."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from headwater.console.app import Console, broken, require_form
from headwater.errors import HeadwaterError
from headwater.project.plan_result import Action
from headwater.warehouse.certificates import read_certificates

_MOST_FORM_BYTES = 10_000


@dataclass(slots=True)
class RunningCheck:
    """The one check that runs, or how the last one of this console failed."""

    started_at: datetime | None = None
    view: str = ""
    error: HeadwaterError | None = None


def routes(console: Console) -> APIRouter:
    """Return the routes of this module."""
    router = APIRouter()
    running = RunningCheck()
    starting = threading.Lock()

    @router.get("/plan")
    def plan(request: Request) -> HTMLResponse:
        return console.page(
            request,
            "waiting.html",
            title="Plan",
            part="/plan/part",
            said="asking the sources and Spark what `headwater run` would do …",
        )

    @router.get("/plan/part")
    def plan_part(request: Request) -> HTMLResponse:
        with console.on_spark():
            found = console.project.plan()
        kept = [one for one in found.steps if one.action is Action.KEEP]
        left = [one for one in found.steps if one.action is Action.LEAVE]
        return console.part(request, "plan_part.html", found=found, kept=kept, left=left)

    @router.get("/advice")
    def advice(request: Request) -> HTMLResponse:
        return console.page(
            request,
            "waiting.html",
            title="Advice",
            part="/advice/part",
            said="measuring relations and pricing what could be kept …",
        )

    @router.get("/advice/part")
    def advice_part(request: Request) -> HTMLResponse:
        with console.on_spark():
            found = console.project.advise()
        return console.part(request, "advice_part.html", found=found)

    @router.get("/certificate")
    def certificate(request: Request) -> HTMLResponse:
        all_checks = read_certificates(console.project.project.warehouse)
        asked = request.query_params.get("check", "")
        shown = next((one for one in all_checks if one.name == asked), all_checks[-1] if all_checks else None)
        return console.page(request, "certificate.html", checks=all_checks, shown=shown, running=running)

    @router.post("/certificate")
    async def check(request: Request) -> Response:
        body = await request.body()
        form = parse_qs(body[:_MOST_FORM_BYTES].decode(errors="replace"))
        require_form(console, form.get("form_token", [""])[0])
        view = form.get("view", [""])[0]
        if view:
            console.project.project.view(view)
        with starting:
            if running.started_at is None:
                running.started_at, running.view, running.error = datetime.now(UTC), view, None
                threading.Thread(target=_check, args=(console, running), name="check", daemon=True).start()
        return RedirectResponse("/certificate", status_code=303)

    return router


def _check(console: Console, running: RunningCheck) -> None:
    try:
        with console.on_spark():
            console.project.check(running.view or None)
    except HeadwaterError as error:
        running.error = error
    except Exception as error:  # noqa: BLE001 - shown on the page: there is nobody else to tell
        running.error = broken(error)
    finally:
        running.started_at = None
