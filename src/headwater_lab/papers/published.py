"""The running times that paper 004 prints: Figures 7 and 11, in seconds. None means it did not end."""

from __future__ import annotations

from collections.abc import Mapping

TIMED = ("exhaustive", "greedy", "three-step", "naive", "none")
"""The columns of both tables. The paper has neither `combined` nor `exact`."""

FIGURE_7: Mapping[str, tuple[float | None, ...]] = {
    "Q5": (11.15, 4.79, 2.38, 0.08, 0.09),
    "Q11": (14.07, 0.94, 0.38, 0.03, 0.04),
    "Q17": (0.62, 0.29, 0.10, 0.02, 0.03),
}

FIGURE_11: Mapping[str, tuple[float | None, ...]] = {
    "v1": (2411.68, 3.18, 0.67, 0.05, 0.07),
    "v2": (2414.86, 3.18, 0.99, 0.03, 0.03),
    "v3": (2455.74, 3.28, 0.71, 0.08, 0.03),
    "v4": (2493.06, 3.17, 0.63, 0.03, 0.05),
    "v5": (2376.53, 3.93, 0.64, 0.03, 0.03),
    "v6": (757.49, 0.99, 0.17, 0.02, 0.02),
    "v7": (None, 156.36, 35.29, 0.33, 0.21),
}
