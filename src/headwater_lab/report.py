"""A comparison on disk: one HTML page with its charts beside it, and every run that missed its claim as a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from headwater.cli.render.html import html_page, html_picture, html_table
from headwater_lab.chart_list import CHARTS, TIMELINE
from headwater_lab.compare import ComparedCell, Comparison, Predicted
from headwater_lab.measure import MeasuredAlgorithm
from headwater_lab.scenario import Scenario
from headwater_lab.scenario_text import format_scenario

PAGE = "index.html"

HEADINGS = (
    "algorithm",
    "sources",
    "Table 1 says",
    "claims",
    "reached",
    "in any order",
    "predicted",
    "queries",
    "rounds",
    "messages",
    "rows",
    "bytes",
    "largest query",
    "installs",
    "behind",
    "end",
)
"""What is claimed and measured, in the order of the table; costs are per transaction."""

LEGEND = (
    "Table 1: that of paper 000. Predicted: queries, and in how many rounds, where nothing interferes and every step "
    "finds rows. Queries, rounds, messages, rows and bytes are per transaction; a round goes out at once, counted "
    "where nothing interferes; a query and its answer are two messages. Largest query: the "
    "bytes it carries, in how many parts. Installs: all, and those before the last transaction was delivered. "
    "Behind: ticks delivered and not yet shown, mean over time. End: when everything was shown; one way takes "
    "about 1. In any order: – where there are too many orders to look at."
)

_CLAIM_HEADINGS = (
    "algorithm",
    "Table 1: architecture",
    "consistency",
    "messages",
    "comments",
    "needs",
    "queries per transaction",
    "message size",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A comparison and the files it was written to. `missed` are scenarios that `headwater lab replay` plays."""

    comparison: Comparison
    files: tuple[Path, ...]
    missed: tuple[Path, ...]


def write_report(
    comparison: Comparison, folder: Path, draw_charts: Callable[[Comparison, Path], tuple[Path, ...]]
) -> tuple[Path, ...]:
    """Write the page and its charts into a folder, which is made if it is not there, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    charts = draw_charts(comparison, folder)
    page = folder / PAGE
    page.write_text(page_of(comparison), encoding="utf-8")
    return page, *charts


def write_scenarios(missed: Iterable[Scenario], folder: Path) -> tuple[Path, ...]:
    """Write scenarios into a folder, each into a file of its name, and return the files."""
    files = []
    for scenario in missed:
        folder.mkdir(parents=True, exist_ok=True)
        files.append(folder / f"{scenario.name}.txt")
        files[-1].write_text(format_scenario(scenario), encoding="utf-8")
    return tuple(files)


def rows_of(cell: ComparedCell) -> tuple[tuple[str, ...], ...]:
    """Return the rows of a cell's table: what is claimed, beside what was measured."""
    predicted = {one.algorithm: one for one in cell.predicted}
    return tuple(_row(one, predicted[one.algorithm]) for one in cell.measured)


def _row(one: MeasuredAlgorithm, predicted: Predicted) -> tuple[str, ...]:
    claim = predicted.table_1
    return (
        one.algorithm,
        "one" if one.one_source else "several",
        "–" if claim is None else f"{claim.consistency}, {claim.messages}",
        one.claim.value,
        "gave up" if one.gave_up else one.guarantee.value,
        "–" if one.any_order is None else one.any_order.value,
        f"{predicted.queries:g} in {predicted.rounds:g}",
        f"{one.queries_per_update:.2f}",
        f"{one.rounds_per_update:.2f}",
        f"{one.messages_per_update:.2f}",
        f"{one.rows_per_update:.1f}",
        f"{one.bytes_per_update:.0f}",
        f"{one.largest_query_bytes} B in {one.largest_query_parts}",
        f"{one.install_count}, {one.installs_before_last_delivery} before",
        f"{one.mean_ticks_behind:.1f}",
        f"{one.ended_at:.0f}",
    )


def conditions_of(cell: ComparedCell) -> str:
    """Return conditions in words."""
    one = cell.conditions
    return (
        f"{one.shape} of {one.source_count} relations, {one.transaction_count} transactions, "
        f"one every {one.interval:g}, {one.deletes:.0%} deletes"
    )


def page_of(comparison: Comparison) -> str:
    """Return the HTML page."""
    middle = comparison.middle
    parts = [
        f"<h1>Maintenance algorithms, measured</h1><p><code>{escape(middle.view)}</code></p>",
        f"<p>The same recorded transactions and delays for every algorithm, from seed {comparison.plan.seed}.</p>",
        f"<h2>Table 1 of paper 000, measured: {conditions_of(middle)}</h2>",
        _measured_table(middle),
        f'<p class="legend">{escape(LEGEND)}</p>',
        "<h2>What is claimed</h2>",
        html_table(_CLAIM_HEADINGS, [_claims(one) for one in middle.predicted]),
    ]
    parts += [f"<p>{escape(name)} is left out: {escape(reason)}</p>" for name, reason in comparison.left_out]
    parts += [f"<h2>{escape(chart.title)}</h2>{html_picture(chart.file, chart.title)}" for chart in CHARTS]
    parts.append(
        f"<h2>Staleness over time: {conditions_of(middle)}</h2>{html_picture(TIMELINE, 'staleness over time')}"
    )
    for cell in comparison.cells:
        if cell is not middle:
            view = f"<p><code>{escape(cell.view)}</code></p>"
            parts += [f"<h2>{conditions_of(cell)}</h2>", view, _measured_table(cell)]
    return html_page("Headwater lab", parts)


def _measured_table(cell: ComparedCell) -> str:
    missed = [number for number, one in enumerate(cell.measured) if not one.kept]
    return html_table(HEADINGS, rows_of(cell), bad=missed)


def _claims(predicted: Predicted) -> tuple[str, ...]:
    claim = predicted.table_1
    paper = ("–", "–", "–", "–")
    if claim is not None:
        paper = (claim.architecture, claim.consistency, claim.messages, claim.comments)
    needs = "; ".join(predicted.requirements) or "nothing"
    return (predicted.algorithm, *paper, needs, predicted.formula, predicted.message_size)
