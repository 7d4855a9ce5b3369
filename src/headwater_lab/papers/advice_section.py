"""Paper 004's experiments as what the report's page has gaps for: tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from headwater.cli.render.bar_chart import Bars
from headwater.cli.render.html import html_picture, html_table
from headwater_lab.papers.advice import ENTRANTS, GROWING, MOST_SETS, MOST_TABLES, AdviceExperiments, Ran, Tried
from headwater_lab.papers.pictures import Curve, Panel, Picture

TIMED = ("exhaustive", "greedy", "three-step", "naive", "none")
"""The columns of Figures 7 and 11, the paper's running times in seconds; None never ended.

The paper has neither `combined` nor `exact`.
"""

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


_BARS = ("greedy", "three-step", "naive", "none")
_EXPLAINED = ("exact", "greedy", "three-step")


def advice_pictures(advice: AdviceExperiments) -> Mapping[str, Picture]:
    """Return the pictures, each by its gap in the page."""
    return {
        "tpc_d_picture": _optimality_picture(
            "004-tpc-d.png", "Paper 004, Figure 6: optimality for TPC-D views", advice.tpc_d
        ),
        "synthetic_picture": _optimality_picture(
            "004-synthetic.png", "Paper 004, Figure 10: optimality for synthetic views", advice.synthetic
        ),
        "failing_picture": _optimality_picture(
            "004-failing.png", "Paper 004, Figure 15: optimality for v8 and v9", advice.failing
        ),
        "growing_picture": Picture(
            file="004-growing.png",
            title="Paper 004, Figures 12 and 13: running time as views grow",
            panels=(
                _seconds_panel("Figure 12: two levels", "fan-out", advice.by_fan_out, _fan_out),
                _seconds_panel("Figure 13: fan-out 2", "levels", advice.by_levels, _levels),
            ),
        ),
    }


def advice_gaps(advice: AdviceExperiments) -> Mapping[str, str]:
    """Return what goes into the page's gaps, as HTML."""
    return {
        **{gap: html_picture(one.file, one.title) for gap, one in advice_pictures(advice).items()},
        "high_profit_sets": str(advice.high_profit.set_count),
        "high_profit": _steps_table(advice.high_profit),
        "random_count": str(advice.random_count),
        "random": html_table(
            ("algorithm", "mean optimality", "least"),
            [(one.algorithm, f"{one.mean:.4f}", f"{one.least:.3f}") for one in advice.random],
        ),
        "tpc_d_optimality": _optimality_table(advice.tpc_d),
        "tpc_d_seconds": _seconds_table(advice.tpc_d, FIGURE_7),
        "tpc_d_kept": _kept_table(advice.tpc_d),
        "synthetic_optimality": _optimality_table(advice.synthetic),
        "synthetic_seconds": _seconds_table(advice.synthetic, FIGURE_11),
        "by_group_size": _group_size_table(advice),
        "by_fan_out": _growing_table("fan-out", advice.by_fan_out, _fan_out),
        "by_levels": _growing_table("levels", advice.by_levels, _levels),
        "most_sets": f"{MOST_SETS:,}",
        "most_tables": str(MOST_TABLES),
        "failing_optimality": _optimality_table(advice.failing),
        "failing_kept": _kept_table(advice.failing),
    }


def _fan_out(tried: Tried) -> int:
    return tried.fan_out


def _levels(tried: Tried) -> int:
    return tried.levels


def _optimality_picture(file: str, title: str, tried: Sequence[Tried]) -> Picture:
    bars = tuple((name, tuple(one.of(name).optimality for one in tried)) for name in _BARS)
    panel = Bars(title="", value_label="optimality", groups=tuple(one.view for one in tried), bars=bars)
    return Picture(file=file, title=title, panels=(panel,))


def _seconds_panel(title: str, label: str, tried: Sequence[Tried], place: Callable[[Tried], int]) -> Panel:
    curves = []
    for name in GROWING:
        ran = [one for one in tried if one.has(name)]
        curves.append(
            Curve(
                label=name,
                places=tuple(float(place(one)) for one in ran),
                values=tuple(one.of(name).seconds for one in ran),
                has_points=True,
            )
        )
    return Panel(title=title, label=label, value_label="seconds", curves=tuple(curves), has_log_values=True)


def _steps_table(tried: Tried) -> str:
    headings = ("algorithm", "optimality", "sets priced", "keeps", "found in this order; − is given up")
    rows = [
        (one.algorithm, _share(one), f"{one.priced_count:,}", ", ".join(one.kept) or "–", ", ".join(one.moves) or "–")
        for one in tried.ran
    ]
    return html_table(headings, rows)


def _optimality_table(tried: Sequence[Tried]) -> str:
    headings = ("optimality", *(f"{one.view}, {one.set_count:.3g} sets" for one in tried))
    return html_table(headings, [(name, *(_told(one, name, _share) for one in tried)) for name in ENTRANTS])


def _seconds_table(tried: Sequence[Tried], published: Mapping[str, tuple[float | None, ...]]) -> str:
    headings = ("seconds", *(f"{name}: paper, here" for name in TIMED), "exact: here, sets it priced")
    rows = []
    for one in tried:
        said = ["never ended" if value is None else f"{value:g}" for value in published[one.view]]
        cells = [f"{text}, {_told(one, name, _seconds)}" for name, text in zip(TIMED, said, strict=True)]
        rows.append((one.view, *cells, _told(one, "exact", _effort)))
    return html_table(headings, rows)


def _growing_table(label: str, tried: Sequence[Tried], place: Callable[[Tried], int]) -> str:
    headings = (label, "sets", *(f"{name}: seconds, sets priced" for name in GROWING))
    rows = [
        (str(place(one)), f"{one.set_count:.3g}", *(_told(one, name, _effort) for name in GROWING)) for one in tried
    ]
    return html_table(headings, rows)


def _group_size_table(advice: AdviceExperiments) -> str:
    headings = ("algorithm", "rows per group", "v1", "v2", "v3", "v4", "v5")
    rows = [
        (name, f"{size:,}", *(_told(one, name, _share) for one in tried))
        for name in _BARS
        for size, tried in advice.by_group_size
    ]
    return html_table(headings, rows)


def _kept_table(tried: Sequence[Tried]) -> str:
    rows = [(one.view, name, ", ".join(one.of(name).kept)) for one in tried for name in _EXPLAINED]
    return html_table(("view", "algorithm", "keeps"), rows)


def _told(tried: Tried, algorithm: str, tell: Callable[[Ran], str]) -> str:
    return tell(tried.of(algorithm)) if tried.has(algorithm) else "not run"


def _share(ran: Ran) -> str:
    return f"{ran.optimality:.4f}"


def _seconds(ran: Ran) -> str:
    return f"{ran.seconds:.2g}"


def _effort(ran: Ran) -> str:
    return f"{ran.seconds:.2g}, {ran.priced_count:,}"
