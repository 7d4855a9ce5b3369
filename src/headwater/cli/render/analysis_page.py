"""The kinds of maintenance of views, compared, as one HTML page with charts beside it."""

from __future__ import annotations

from html import escape
from pathlib import Path

from headwater.advisor.analysis import AnalyzeResult, ViewAnalysis
from headwater.cli.render.analysis import HEADINGS, cost_cells, describe
from headwater.cli.render.bar_chart import Bars, draw_bars
from headwater.cli.render.html import html_page, html_picture, html_table

PAGE = "index.html"
_OPENING = """\
<h1>What it would cost to keep each view otherwise</h1>
<p>The kinds of maintenance of paper 002: SMR recomputes from copies in the warehouse, NSMR by reading the sources
whole, SMIM follows changes with copies, NSMIM by asking the sources for what the changes join; <i>runtime</i> asks them
only for what keys, references and the view itself do not tell. * is the kind in use. Bytes and rows are predicted by
the paper's formulas, corrected, from the relations as they are; the paper counts the rows that nested loops look at,
<i>rows by index</i> those that are found. Everything else was measured by replaying the view's last batches.</p>
"""


def write_analysis(result: AnalyzeResult, folder: Path) -> tuple[Path, ...]:
    """Write the page and its charts into a folder, which is made if it is not there, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [_OPENING]
    charts = []
    for view in result.views:
        parts += [f"<h2>{escape(view.view)}</h2>", f"<p>{escape(describe(view))}</p>"]
        parts.append(html_table(HEADINGS, [cost_cells(cost) for cost in view.kinds]))
        if any(one.measured for one in view.kinds):
            title = f"{view.view}: {view.tick_count} ticks in {view.batch_count} batches"
            charts.append(folder / f"{view.view}.svg")
            charts[-1].write_text(draw_bars(title, _panels(view)), encoding="utf-8")
            parts.append(html_picture(charts[-1].name, title))
    page = folder / PAGE
    page.write_text(html_page("Headwater: kinds of maintenance", parts), encoding="utf-8")
    return (page, *charts)


def _panels(view: ViewAnalysis) -> tuple[Bars, ...]:
    measured = [(one, one.measured) for one in view.kinds if one.measured is not None]
    groups = tuple(cost.kind for cost, _ in measured)
    predicted = tuple(0.0 if cost.read_rows is None else cost.read_rows.total for cost, _ in measured)
    rows = tuple(float(found.rows_in_warehouse + found.rows_in_source) for _, found in measured)
    bytes_predicted = tuple(cost.space or 0.0 for cost, _ in measured)
    return (
        Bars(
            title="Space",
            value_label="bytes",
            groups=groups,
            bars=(("predicted", bytes_predicted), ("measured", tuple(float(found.space) for _, found in measured))),
        ),
        Bars(
            title="Rows accessed",
            value_label="rows",
            groups=groups,
            bars=(("predicted", predicted), ("measured", rows)),
        ),
        Bars(
            title="Time to refresh",
            value_label="seconds",
            groups=groups,
            bars=(("measured", tuple(found.seconds for _, found in measured)),),
        ),
    )
