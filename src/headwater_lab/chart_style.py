"""How the lab's charts look: colours, plain axes, and scales with plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, NullLocator

COLOURS = (
    "#1f5fa8", "#d1495b", "#2e8b57", "#e08e0b", "#7b4fa3", "#17a2b8",
    "#8c564b", "#c2185b", "#6b7a00", "#444444", "#00838f", "#ff7043",
)  # fmt: skip
MARKERS = "osD^vPX*<>hp"
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
DPI = 130
_LARGE, _UNTOLD = 1e5, 1e12
_INK = "#333333"


def titled_figure(title: str, width: float, height: float) -> Figure:
    """Return a figure with its title, and room for panels."""
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, fontsize=15, fontweight="bold", color=_INK, x=0.01, ha="left")
    return figure


def dress(panel: Axes, label: str, value_label: str) -> None:
    """Give a panel its labels, light lines across, and no frame."""
    panel.set_xlabel(label, fontsize=11.5, color=_INK)
    panel.set_ylabel(value_label, fontsize=11.5, color=_INK)
    panel.tick_params(labelsize=10.5, colors=_INK, labelbottom=True)
    panel.grid(visible=True, axis="y", color="#dddddd", linewidth=0.8)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def name_places(panel: Axes, names: Sequence[str]) -> None:
    """Put one name below each of the places 0, 1, 2 …."""
    panel.xaxis.set_major_locator(FixedLocator(list(range(len(names)))))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xticklabels(list(names))


def shorten_numbers(panel: Axes) -> None:
    """Write large numbers with a letter, 5 M for five million. Small ones, and those beyond counting, as they are."""
    for axis, (_, most) in ((panel.xaxis, panel.get_xlim()), (panel.yaxis, panel.get_ylim())):
        if _LARGE < most < _UNTOLD:
            axis.set_major_formatter(EngFormatter())


def share_legend(figure: Figure, panel: Axes) -> None:
    """Put one panel's legend beside all of them."""
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=10.5, handlelength=3.4)


def scale(panel: Axes, values: Sequence[float]) -> None:
    """Give the axis of values a scale that keeps small and large ones apart, with plain numbers: 1, 2, 5, 10 ..."""
    least, most = min(values), max(values)
    if least <= 0:
        panel.set_ylim(0, 1.05 * most or 1)
        return
    panel.set_yscale("log")
    panel.set_ylim(0.85 * least, 1.18 * most)
    steps = [factor * 10.0**power for power in range(-3, 7) for factor in (1, 2, 5)]
    panel.yaxis.set_major_locator(FixedLocator([step for step in steps if 0.85 * least <= step <= 1.18 * most]))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
