"""`headwater status`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from headwater.cli.opened import open_project, opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import outcome
from headwater.cli.render.verbs import draw_status
from headwater.observe.events import ignore_event
from headwater.observe.status import StatusResult

_WATCH_SECONDS = 2.0


def status(
    context: typer.Context,
    *,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Show it again every two seconds, until Ctrl-C; as JSON, one line each time."),
    ] = False,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show how the sources and the views are doing."""
    if not watch:
        with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
            result = headwater.status()
        output.show(result, draw_status)
        return
    with outcome(as_json=as_json, debug=debug) as output, open_project(context, project, ignore_event) as headwater:
        output.show_each(_again_and_again(headwater.status), draw_status)


def _again_and_again(status: Callable[[], StatusResult]) -> Iterator[StatusResult]:
    while True:
        yield status()
        time.sleep(_WATCH_SECONDS)  # how often a person sees the picture change
