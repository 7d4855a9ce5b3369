"""What is new, as server-sent events: a line for each commit, and one for each change of how sources are doing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from headwater.console.app import Console
from headwater.errors import HeadwaterError

_LOOK_SECONDS = 0.5


def routes(console: Console) -> APIRouter:
    """Return the routes of this module."""
    router = APIRouter()

    @router.get("/events")
    async def events() -> StreamingResponse:
        return StreamingResponse(_told(console), media_type="text/event-stream")

    return router


async def _told(console: Console) -> AsyncIterator[str]:
    before = ""
    while not console.is_closing():
        try:
            now = await run_in_threadpool(_standing, console)
        except HeadwaterError as error:
            now = json.dumps({"error": error.summary})
        if now != before:
            yield f"event: standing\ndata: {now}\n\n"
            before = now
        else:
            yield ": still there\n\n"
        await asyncio.sleep(_LOOK_SECONDS)


def _standing(console: Console) -> str:
    state = console.states.read()
    sources = {one.name: [one.state.value, bool(one.last_error)] for one in state.status.sources}
    stopped = [one.name for one in state.status.views if one.stopped is not None]
    head = state.warehouse.head()
    maintainer = state.status.maintainer
    alive = maintainer is not None and maintainer.alive
    return json.dumps(
        {"commit": head.sequence, "tick": state.last, "sources": sources, "stopped": stopped, "alive": alive}
    )
