"""Charts as data: curves and bars in panels, panels in a picture. `charts` draws them."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.cli.render.bar_chart import Bars


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line: a value at every place. What was not measured has no place."""

    label: str
    places: tuple[float, ...]
    values: tuple[float, ...]
    has_points: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Curves over the same axis. `is_log` scales both axes by magnitude, `has_log_values` the one of values."""

    title: str
    label: str
    value_label: str
    curves: tuple[Curve, ...]
    is_log: bool = False
    has_log_values: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A file with panels beside each other."""

    file: str
    title: str
    panels: tuple[Panel | Bars, ...]
