"""The kinds of maintenance of views, compared, as grids. Pure."""

from __future__ import annotations

from headwater.advisor.analysis import AnalyzeResult, KindCost, ViewAnalysis
from headwater.advisor.kinds.parameters import Rows
from headwater.cli.render.page import Grid, Line, Page

HEADINGS = (
    "kind", "maintenance", "bytes", "bytes kept", "rows by paper 002", "rows by index",
    "rows read", "rows asked", "probes", "unasked", "seconds", "agrees",
)  # fmt: skip
_TEXTS = ("kind", "maintenance", "agrees")


def draw_analysis(result: AnalyzeResult) -> Page:
    """Show what each kind costs each view, predicted and measured."""
    page: list[Line | Grid] = []
    for view in result.views:
        rows = tuple(cost_cells(cost) for cost in view.kinds)
        title = f'view "{view.view}": {describe(view)}'
        page.append(Grid(title=title, headings=HEADINGS, rows=rows, right=frozenset(HEADINGS) - frozenset(_TEXTS)))
        page += [
            Line(text=f"{one.kind}: not measured, {one.because}", style="dim") for one in view.kinds if one.because
        ]
    page.append(Line(text="bytes and the first two kinds of rows are predicted, the others measured; * is in use"))
    return [*page, *(Line(text=f"wrote {file}", style="green") for file in result.files)]


def describe(view: ViewAnalysis) -> str:
    """Return over what its kinds were compared."""
    ticks = f"{view.tick_count} ticks in {view.batch_count} batches, {view.changed_rows} rows changed"
    return f"{ticks}; {view.parameters.partners:.3g} partners a row"


def cost_cells(cost: KindCost) -> tuple[str, ...]:
    """Return a kind's numbers, in the order of the headings."""
    measured = cost.measured
    found = (
        ("",) * 7
        if measured is None
        else (
            f"{measured.space:,}",
            f"{measured.rows_in_warehouse:,}",
            f"{measured.rows_in_source:,}",
            f"{measured.probe_count:,}",
            f"{measured.unasked_count:,}",
            f"{measured.seconds:.2f}",
            "yes" if measured.agrees else "NO",
        )
    )
    space = "" if cost.space is None else f"{cost.space:,.0f}"
    kind = f"{cost.kind}{' *' if cost.in_use else ''}"
    return (kind, cost.maintenance, space, found[0], _rows(cost.predicted), _rows(cost.read_rows), *found[1:])


def _rows(rows: Rows | None) -> str:
    return "" if rows is None else f"{rows.total:,.0f}"
