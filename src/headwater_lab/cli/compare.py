"""`headwater lab compare`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.options import DebugOption, JsonOption
from headwater.cli.outcome import BROKE, outcome
from headwater.errors import HeadwaterError
from headwater_lab.cli.render import draw_comparison
from headwater_lab.compare import ComparePlan, Comparison, compare_all
from headwater_lab.entrants import literal, published
from headwater_lab.report import Published, write_report, write_scenarios
from headwater_lab.shapes import SHAPES
from headwater_lab.timed import Conditions

_MISSED_FOLDER = Path("headwater-lab")
_MOST_SOURCES = 8


def compare(
    *,
    seed: Annotated[int, typer.Option("--seed", help="Everything that is random comes from it.")] = 1,
    sources: Annotated[
        str, typer.Option("--sources", metavar="N,N,...", help="How many sources, each tried.")
    ] = "2,3,4",
    interval: Annotated[
        str, typer.Option("--interval", metavar="T,T,...", help="Time between transactions; one way takes about 1.")
    ] = "3,1,0.3",
    deletes: Annotated[
        str, typer.Option("--deletes", metavar="SHARE,...", help="Which share of the transactions deletes.")
    ] = "0.1,0.4,0.7",
    shapes: Annotated[
        str, typer.Option("--shapes", metavar="NAME,...", help="What the view is like, each tried.")
    ] = ",".join(SHAPES),
    transactions: Annotated[int, typer.Option("--transactions", min=1, help="How many, in each run.")] = 30,
    with_literal: Annotated[
        bool, typer.Option("--literal", help="Also run the literal readings of the papers, which fail.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write an HTML page with charts into this folder.")
    ] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Run every algorithm over the same recorded transactions, and measure what each guarantees and costs.

    One thing varies at a time, the others stay at the middle value given; each shape has a table of the middle values.
    A run that misses its guarantee is written as a scenario for `headwater lab replay`; the exit code is 2 if it was
    not one of the literal readings, of which nothing better is expected.
    """
    with outcome(as_json=as_json, debug=debug) as output:
        plan = ComparePlan(
            seed=seed,
            source_counts=tuple(int(value) for value in _numbers("--sources", sources, 2, _MOST_SOURCES)),
            intervals=_numbers("--interval", interval, 0.01, 1000),
            deletes=_numbers("--deletes", deletes, 0, 1),
            transaction_count=transactions,
            shapes=_shapes(shapes),
        )
        entrants = (*published(), *(literal() if with_literal else ()))
        comparison, missed = compare_all(plan, entrants, _quiet if as_json else _tell)
        result = Published(
            comparison=comparison,
            files=() if out is None else _write_report(comparison, out),
            missed=write_scenarios(missed, (out or _MISSED_FOLDER) / "missed"),
        )
    output.show(result, draw_comparison)
    ours = {described.name for described in published()}
    if any(scenario.teller in ours for scenario in missed):
        raise typer.Exit(BROKE)


def _numbers(option: str, text: str, least: float, most: float) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(least <= value <= most for value in values):
        raise HeadwaterError(
            f'"{text}" is not what {option} takes',
            code="HW-718",
            hint=f"numbers from {least:g} to {most:g}, with commas",
        )
    return values


def _shapes(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if unknown := [name for name in names if name not in SHAPES]:
        raise HeadwaterError(
            f'there is no shape "{unknown[0]}"', code="HW-722", hint=f"shapes are {', '.join(SHAPES)}, with commas"
        )
    return names


def _write_report(comparison: Comparison, folder: Path) -> tuple[Path, ...]:
    """Write page and charts. What draws them is imported only now, because it takes a while."""
    return write_report(comparison, folder, import_module("headwater_lab.charts").draw_charts)


def _tell(conditions: Conditions) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(
            f"{conditions.shape} of {conditions.source_count}, interval {conditions.interval:g}, "
            f"{conditions.deletes:.0%} deletes\n"
        )


def _quiet(conditions: Conditions) -> None:
    del conditions
