"""Which charts a comparison has: the file each goes into, and what it shows. `charts` draws them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater_lab.measure import MeasuredAlgorithm


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart against sources, interval and deletes: its file, its texts, and how it reads a measurement."""

    file: str
    title: str
    label: str
    value: Callable[[MeasuredAlgorithm], float]


CHARTS = (
    Chart(
        file="queries.png",
        title="Queries per transaction",
        label="queries per transaction",
        value=lambda one: one.queries_per_update,
    ),
    Chart(
        file="bytes.png",
        title="Bytes sent and answered per transaction",
        label="bytes per transaction",
        value=lambda one: one.bytes_per_update,
    ),
    Chart(
        file="staleness.png",
        title="How far the view is behind, on average",
        label="ticks behind, mean over time",
        value=lambda one: one.mean_ticks_behind,
    ),
)
TIMELINE = "timeline.png"
"""The chart of how far each view is behind, at each moment."""
