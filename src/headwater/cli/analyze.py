"""`headwater analyze`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.opened import opened
from headwater.cli.options import HERE, DebugOption, JsonOption, ProjectOption
from headwater.cli.render.analysis import draw_analysis
from headwater.cli.render.analysis_page import write_analysis


def analyze(
    context: typer.Context,
    view: Annotated[str | None, typer.Argument(help="The view's name; all views if none is named.")] = None,
    *,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Write a page with charts into this folder.")
    ] = None,
    project: ProjectOption = HERE,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare the kinds of maintenance for a view: space, rows and time, predicted and measured.

    The kinds of paper 002: recomputed or incremental, from copies or by asking, and deciding batch by batch. Its
    corrected formulas predict; recent batches are replayed beside the warehouse, of which nothing is changed.
    """
    with opened(context, project, as_json=as_json, debug=debug) as (output, headwater):
        result = headwater.analyze(view)
        if to is not None:
            result = replace(result, files=write_analysis(result, to))
    output.show(result, draw_analysis)
