"""`headwater release`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.facade import open_project
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import outcome
from headwater.cli.progress import progress
from headwater.cli.render.verbs import draw_release


def release(
    context: typer.Context,
    global_id: Annotated[str, typer.Argument(metavar="ID", help="The id, as `headwater status` shows it.")],
    *,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Let the parts of a global transaction go without the missing ones.

    Each of them becomes a tick of its own, and so does one that comes late. It cannot be taken back.
    """
    with (
        outcome(as_json=as_json, debug=debug) as output,
        progress(as_json=as_json, debug=debug) as listener,
        open_project(context, project, listener) as headwater,
    ):
        result = headwater.release(global_id)
    output.show(result, draw_release)
