"""The lab's results as pages: a scenario move by move, and algorithms side by side. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headwater.cli.render.page import Grid, Line, Page
from headwater.deltas.compare import Bag
from headwater_lab.library import Shipped
from headwater_lab.replay import Departure, PlayedMove, ReplayResult, ScenarioReplay, Standing
from headwater_lab.report import HEADINGS, LEGEND, Published, conditions_of, rows_of
from headwater_lab.rows_text import format_bag

_BAD, _GOOD, _WARN, _QUIET, _STRONG = "red", "green", "yellow", "dim", "bold"

_STYLES = {"ask": "cyan", "answer": "blue", "rebase": _WARN, "install": _GOOD, "view:": _STRONG, "tick": _QUIET}
"""How a line is shown that tells what happened, by its first word."""

_NUMBERS = frozenset({"predicted", "queries", "messages", "rows", "bytes", "largest query", "behind", "end"})


def draw_scenarios(shipped: Sequence[Shipped]) -> Page:
    """Show the scenarios that ship, and what is expected of each algorithm."""
    rows = tuple(
        (one.name, ", ".join(f"{name} {level.value}" for name, level in one.expected.items()), one.title)
        for one in shipped
    )
    return [Grid(headings=("scenario", "expected", "what it is about"), rows=rows)]


def draw_replay(result: ReplayResult) -> Page:
    """Show a whole replay."""
    page = list(draw_opening(result.replay))
    for number, move in enumerate(result.replay.moves, start=1):
        page += draw_move(number, move)
    return [*page, *draw_verdict(result.replay), *draw_standings(result.others)]


def draw_opening(replay: ScenarioReplay) -> Page:
    """Show what a replay begins with."""
    return [
        Line(text=replay.title, style=_STRONG),
        Line(text=f"view: {replay.sql}"),
        *(Line(text=f"{name}: {format_bag(rows)}") for name, rows in replay.relations.items()),
        Line(text=f"shown at first: {format_bag(replay.start)}"),
        Line(text=f"played by {replay.algorithm}, which claims {replay.claim.value}: {replay.remark}", style=_QUIET),
    ]


def draw_move(number: int, move: PlayedMove) -> Page:
    """Show a move and what followed from it."""
    if move.passed_over:
        return [Line(text=f"\n{number:>3}  {move.move}   (does not concern it)", style=_QUIET)]
    return [
        Line(text=f"\n{number:>3}  {move.move}", style=_STRONG),
        *(Line(text=f"       {line}", style=_STYLES.get(line.split()[0], "")) for line in move.happened),
    ]


def draw_verdict(replay: ScenarioReplay) -> Page:
    """Show what was right, what was shown, and the grade."""
    found = replay.verdict.guarantee
    kept = found >= replay.claim
    any_order = "too many orders to look at" if replay.any_order is None else replay.any_order.value
    page = [
        Line(text=""),
        Line(text=f"should be   {_states(replay.right)}"),
        Line(text=f"was shown   {_states(replay.shown)}"),
        Line(text=f"{replay.algorithm}: {replay.verdict}", style=_GOOD if kept else _BAD),
        Line(text=f"in any order of the sources: {any_order}", style=_QUIET),
    ]
    if not kept:
        page.append(Line(text=f"it claims {replay.claim.value}", style=_BAD))
    if replay.expected is not None and replay.expected is not found:
        page.append(Line(text=f"the scenario expects {replay.expected.value}", style=_BAD))
    for departure in replay.departures:
        page += _draw_departure(departure)
    return page


def _draw_departure(departure: Departure) -> list[Line]:
    return [
        Line(text=f"what follows from line {departure.line} differs from the scenario:", style=_BAD),
        *(Line(text=f"  told      {line}") for line in departure.told if line not in departure.happened),
        *(Line(text=f"  happened  {line}") for line in departure.happened if line not in departure.told),
    ]


def _states(states: Sequence[Bag]) -> str:
    return " → ".join(format_bag(state) for state in states)


def draw_standings(others: Sequence[Standing]) -> Page:
    """Show how the others did."""
    if not others:
        return []
    rows = tuple(
        (
            one.algorithm,
            one.claim.value,
            one.found.value,
            "–" if one.any_order is None else one.any_order.value,
            "as expected" if one.found is one.expected else f"expected {one.expected.value if one.expected else '–'}",
        )
        for one in others
    )
    return [
        Line(text="\nthe same moves, played by others"),
        Grid(headings=("algorithm", "claims", "reached", "in any order", ""), rows=rows),
    ]


def draw_comparison(result: Published) -> Page:
    """Show the measured table beside what is claimed, and where the rest was written."""
    comparison = result.comparison
    page: list[Line | Grid] = []
    for cell in comparison.tables:
        page += [
            Line(text=f"view: {cell.view}"),
            Line(text=f"{conditions_of(cell)}, seed {comparison.plan.seed}"),
            Grid(headings=HEADINGS, rows=rows_of(cell), right=_NUMBERS),
        ]
    page.append(Line(text=LEGEND, style=_QUIET))
    page += [Line(text=f"{name} is left out: {reason}", style=_QUIET) for name, reason in comparison.left_out]
    page += [Line(text=f"wrote {file}", style=_GOOD) for file in result.files]
    missed: dict[str, list[Path]] = {}
    for file in result.missed:
        missed.setdefault(file.stem.split("_")[0], []).append(file)
    for name, files in missed.items():
        runs = "one run" if len(files) == 1 else f"{len(files)} runs"
        page.append(Line(text=f"{name} missed its guarantee in {runs}: headwater lab replay {files[0]}", style=_BAD))
    return page
