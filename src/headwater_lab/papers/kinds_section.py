"""Paper 002's tables and figures as what the report's page has gaps for: as printed, and corrected.

The pictures show the four kinds against the relations' rows. Only the text of the figures is known: their axes are
chosen so that they show what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headwater.advisor.kinds import corrected, printed
from headwater.advisor.kinds.parameters import MaintenanceKind, Parameters, Rows
from headwater.cli.render.html import html_picture, html_table
from headwater_lab.papers.pictures import Curve, Panel, Picture
from headwater_lab.papers.space_and_rows import DEFAULT, KindEntry, crossings, entries, ratios

_POINTS = 60
_GIGA = 1e9
_PLAIN = 1e6
"""Numbers below are written out."""
_SMR, _NSMR, _SMIM, _NSMIM = MaintenanceKind


def kinds_pictures() -> Mapping[str, Picture]:
    """Return Figures 2 to 9, each picture by its gap in the page."""
    return {
        "space_picture": Picture(
            file="002-space.png",
            title="Paper 002, Figures 2, 3 and 4: space in the warehouse, average case",
            panels=(
                _space_panel("Figure 2: small relations", 5e6, is_log=False),
                _space_panel("Figure 3: where COLLECT outgrows", 2e7, is_log=False),
                _space_panel("Figure 4: large relations", 1e9, is_log=True),
            ),
        ),
        "recomputation_picture": Picture(
            file="002-recomputation.png",
            title="Paper 002, Figures 5 and 6: rows accessed by recomputation, average case",
            panels=(
                _rows_panel("Figure 5: small relations", 1_000, (_SMR, _NSMR), is_log=False),
                _rows_panel("Figure 6: larger relations", 1e6, (_SMR, _NSMR), is_log=False),
            ),
        ),
        "rows_picture": Picture(
            file="002-rows.png",
            title="Paper 002, Figures 7, 8 and 9: rows accessed, average case",
            panels=(
                _rows_panel("Figure 7: small relations", 1_000, tuple(MaintenanceKind), is_log=False),
                _rows_panel("Figure 8: large relations", 1e9, tuple(MaintenanceKind), is_log=False),
                _rows_panel("Figure 9: the same, logarithmic", 1e9, tuple(MaintenanceKind), is_log=True),
            ),
        ),
    }


def _space_panel(title: str, most: float, *, is_log: bool) -> Panel:
    ones: tuple[tuple[str, Callable[[Parameters], float]], ...] = (
        ("SMR and SMIM", lambda of: printed.space(_SMIM, of)),
        ("NSMR", lambda of: printed.space(_NSMR, of)),
        ("NSMIM as printed", lambda of: printed.space(_NSMIM, of)),
        ("NSMIM corrected", lambda of: corrected.space(_NSMIM, of)),
    )
    return _panel(title, most, "gigabytes", _GIGA, ones, is_log=is_log)


def _rows_panel(title: str, most: float, kinds: tuple[MaintenanceKind, ...], *, is_log: bool) -> Panel:
    lines: list[tuple[str, Callable[[Parameters], float]]] = []
    for kind in kinds:
        name = kind.name if kind is not _NSMIM else "NSMIM as printed"
        lines.append((name, _rows_of(kind, printed.rows)))
        if kind is _NSMIM:
            lines.append(("NSMIM corrected", _rows_of(kind, corrected.rows)))
    return _panel(title, most, "rows", 1.0, tuple(lines), is_log=is_log)


def _rows_of(
    kind: MaintenanceKind, rows: Callable[[MaintenanceKind, Parameters], Rows]
) -> Callable[[Parameters], float]:
    return lambda of: rows(kind, of).total


def _panel(
    title: str,
    most: float,
    label: str,
    unit: float,
    lines: tuple[tuple[str, Callable[[Parameters], float]], ...],
    *,
    is_log: bool,
) -> Panel:
    least = most / 10**5 if is_log else most / _POINTS
    places = [
        least * (most / least) ** (step / (_POINTS - 1)) if is_log else most * (step + 1) / _POINTS
        for step in range(_POINTS)
    ]
    given = [replace(DEFAULT, relation_rows=place) for place in places]
    return Panel(
        title=title,
        label="rows of a relation",
        value_label=label,
        is_log=is_log,
        curves=tuple(
            Curve(label=name, places=tuple(places), values=tuple(value(of) / unit for of in given))
            for name, value in lines
        ),
    )


def kinds_gaps() -> Mapping[str, str]:
    """Return what goes into the page's gaps, as HTML."""
    return {
        **{gap: html_picture(one.file, one.title) for gap, one in kinds_pictures().items()},
        "kinds": html_table(
            ("kind", "case", "bytes, printed", "bytes, corrected", "rows, printed", "rows, corrected"),
            [_entry(one) for one in entries()],
        ),
        "crossings": html_table(
            ("what", "at a number of rows of a relation", "the paper says"),
            [(one.what, _number(one.rows), one.said) for one in crossings()],
        ),
        "ratios": html_table(
            ("parameters", "as printed", "corrected"),
            [(one.where, f"{one.printed:.4g}", f"{one.corrected:.4g}") for one in ratios()],
        ),
    }


def _entry(one: KindEntry) -> tuple[str, ...]:
    numbers = (one.printed_space, one.corrected_space, one.printed_rows, one.corrected_rows)
    return one.kind.name, one.case.value, *(_number(number) for number in numbers)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value < _PLAIN else f"{value:.3g}"
