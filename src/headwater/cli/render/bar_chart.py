"""Bars side by side, as an SVG picture: enough for a page that compares a few numbers, without a library that draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 1180, 380
_TOP, _BOTTOM, _LEFT, _GAP, _LEGEND = 90, 40, 75, 20, 110
_COLOURS = ("#1f5fa8", "#d1495b", "#2e8b57", "#e08e0b", "#7b4fa3", "#17a2b8")
_INK, _LINE = "#333333", "#dddddd"
_BAR_SHARE = 0.84
"""How much of a group's width its bars take."""
_MOST_LINES = 5
_UNITS = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Groups of bars, the same ones in each: a value per group and bar."""

    title: str
    value_label: str
    groups: tuple[str, ...]
    bars: tuple[tuple[str, tuple[float, ...]], ...]


def draw_bars(title: str, panels: Sequence[Bars]) -> str:
    """Return panels of bars beside each other, as the text of an SVG file. Bars with the same name look the same.

    >>> panel = Bars(title="Space", value_label="bytes", groups=("a", "b"), bars=(("measured", (2.0, 1.0)),))
    >>> picture = draw_bars("two kinds", [panel])
    >>> picture.startswith('<svg xmlns="http://www.w3.org/2000/svg"'), picture.count("<title>")
    (True, 2)
    """
    names = list(dict.fromkeys(name for panel in panels for name, _ in panel.bars))
    colours = {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(names)}
    width = (WIDTH - _LEGEND) / len(panels)
    parts = [_text(10, 30, title, size=20, weight="bold")]
    for number, panel in enumerate(panels):
        parts += _panel(panel, colours, left=number * width + _LEFT, right=(number + 1) * width - _GAP)
    for number, name in enumerate(names):
        top = _TOP + 24 * number
        parts.append(_rectangle(WIDTH - _LEGEND, top, 14, 14, colours[name]))
        parts.append(_text(WIDTH - _LEGEND + 20, top + 12, name))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui, sans-serif" fill="{_INK}">\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(panel: Bars, colours: dict[str, str], *, left: float, right: float) -> list[str]:
    foot = HEIGHT - _BOTTOM
    step = _step(max((value for _, values in panel.bars for value in values), default=0.0))
    count = max(1, math.ceil(max((value for _, values in panel.bars for value in values), default=0.0) / step))
    pixels = (foot - _TOP) / (count * step)
    parts = [_text(left, _TOP - 30, panel.title, size=15), _text(left, _TOP - 12, panel.value_label, size=12)]
    for number in range(count + 1):
        y = foot - number * step * pixels
        parts.append(f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" stroke="{_LINE}"/>')
        parts.append(_text(left - 6, y + 4, short_number(number * step), anchor="end", size=12))
    group_width = (right - left) / max(1, len(panel.groups))
    bar_width = group_width * _BAR_SHARE / max(1, len(panel.bars))
    for place, group in enumerate(panel.groups):
        middle = left + (place + 0.5) * group_width
        parts.append(_text(middle, foot + 18, group, anchor="middle", size=12))
        for number, (name, values) in enumerate(panel.bars):
            x = middle + (number - len(panel.bars) / 2) * bar_width
            height = values[place] * pixels
            tooltip = f"{group}, {name}: {values[place]:,g} {panel.value_label}"
            parts.append(_rectangle(x, foot - height, bar_width, height, colours[name], tooltip))
    return parts


def _step(most: float) -> float:
    """Return the distance between lines: 1, 2 or 5 times a power of ten, so that at most five lines reach a value.

    >>> _step(7.0), _step(30_000.0), _step(0.0)
    (2.0, 10000.0, 1.0)
    """
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most / _MOST_LINES))
    return next(power * factor for factor in (1, 2, 5, 10, 20) if power * factor * _MOST_LINES >= most)


def short_number(value: float) -> str:
    """Return a number with a letter for its thousands.

    >>> short_number(0.25), short_number(1500.0), short_number(2e6)
    ('0.25', '1.5 k', '2 M')
    """
    size, letter = next((unit for unit in _UNITS if value >= unit[0]), (1.0, ""))
    return f"{value / size:g}{letter}"


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 13, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )


def _rectangle(x: float, y: float, width: float, height: float, colour: str, tooltip: str = "") -> str:
    """Return a rectangle, with a tooltip if there is a text for it."""
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"'
    return f"<rect {shape}><title>{escape(tooltip)}</title></rect>" if tooltip else f"<rect {shape}/>"
