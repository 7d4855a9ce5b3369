"""`headwater history`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from headwater.cli.facade import open_project
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import outcome
from headwater.cli.progress import progress
from headwater.cli.render.verbs import draw_history


def history(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The view's name.")],
    *,
    last: Annotated[
        int | None, typer.Option("--last", min=1, help="Show only this many of the newest commits.")
    ] = None,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List a view's commits, what sources were asked for them, and where their time went."""
    with (
        outcome(as_json=as_json, debug=debug) as output,
        progress(as_json=as_json, debug=debug) as listener,
        open_project(context, project, listener) as headwater,
    ):
        whole = headwater.history(view)
    newest = whole.commits if last is None else whole.commits[-last:]
    output.show(replace(whole, commits=newest), draw_history)
