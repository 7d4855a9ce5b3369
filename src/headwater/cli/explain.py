"""`headwater explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.render.verbs import draw_explain, draw_explain_in_full


def explain(
    context: typer.Context,
    view: Annotated[str, typer.Argument(help="The view's name.")],
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Show every step too: what it does, how it is maintained, what is kept.")
    ] = False,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show how a view is maintained: the verdict, what is kept, what is read, what it costs, what is recomputed."""
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        result = headwater.explain(view)
    output.show(result, draw_explain_in_full if full else draw_explain)
