"""A view that is recomputed: its own SQL over its relations, once per commit.

Where it has no incremental form, copies of its relations are kept for it. Where its author chose to have it recomputed,
none are: its relations are read whole, from their replicas or their sources.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from headwater.model.relation import Relation, RelationName, SegmentName
from headwater.views.compile.draft import Types
from headwater.views.compile.expressions import column
from headwater.views.compile.reasons import NoIncrementalForm
from headwater.views.compile.write_segments import keep_needed
from headwater.views.laws.exact_sums import exact_sums_on_spark
from headwater.views.laws.join import renamed_sql
from headwater.views.steps.build_join import build_join
from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.recompute_step import RecomputeStep
from headwater.views.steps.segment_names import segment_name
from headwater.views.steps.segments import RecomputeReason, Segment, SegmentedView
from headwater.views.text.scope import look_up_all
from headwater.views.text.spark_text import quoted
from headwater.views.text.statement import Statement
from headwater.views.text.support import RESERVED_NAMES


def recompute_view(
    statement: Statement,
    whole: str,
    catalog: Mapping[RelationName, Relation],
    types: Types,
    found: NoIncrementalForm,
    *,
    keeps_copies: bool,
) -> SegmentedView:
    """Return the view as one recomputation of its whole text over the columns of its relations that it may name."""
    relations = look_up_all(statement, catalog)
    columns = types(whole, relations)
    segments = []
    copies = {}
    for relation in relations.values():
        copy = _copy(relation, statement, is_kept=keeps_copies)
        segments.append(copy)
        copies[relation.name] = copy.name
    gaps = {name: f"{{{copy}}}" for name, copy in copies.items()}
    text = renamed_sql(exact_sums_on_spark(whole, relations, types), gaps, name=statement.name, path=statement.path)
    for gap in gaps.values():
        text = text.replace(quoted(gap), gap)
    step = RecomputeStep(inputs=tuple(copies.values()), sql=text)
    named = SegmentName(name=statement.name)
    segments.append(Segment(relation=Relation(name=named, columns=columns), step=step, is_kept=True))
    reason = RecomputeReason(code=found.why.code, segment=named, what=str(found), remedy=found.why.remedy)
    return SegmentedView(
        name=statement.name,
        sql=statement.sql,
        segments=keep_needed(segments) if keeps_copies else tuple(segments),
        reasons=(reason,),
        path=statement.path,
    )


def _copy(relation: Relation, statement: Statement, *, is_kept: bool) -> Segment:
    """Return a copy of the columns that the text may name: in the order of their names, or all if it has a star."""
    trees = [text.tree for text in (statement, *statement.lower)]
    asked = {found.name.lower() for tree in trees for found in tree.find_all(exp.Identifier)}
    every = any(
        not isinstance(star.parent, exp.Count) or star.parent.expressions  # COUNT(*, x) counts all columns
        for tree in trees
        for star in tree.find_all(exp.Star)
    )
    usable = [one for one in relation.columns if one.name.lower() not in RESERVED_NAMES]
    by_name = usable if every else sorted(usable, key=lambda one: one.name)
    chosen = [one for one in by_name if every or one.name.lower() in asked] or usable[:1]
    values = [(one.name, column("o0", one.name)) for one in chosen]
    step = JoinStep(view=build_join(statement.name, {"o0": relation}, (), values))
    held = Relation(name=segment_name(step, chosen), columns=tuple(chosen))
    return Segment(relation=held, step=step, is_kept=is_kept)
