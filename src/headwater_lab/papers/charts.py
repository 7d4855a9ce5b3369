"""Draws pictures as PNG files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib.axes import Axes

from headwater.cli.render.bar_chart import Bars
from headwater_lab.chart_style import (
    COLOURS,
    DASHES,
    DPI,
    MARKERS,
    dress,
    name_places,
    scale,
    share_legend,
    shorten_numbers,
    titled_figure,
)
from headwater_lab.papers.pictures import Panel, Picture

_BAR_SHARE = 0.84
"""How much of a group's width its bars take."""


def draw_pictures(pictures: Iterable[Picture], folder: Path) -> tuple[Path, ...]:
    """Write every picture into a folder, and return the files."""
    return tuple(_draw(picture, folder / picture.file) for picture in pictures)


def _draw(picture: Picture, file: Path) -> Path:
    figure = titled_figure(picture.title, 15, 5.2)
    axes = figure.subplots(1, len(picture.panels), squeeze=False)[0]
    for panel, drawn in zip(axes, picture.panels, strict=True):
        panel.set_title(drawn.title, fontsize=12, loc="left")
        if isinstance(drawn, Bars):
            _draw_bars(panel, drawn)
        else:
            _draw_curves(panel, drawn)
    share_legend(figure, axes[-1])
    figure.savefig(file, dpi=DPI)
    return file


def _draw_curves(panel: Axes, drawn: Panel) -> None:
    for number, curve in enumerate(drawn.curves):
        panel.plot(
            curve.places,
            curve.values,
            label=curve.label,
            color=COLOURS[number],
            linestyle=DASHES[number % len(DASHES)],
            marker=MARKERS[number] if curve.has_points else None,
            linewidth=2.2,
            markersize=6,
            alpha=0.9,
        )
    dress(panel, drawn.label, drawn.value_label)
    if drawn.is_log:
        panel.set_xscale("log")
        panel.set_yscale("log")
    elif drawn.has_log_values:
        scale(panel, [value for curve in drawn.curves for value in curve.values])
    else:
        panel.set_ylim(bottom=0)
        shorten_numbers(panel)


def _draw_bars(panel: Axes, drawn: Bars) -> None:
    width = _BAR_SHARE / len(drawn.bars)
    for number, (label, values) in enumerate(drawn.bars):
        shift = (number - (len(drawn.bars) - 1) / 2) * width
        places = [group + shift for group in range(len(values))]
        panel.bar(places, values, width, label=label, color=COLOURS[number])
    dress(panel, "", drawn.value_label)
    name_places(panel, drawn.groups)
