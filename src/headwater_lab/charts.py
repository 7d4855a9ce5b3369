"""Charts of a comparison, as PNG files: cost and staleness as sources, update rate and deletes vary. Staleness in time.

Algorithms that measure the same are one line with all their names: lines on top of each other would hide that. Literal
readings are in the tables only: they cost what their algorithms cost, and are not to be chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from headwater_lab.chart_list import CHARTS, TIMELINE, Chart
from headwater_lab.chart_style import (
    COLOURS,
    DASHES,
    DPI,
    MARKERS,
    dress,
    name_places,
    scale,
    share_legend,
    titled_figure,
)
from headwater_lab.compare import Comparison
from headwater_lab.entrants import literal
from headwater_lab.measure import MeasuredAlgorithm
from headwater_lab.timed import Conditions


def draw_charts(comparison: Comparison, folder: Path) -> tuple[Path, ...]:
    """Write every chart into a folder, and return the files."""
    styles = _styles(one.algorithm for one in _drawn(comparison))
    files = []
    for chart in CHARTS:
        files.append(folder / chart.file)
        _draw_varied(comparison, chart, styles).savefig(files[-1], dpi=DPI)
    files.append(folder / TIMELINE)
    _draw_timeline(comparison, styles).savefig(files[-1], dpi=DPI)
    return tuple(files)


def _drawn(comparison: Comparison) -> list[MeasuredAlgorithm]:
    readings = {described.name for described in literal()}
    return [one for one in comparison.middle.measured if one.algorithm not in readings]


def _styles(names: Iterable[str]) -> Mapping[str, Mapping[str, object]]:
    """Return a colour, a marker and a dash for each algorithm. Two of them never share all three."""
    return {
        name: {
            "color": COLOURS[place % len(COLOURS)],
            "marker": MARKERS[place % len(MARKERS)],
            "linestyle": DASHES[place // 3 % len(DASHES)],
        }
        for place, name in enumerate(names)
    }


def _draw_varied(comparison: Comparison, chart: Chart, styles: Mapping[str, Mapping[str, object]]) -> Figure:
    """Return three panels: what is measured against the number of sources, the interval, and the share of deletes."""
    plan, middle = comparison.plan, comparison.plan.middle
    panels: tuple[tuple[str, list[tuple[float, Conditions]]], ...] = (
        ("number of sources", [(value, replace(middle, source_count=value)) for value in plan.source_counts]),
        ("time between transactions (one way ≈ 1)", [(v, replace(middle, interval=v)) for v in plan.intervals]),
        ("share of deletes, %", [(100 * value, replace(middle, deletes=value)) for value in plan.deletes]),
    )
    everywhere = [cell.conditions for cell in comparison.cells if cell.conditions.shape == comparison.plan.shapes[0]]
    alike = _alike(comparison, chart.value, everywhere)
    figure = titled_figure(chart.title, 15, 5.6)
    axes = figure.subplots(1, len(panels), sharey=True)
    for place, (panel, (label, points)) in enumerate(zip(axes, panels, strict=True)):
        positions = list(range(len(points)))
        for names in alike:
            values = _values(comparison, names[0], chart.value, [conditions for _, conditions in points])
            panel.plot(positions, values, label=_label(names), linewidth=2, markersize=7, alpha=0.9, **styles[names[0]])
        dress(panel, label, chart.label if place == 0 else "")
        name_places(panel, [f"{value:g}" for value, _ in points])
    scale(axes[0], [value for each in alike for value in _values(comparison, each[0], chart.value, everywhere)])
    share_legend(figure, axes[0])
    return figure


def _alike(
    comparison: Comparison, value: Callable[[MeasuredAlgorithm], float], everywhere: list[Conditions]
) -> list[list[str]]:
    """Return the algorithms, those together that measure the same under all conditions."""
    groups: dict[tuple[float, ...], list[str]] = {}
    for one in _drawn(comparison):
        groups.setdefault(tuple(_values(comparison, one.algorithm, value, everywhere)), []).append(one.algorithm)
    return list(groups.values())


def _values(
    comparison: Comparison, name: str, value: Callable[[MeasuredAlgorithm], float], conditions: list[Conditions]
) -> list[float]:
    cells = {cell.conditions: {one.algorithm: one for one in cell.measured} for cell in comparison.cells}
    return [round(value(cells[each][name]), 6) for each in conditions]


def _label(names: list[str]) -> str:
    """Return the names of a line, one below the other."""
    return ",\n".join(names)


def _draw_timeline(comparison: Comparison, styles: Mapping[str, Mapping[str, object]]) -> Figure:
    """Return one small panel for each algorithm: how many ticks its view is behind, at each moment."""
    measured = _drawn(comparison)
    columns = 3
    rows = -(-len(measured) // columns)
    figure = titled_figure("Ticks delivered and not yet shown, over time", 15, 1.2 + 2.1 * rows)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for place, panel in enumerate(axes.flat):
        if place >= len(measured):
            panel.set_axis_off()
            continue
        one = measured[place]
        times = [at for at, _ in one.behind] + [one.ended_at]
        ticks = [behind for _, behind in one.behind] + [one.behind[-1][1]]
        colour = str(styles[one.algorithm]["color"])
        panel.fill_between(times, ticks, step="post", color=colour, alpha=0.25, linewidth=0)
        panel.step(times, ticks, where="post", color=colour, linewidth=1.6)
        panel.axvline(one.ended_at, color=colour, linewidth=1, linestyle=":")
        dress(panel, "time" if place + columns >= len(measured) else "", "ticks behind" if place % columns == 0 else "")
        panel.set_title(f"{one.algorithm}   mean {one.mean_ticks_behind:.1f}, ends at {one.ended_at:.0f}", fontsize=11)
    axes[0, 0].set_ylim(0, 1.05 * max(behind for one in measured for _, behind in one.behind))
    axes[0, 0].set_xlim(0, 1.02 * max(one.ended_at for one in measured))
    return figure
