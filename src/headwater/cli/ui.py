"""`headwater ui`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import open_project
from headwater.cli.options import HERE, DebugOption, ProjectOption
from headwater.cli.outcome import outcome
from headwater.cli.render.progress import progress
from headwater.console.serve import LOCAL, PORT, require_packages, serve


def ui(
    context: typer.Context,
    *,
    host: Annotated[
        str, typer.Option("--host", help="Where to listen. Beyond this machine, the address carries a token.")
    ] = LOCAL,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = PORT,
    project: ProjectOption = HERE,
    debug: DebugOption = False,
) -> None:
    """Show the project in a browser: its graph, rows at any tick, where they come from, transactions, and plans.

    It changes nothing, needs no running maintainer, and starts Spark only for what asks for it. Ctrl-C ends it.
    """
    with outcome(as_json=False, debug=debug):
        require_packages()
        with progress(as_json=True, debug=debug) as listener, open_project(context, project, listener) as headwater:
            serve(headwater, host, port, lambda address: typer.echo(f"the console is at {address}"))
