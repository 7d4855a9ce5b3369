"""Which segments below the view have group tables (paper 004's AG): as the view's author wishes, where it can be.

A segment whose old rows some step looks up has a group table, or its rows are recomputed from what it reads: of the
groups that a batch touches, and of those that its changes join. That is exact either way. A group table costs space,
and work at every change. Rows that are recomputed cost reads at every batch.

Some stay kept whatever is wished: those of which all rows are looked up at once, and those that are looked up by
columns that lead to nothing below (`lookups`). To compute either means to compute all of it, for every batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from headwater.errors import InvalidView, did_you_mean
from headwater.model.keeping import AllGroupTables, GroupTables, TheseGroupTables
from headwater.model.relation import RelationName
from headwater.views.steps.lookups import WaysBelow, lookups
from headwater.views.steps.segments import Held, SegmentedView
from headwater.views.text.meaning import meaning, text_of


def keep_group_tables(view: SegmentedView, wish: GroupTables) -> SegmentedView:
    """Return a view with the group tables that are wished for, and those that must be. It keeps no lineage yet."""
    if isinstance(wish, AllGroupTables):
        return view
    _check_names(view, wish.names)
    kept = {view.output.name}
    segments = []
    for segment in view.segments:
        is_wished = segment.name.name in wish.names or segment is view.output
        if segment.is_kept and (is_wished or _obstacle(view, segment.name, kept)):
            kept.add(segment.name)
        segments.append(replace(segment, is_kept=segment.name in kept))
    return replace(view, segments=tuple(segments))


def must_keep(view: SegmentedView) -> Mapping[RelationName, str]:
    """Return why segments are kept that need not be wished for, given the others that are."""
    kept = {segment.name for segment in view.segments if segment.is_kept}
    found = {name: _obstacle(view, name, kept - {name}) for name in kept - {view.output.name}}
    return {name: why for name, why in found.items() if why}


def group_tables(view: SegmentedView) -> tuple[RelationName, ...]:
    """Return the segments below the view whose old rows are looked up: those that have a group table, or may."""
    return tuple(name for name in lookups(view.segments) if name != view.output.name)


def choosable_group_tables(view: SegmentedView) -> frozenset[RelationName]:
    """Return the segments that need no group table even if no other has one, whatever is kept now."""
    names = group_tables(view)
    segments = (replace(one, is_kept=one.name in names or one is view.output) for one in view.segments)
    every = replace(view, segments=tuple(segments))
    return frozenset(computed_segments(keep_group_tables(every, TheseGroupTables(()))))


def computed_segments(view: SegmentedView) -> tuple[RelationName, ...]:
    """Return the segments whose old rows are looked up under keys, and that are not kept."""
    found = lookups(view.segments)
    return tuple(one.name for one in view.segments if not one.is_kept and any(found.get(one.name, ())))


def looked_up_below(view: SegmentedView) -> Iterator[Held]:
    """Yield the relations that are looked up to compute segments without a group table, and by what columns."""
    segments = {segment.name: segment for segment in view.segments}
    leads = WaysBelow(segments=segments, kept={segment.name for segment in view.segments if segment.is_kept})
    for name in computed_segments(view):
        for columns in sorted(lookups(view.segments)[name]):
            yield from leads.relations(segments[name], columns)


def _obstacle(view: SegmentedView, name: RelationName, kept: Collection[RelationName]) -> str:
    """Return why the rows of a segment cannot be computed from few others. Empty if they can."""
    segments = {segment.name: segment for segment in view.segments}
    leads = WaysBelow(segments=segments, kept=kept)
    for columns in sorted(lookups(view.segments).get(name, ())):
        if not columns:
            return "all its rows are needed whenever something changes"
        if not leads.below(segments[name], columns):
            by = ", ".join(text_of(meaning(name, column, segments)) for column in columns)
            return f"it is looked up by {by}, by which few rows of what it reads cannot be found"
    return ""


def _check_names(view: SegmentedView, names: Collection[str]) -> None:
    known = tuple(name.name for name in group_tables(view))
    for name in names:
        if name not in known:
            raise InvalidView(
                f'view "{view.name}" has no group table "{name}"',
                code="HW-249",
                detail=f"old rows are needed of {', '.join(known) or 'none of its segments'}",
                hint=did_you_mean(name, known, otherwise=f"`headwater explain {view.name} --full` shows its segments"),
            )
