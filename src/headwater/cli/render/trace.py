"""Lineage as trees: a view's row, its groups, their source rows, and what a transaction changed. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headwater.cli.render.page import Line, Page, TreeBranch
from headwater.deltas.compare import format_row
from headwater.engine.state.sought import OF
from headwater.lineage.result import ChangedRows, ImpactResult, RowImpactResult, TraceResult, WhyNotResult
from headwater.lineage.traced import Traced
from headwater.model.relation import COUNT, SegmentName


def draw_trace(result: TraceResult, row_limit: int) -> Page:
    """Show every selected row with what it derives from below it, and how many source rows that is."""
    found = result.rows.num_rows
    if not found:
        return [Line(text=f'view "{result.view}" has no such row at tick {result.tick}', style="yellow")]
    branches = [
        TreeBranch(text=text, style="bold", below=tuple(_below(result.tree, place, row_limit)))
        for place, text in enumerate(_texts(result.rows.slice(0, row_limit)))
    ]
    tree = TreeBranch(text=f"{result.view} at tick {result.tick}", below=(*branches, *_more(found, row_limit)))
    totals = [
        Line(text=f"{one.relation}: {_times(sum(one.rows[COUNT].to_pylist()))}, read from {one.origin.value}")
        for one in result.relations
    ]
    return [tree, *totals]


def draw_impact(result: ImpactResult) -> Page:
    """Show what went and what came, at the sources and in every view."""
    where = ", ".join(str(position) for position in result.positions)
    page: list[Line | TreeBranch] = [
        *_newest_before(result),
        Line(text=f"tick {result.tick}, {where}, committed {result.committed_at:%Y-%m-%d %H:%M:%S}"),
        *(_changed(one) for one in result.relations),
    ]
    for one in result.views:
        together = (
            f" (with ticks {one.after + 1} to {one.upto}, which it shows as one)" if one.upto - one.after > 1 else ""
        )
        page.append(_changed(one, f"view {one.name}{together}"))
    for names, why in ((result.not_yet, "not yet there"), (result.not_born, "born later")):
        if names:
            page.append(Line(text=f"{why}: {', '.join(names)}", style="dim"))
    return page


def _newest_before(result: ImpactResult) -> list[Line]:
    """Say so where the position is not one of the transaction: logs go on past the transactions we read of."""
    if str(result.asked) in map(str, result.positions):
        return []
    return [Line(text=f"no transaction ends at {result.asked}; the newest one before it is:", style="dim")]


def _changed(changed: ChangedRows, title: str = "") -> TreeBranch:
    if not changed.rows.num_rows:
        return TreeBranch(text=f"{title}: nothing changed", style="dim")
    signed = zip(_texts(_unsigned(changed.rows)), changed.rows[COUNT].to_pylist(), strict=True)
    rows = tuple(
        TreeBranch(text=f"{'−' if count < 0 else '+'} {text}", style="red" if count < 0 else "green")
        for text, count in signed
    )
    return TreeBranch(text=title or changed.name, style="cyan", below=rows)


def _unsigned(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.column_names.index(COUNT), COUNT, pc.abs(rows[COUNT]))


def draw_row_impact(result: RowImpactResult) -> Page:
    """Show the rows of every view that derive from the rows that were asked about."""
    row = ", ".join(f"{name} = {_cell(value)}" for name, value in result.row.items())
    branches = []
    for one in result.views:
        held = sum(one.of[COUNT].to_pylist())
        title = f"view {one.view} at tick {one.tick}"
        if not held:
            branches.append(TreeBranch(text=f"{title}: there is no such row", style="dim"))
            continue
        below = tuple(TreeBranch(text=text) for text in _texts(one.rows)) or (TreeBranch(text="nothing", style="dim"),)
        branches.append(TreeBranch(text=title, style="cyan", below=below))
    return [TreeBranch(text=f"{result.relation} with {row}", below=tuple(branches))]


def draw_why_not(result: WhyNotResult) -> Page:
    """Show what keeps a row out, and what would bring it."""
    row = ", ".join(f"{name} = {_cell(value)}" for name, value in result.row.items())
    if not result.obstacles:
        return [Line(text=f'view "{result.view}" has {row} at tick {result.tick}', style="green")]
    page = [Line(text=f'view "{result.view}" does not have {row} at tick {result.tick}, because')]
    page += [Line(text=f"  {obstacle.text}", style="yellow") for obstacle in result.obstacles]
    page += [
        Line(text=f"pending: {one.text} at tick {one.tick} ({one.position}), which the view has not come to")
        for one in result.pending
    ]
    if result.stopped is not None:
        page.append(Line(text=f"the view stopped at tick {result.stopped.tick}: {result.stopped.summary}", style="red"))
        if result.stopped.hint:
            page.append(Line(text=f"  do:  {result.stopped.hint}"))
    return page


def _cell(value: object) -> str:
    return format_row((value,))[1:-1]


def _below(traced: Sequence[Traced], place: int, limit: int) -> list[TreeBranch]:
    """Return what a row derives from."""
    branches = []
    for one in traced:
        places = [at for at, of in enumerate(one.rows[OF].to_pylist()) if of is None or of == place]
        if not places:
            continue
        shown = places[:limit]
        rows = tuple(
            TreeBranch(text=text, below=tuple(_below(one.below, at, limit)))
            for at, text in zip(shown, _texts(one.rows.take(shown)), strict=True)
        )
        if isinstance(one.name, SegmentName):
            title = f"{one.title}, read from {one.origin.value}"
        else:
            title = f"{one.title}: {_times(sum(one.rows[COUNT].take(places).to_pylist()))}"
        branches.append(TreeBranch(text=title, style="cyan", below=(*rows, *_more(len(places), limit))))
    return branches


def _texts(rows: pa.Table) -> list[str]:
    """Return rows as `column value, ...`, with how often each is there if it is more than once."""
    names = [name for name in rows.column_names if name not in (COUNT, OF)]
    columns = [[_cell(value) for value in rows[name].to_pylist()] for name in names]
    cells = zip(*columns, strict=True) if columns else [()] * rows.num_rows
    texts = [", ".join(f"{name} {cell}" for name, cell in zip(names, row, strict=True)) for row in cells]
    counts = rows[COUNT].to_pylist()
    return [text if count == 1 else f"{text}  × {count:,}" for text, count in zip(texts, counts, strict=True)]


def _more(count: int, limit: int) -> list[TreeBranch]:
    return [TreeBranch(text=f"… and {count - limit:,} more (--limit)", style="dim")] if count > limit else []


def _times(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"
