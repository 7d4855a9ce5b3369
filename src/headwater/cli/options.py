"""The options that every verb has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

ProjectOption: TypeAlias = Annotated[
    Path, typer.Option("--project", "-p", help="The project's folder, or its headwater.toml.", show_default="here")
]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output, and nothing else there.")
]
DebugOption: TypeAlias = Annotated[
    bool,
    typer.Option("--debug", help="Log everything to standard error, and show the traceback when something breaks."),
]


def _refuse_row(said: str | None) -> None:
    if said is not None:
        raise typer.BadParameter("rows are named by --where, as in `trace`: --where \"city = 'Oslo' AND sold = 7\"")


OldRowOption: TypeAlias = Annotated[str | None, typer.Option("--row", hidden=True, is_eager=True, callback=_refuse_row)]
"""What --where was called once."""

HERE = Path()
