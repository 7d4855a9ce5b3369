"""`headwater lab papers`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.options import DebugOption, JsonOption
from headwater.cli.outcome import outcome
from headwater_lab.cli.render_papers import draw_papers
from headwater_lab.papers.advice import run_advice
from headwater_lab.papers.report import write_papers


def papers(
    *,
    to: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="Write the page and its charts into this folder.")
    ] = Path("headwater-papers"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Run the experiments of papers 004 and 002, and write them as one HTML page with charts.

    Which auxiliary tables every algorithm chooses for the papers' views, how near that is to the cheapest set and how
    long it takes; space and rows accessed of the four kinds of maintenance, as printed and corrected.
    """
    with outcome(as_json=as_json, debug=debug) as output:
        advice = run_advice(tell=_quiet if as_json else _tell)
        result = write_papers(advice, to, import_module("headwater_lab.papers.charts").draw_pictures)
    output.show(result, draw_papers)


def _tell(what: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"{what}\n")


def _quiet(what: str) -> None:
    del what
