"""`headwater explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.facade import open_project
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import outcome
from headwater.cli.progress import progress
from headwater.cli.render import draw_explain


def explain(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The view's name.")],
    *,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show how a view is maintained, and with which guarantee."""
    with (
        outcome(as_json=as_json, debug=debug) as output,
        progress(as_json=as_json, debug=debug) as listener,
        open_project(context, project, listener) as headwater,
    ):
        result = headwater.explain(view)
    output.show(result, draw_explain)
