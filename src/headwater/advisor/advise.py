"""`advise`: which auxiliary tables are worth keeping for a view, from what is measured of it and of its sources.

Replicas, group tables, lineage views and split lineage tables are chosen; some group tables have to be there.
Views that are advised together pay once for a replica that several of them read (`together`). Where today is worse than
the best choice by less than measurements differ, today stays.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from headwater.advisor.advice import Advice, AdviceResult, AdvisedTable, Alternative, MeasuredRelation, Unadvised
from headwater.advisor.algorithms.choose import ALGORITHMS, naive
from headwater.advisor.as_maintained import as_maintained
from headwater.advisor.candidates import NOTHING, Auxiliary, AuxiliaryKind, Kept, search_space
from headwater.advisor.cost_model import CostModel
from headwater.advisor.from_segments import Measured, structure_of
from headwater.advisor.measure_view import TraceRate, measure_sources, measure_view, tracing_rate
from headwater.advisor.together import choose_together, cost_together, is_worth_it, paid_by_others
from headwater.errors import InvalidProject, UnsupportedView, did_you_mean
from headwater.model.project import Reading
from headwater.model.relation import RelationName
from headwater.project.resolve import ResolvedProject
from headwater.sources.measure import SourceMeasure
from headwater.views.steps.keep_lineage import joins_with_lineage, without_lineage
from headwater.views.steps.segments import SegmentedView
from headwater.warehouse.query import Warehouse


def advise_views(
    resolved: ResolvedProject, views: tuple[str, ...], algorithm: str, per_hour: float | None
) -> AdviceResult:
    """Return advice on views. A view with recomputed parts has no choice, and says so."""
    if algorithm not in ALGORITHMS:
        raise InvalidProject(
            f'there is no algorithm "{algorithm}" that gives advice',
            code="HW-138",
            detail=f"there are {', '.join(ALGORITHMS)}",
            hint=did_you_mean(algorithm, tuple(ALGORITHMS), otherwise="leave it away: `exact` finds the cheapest"),
        )
    warehouse = Warehouse.open(resolved.project.warehouse)
    sources = measure_sources(resolved)
    known: dict[str, _Known] = {}
    refused: list[Unadvised] = []
    for name in views:
        try:
            known[name] = _known(resolved, warehouse, name, sources, per_hour)
        except UnsupportedView as error:
            refused.append(Unadvised(view=name, reason=error.detail))
    structures = {name: one.model.structure for name, one in known.items()}
    chosen = choose_together(structures, ALGORITHMS[algorithm])
    today = {name: one.today for name, one in known.items()}
    cost_today = cost_together(structures, today)
    stays = algorithm not in _SAID and chosen.total <= cost_today and not is_worth_it(cost_today, chosen.total)
    kept = today if stays else chosen.kept
    given = tuple(_advice(name, one, algorithm, kept, chosen.priced_counts[name]) for name, one in known.items())
    return AdviceResult(views=given, unadvised=tuple(refused))


_SAID = ("naive", "none")
"""Algorithms that compare nothing: what they say is what is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What advice on a view rests on."""

    model: CostModel
    measured: Measured
    today: Kept
    readings: Mapping[RelationName, Reading]
    traced: TraceRate


def _known(
    resolved: ResolvedProject,
    warehouse: Warehouse,
    name: str,
    sources: Mapping[str, SourceMeasure],
    per_hour: float | None,
) -> _Known:
    resolved_view = resolved.views[name]
    if resolved_view.algorithm.run is not None:
        raise UnsupportedView(
            f'there is no choice of auxiliary tables for view "{name}"',
            code="HW-732",
            detail=f'its algorithm "{resolved_view.algorithm.name}" asks the sources, and keeps only the view',
            hint="remove `algorithm` from its settings to have a choice",
        )
    traced = tracing_rate(warehouse, name, per_hour)
    held = sys.maxsize  # rows of a replica are looked up without a Spark job, however many it has
    measured = measure_view(warehouse, without_lineage(resolved_view.view), sources, traced, held)
    model = cost_model(resolved_view.view, measured)
    readings = resolved_view.readings
    today = frozenset(_today(resolved_view.view, readings, search_space(model.structure).candidates))
    return _Known(model=model, measured=measured, today=today, readings=readings, traced=traced)


def _advice(name: str, known: _Known, algorithm: str, kept: Mapping[str, Kept], priced_count: int) -> Advice:
    """Return the advice on one view. Replicas that a view before it pays for cost it nothing."""
    structure = known.model.structure
    pricing = _Pricing(CostModel(structure, paid_by_others(name, kept)))
    return Advice(
        view=name,
        algorithm=algorithm,
        set_count=search_space(structure).size,
        priced_count=priced_count,
        recommended=pricing.alternative(kept[name]),
        today=pricing.alternative(known.today),
        nothing=pricing.alternative(NOTHING),
        everything=pricing.alternative(naive(known.model).kept),
        relations=tuple(_relations(known.measured, known.readings)),
        traces_per_hour=known.traced.per_hour,
        is_traced=known.traced.is_counted,
    )


def cost_model(view: SegmentedView, measured: Measured) -> CostModel:
    """Return what a view costs with which tables, whatever lineage it keeps today. `measured` is of it without."""
    plain = without_lineage(view)
    return CostModel(as_maintained(structure_of(plain, measured), plain))


def _today(
    view: SegmentedView, readings: Mapping[RelationName, Reading], candidates: Collection[Auxiliary]
) -> Iterator[Auxiliary]:
    """Yield what is kept for a view now, under the names that the candidates have."""
    for relation, reading in readings.items():
        if reading is Reading.REPLICA:
            yield Auxiliary(str(relation), AuxiliaryKind.REPLICA)
    plain = without_lineage(view)
    for segment in plain.segments:
        table = Auxiliary(str(segment.name), AuxiliaryKind.GROUP_TABLE)
        if segment.is_kept and table in candidates:
            yield table
    called = {
        segment.name: str(name)
        for name, segment in joins_with_lineage(plain).items()
        if Auxiliary(str(name), AuxiliaryKind.LINEAGE_VIEW) in candidates
    }
    for one in view.lineage:
        if one.is_whole_kept:
            yield Auxiliary(called[one.of], AuxiliaryKind.LINEAGE_VIEW)
        if one.split:
            yield Auxiliary(called[one.of], AuxiliaryKind.SPLIT_LINEAGE)


class _Pricing:
    """Sets of tables with their costs, and what each table saves."""

    def __init__(self, model: CostModel) -> None:
        self._model = model

    def alternative(self, kept: Kept) -> Alternative:
        cost = self._model.cost(kept)
        return Alternative(
            tables=tuple(self._table(one, kept) for one in sorted(kept, key=str)),
            maintaining=cost.maintaining,
            tracing=cost.tracing,
            stored_bytes=round(cost.stored_bytes),
        )

    def _table(self, table: Auxiliary, kept: Kept) -> AdvisedTable:
        return AdvisedTable(
            kind=table.kind,
            of=table.of.removeprefix("segments."),
            stored_bytes=round(self._model.stored_bytes(frozenset({table}))),
            saved=self._model.total(kept - {table}) - self._model.total(kept),
        )


def _relations(measured: Measured, readings: Mapping[RelationName, Reading]) -> Iterator[MeasuredRelation]:
    for name, statistics in measured.relations.items():
        yield MeasuredRelation(
            relation=str(name),
            reading=readings[name].value,
            rows=round(statistics.tuple_num),
            row_bytes=statistics.tuple_size,
            updates_per_hour=statistics.update_rate,
            rows_per_update=statistics.update_size,
            trip_milliseconds=statistics.source.trip_cost,
        )
