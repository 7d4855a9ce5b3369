"""Paper 002's tables and figures as what the report's page has gaps for: printed beside corrected."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.cli.html import html_picture, html_table
from headwater_lab.papers.kinds_pictures import kinds_pictures
from headwater_lab.papers.space_and_rows import KindEntry, crossings, entries, ratios

_PLAIN = 1e6
"""Numbers below are written out."""


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
