"""`headwater teardown`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.opened import open_project
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.outcome import REFUSED, may_ask, outcome
from headwater.cli.render.progress import progress
from headwater.cli.render.verbs import draw_teardown
from headwater.errors import HeadwaterError
from headwater.project.file import load


def teardown(
    context: typer.Context,
    *,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="SOURCE", help="Only at this source; may be repeated.", show_default="all"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Drop what was made at the sources, after asking.

    At PostgreSQL these are replication slots and publications. The warehouse folder stays; the next `run` reads these
    sources and their views again, while the other views go on.
    """
    with outcome(as_json=as_json, debug=debug) as output:
        said = load(project)
        chosen = tuple(said.source(name).name for name in source or ())
        sources = ", ".join(chosen or (one.name for one in said.sources))
        if not yes and not may_ask(as_json=as_json):
            raise HeadwaterError(
                f"teardown drops what the views need at {sources}, and there is no terminal to ask at",
                code="HW-130",
                hint="add --yes",
            )
        if not yes and not typer.confirm(f"drop what was made at {sources}?"):
            typer.echo("nothing was dropped")
            raise typer.Exit(REFUSED)
        with (
            progress(as_json=as_json, debug=debug) as listener,
            open_project(context, project, listener) as headwater,
        ):
            result = headwater.teardown(sources=chosen)
        output.show(result, draw_teardown)
    if result.failed:
        raise typer.Exit(REFUSED)
