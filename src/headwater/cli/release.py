"""`headwater release`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
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
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        result = headwater.release(global_id)
    output.show(result, draw_release)
