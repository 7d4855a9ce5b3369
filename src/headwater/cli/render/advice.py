"""Advice as a page: what to keep, what that costs beside the alternatives, and what it rests on. Pure."""

from __future__ import annotations

from headwater.advisor.advice import Advice, AdviceResult, AdvisedTable, Alternative
from headwater.advisor.candidates import AuxiliaryKind
from headwater.cli.render.page import Grid, Line, Page

_WORDS = {
    AuxiliaryKind.REPLICA: "a replica of",
    AuxiliaryKind.GROUP_TABLE: "the group table of",
    AuxiliaryKind.LINEAGE_VIEW: "the lineage view of",
    AuxiliaryKind.SPLIT_LINEAGE: "the split lineage tables of",
}
_UNITS = ("B", "kB", "MB", "GB", "TB")
_THOUSAND = 1000


def draw_advice(result: AdviceResult) -> Page:
    """Show the advice on every view, and what was written of it."""
    page: list[Line | Grid] = [block for advice in result.views for block in _advice(advice)]
    page += [Line(text=f"view {one.view}: no choice, {one.reason}", style="yellow") for one in result.unadvised]
    if result.written:
        page.append(Line(text="written into headwater.toml:", style="green"))
        page += [Line(text=f"  {line}") for line in result.written]
        page.append(Line(text="a running `headwater run` applies it by itself; `headwater plan` shows what it does"))
    return page


def _advice(advice: Advice) -> list[Line | Grid]:
    alternatives = (
        ("recommended", advice.recommended),
        ("today", advice.today),
        ("nothing", advice.nothing),
        ("everything", advice.everything),
    )
    costs = Grid(
        headings=("keep", "maintaining", "tracing", "together", "stored"),
        rows=tuple((name, *_cost(one)) for name, one in alternatives),
        right=frozenset({"maintaining", "tracing", "together", "stored"}),
    )
    relations = Grid(
        headings=("relation", "read by", "rows", "bytes each", "updates/h", "rows each", "round trip"),
        rows=tuple(
            (
                one.relation,
                one.reading,
                f"{one.rows:,}",
                f"{one.row_bytes:,.0f}",
                f"{one.updates_per_hour:,.1f}",
                f"{one.rows_per_update:,.1f}",
                f"{one.trip_milliseconds:,.2f} ms",
            )
            for one in advice.relations
        ),
        right=frozenset({"rows", "bytes each", "updates/h", "rows each", "round trip"}),
    )
    traced = "" if advice.is_traced else ", a guess: it was not traced yet (--traces-per-hour sets it)"
    return [
        Line(text=f"view {advice.view}", style="bold"),
        *_why(advice),
        costs,
        relations,
        Line(text=f"traced {advice.traces_per_hour:,.1f} times per hour{traced}", style="dim"),
        Line(
            text=f"{advice.set_count:,} sets are possible; {advice.algorithm} priced {advice.priced_count:,}, "
            "whole or in part; costs are predicted, in milliseconds of work per hour",
            style="dim",
        ),
    ]


def _why(advice: Advice) -> list[Line | Grid]:
    """Return what to keep and to give up, each with what that saves."""
    now = {(one.kind, one.of) for one in advice.today.tables}
    wanted = {(one.kind, one.of) for one in advice.recommended.tables}
    lines: list[Line | Grid] = [
        Line(
            text=f"  {'keep' if (one.kind, one.of) in now else 'add '} {_named(one)}: without it "
            f"{one.saved:,.1f} ms/h more, for {_bytes(one.stored_bytes)}"
        )
        for one in advice.recommended.tables
    ]
    lines += [
        Line(text=f"  drop {_named(one)}: the {one.saved:,.1f} ms/h that it saves today are saved otherwise")
        if one.saved >= 0
        else Line(text=f"  drop {_named(one)}: it costs {-one.saved:,.1f} ms/h, and {_bytes(one.stored_bytes)}")
        for one in advice.today.tables
        if (one.kind, one.of) not in wanted
    ]
    return lines or [Line(text="  keep nothing beside the view")]


def _named(table: AdvisedTable) -> str:
    return f"{_WORDS[table.kind]} {table.of}"


def _cost(one: Alternative) -> tuple[str, str, str, str]:
    return f"{one.maintaining:,.1f}", f"{one.tracing:,.1f}", f"{one.total:,.1f}", _bytes(one.stored_bytes)


def _bytes(count: float) -> str:
    """Return a number of bytes as a person says it.

    >>> _bytes(1_234_567)
    '1.2 MB'
    """
    for unit in _UNITS[:-1]:
        if count < _THOUSAND:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= _THOUSAND
    return f"{count:,.1f} {_UNITS[-1]}"
