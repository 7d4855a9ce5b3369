"""The papers' experiments as a page: the algorithms on every view, the four kinds, and where the rest was written."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.advisor.kinds.parameters import Case
from headwater.cli.render.page import Grid, Line, Page
from headwater_lab.papers.advice import ENTRANTS, Tried
from headwater_lab.papers.report import PapersReport


def draw_papers(report: PapersReport) -> Page:
    """Show the optimality of every algorithm, rows and bytes of every kind, and the files."""
    advice = report.advice
    headings = ("algorithm", "mean", "least")
    spreads = tuple((one.algorithm, f"{one.mean:.4f}", f"{one.least:.3f}") for one in advice.random)
    return [
        _optimality("optimality for the views of paper 004", (advice.high_profit, *advice.tpc_d, *advice.failing)),
        _optimality("optimality for its synthetic views", advice.synthetic),
        Grid(
            title=f"optimality for HighProfit under {advice.random_count} random statistics",
            headings=headings,
            rows=spreads,
            right=frozenset(headings[1:]),
        ),
        _kinds(report),
        *(Line(text=f"wrote {file}", style="green") for file in report.files),
    ]


def _optimality(title: str, tried: Sequence[Tried]) -> Grid:
    views = tuple(one.view for one in tried)
    rows = tuple(
        (name, *(f"{one.of(name).optimality:.4f}" if one.has(name) else "not run" for one in tried))
        for name in ENTRANTS
    )
    sets = ("sets", *(f"{one.set_count:.3g}" for one in tried))
    return Grid(title=title, headings=("algorithm", *views), rows=(sets, *rows), right=frozenset(views))


def _kinds(report: PapersReport) -> Grid:
    headings = ("kind", "bytes printed", "bytes corrected", "rows printed", "rows corrected")
    rows = tuple(
        (
            one.kind.name,
            *(
                f"{number:.3g}"
                for number in (one.printed_space, one.corrected_space, one.printed_rows, one.corrected_rows)
            ),
        )
        for one in report.kinds
        if one.case is Case.AVERAGE
    )
    return Grid(
        title="the kinds of paper 002 at its defaults, average case",
        headings=headings,
        rows=rows,
        right=frozenset(headings[1:]),
    )
