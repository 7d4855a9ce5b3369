"""Paper 002 for this warehouse: what each kind of maintenance would cost a view, predicted and measured.

Predicted by the corrected formulas, from the rows, widths, distinct values and selections of its relations as they are
now; measured by replaying its recent batches (`kind_replay`). Relations are read whole for it, many rows into files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from pyspark.sql import SparkSession

from headwater.advisor.analysis import KindCost, MeasuredCost, ViewAnalysis
from headwater.advisor.kind_replay import Batch, KindReplay, byte_count, copy_of
from headwater.advisor.kinds import corrected, indexed
from headwater.advisor.kinds.estimate import Size, estimate
from headwater.advisor.kinds.parameters import MaintenanceKind, Parameters
from headwater.deltas.extent import Content, Extent, all_rows
from headwater.deltas.lookup import RowRequest, look_up
from headwater.deltas.stored_bag import Bag, BagLookup, BagRequest
from headwater.engine.batch.join_batch import base_changes
from headwater.engine.service.wait_until_followed import MaintainersLog
from headwater.engine.state.accepted_log import AcceptedLog, sized_changes
from headwater.engine.state.relation_lookup import RelationLookup, Snapshots
from headwater.engine.state.replica_reader import ReplicaReader, stored_replica
from headwater.engine.state.runner import Runner
from headwater.engine.state.tick_lookup import RebasedLookup
from headwater.engine.state.truncation import truncated_at
from headwater.errors import SourceUnavailable
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import Maintenance
from headwater.model.memory_budget import MemoryBudget
from headwater.model.position import Tick
from headwater.model.project import Reading
from headwater.model.relation import RelationName
from headwater.project.resolve import ResolvedProject, ResolvedView
from headwater.spark.types import SelectTypes
from headwater.storage.object_store import store_at
from headwater.views.compile.compile_view import compile_view
from headwater.views.steps.segments import SegmentedView
from headwater.warehouse.folders import passing_name, replica_folder
from headwater.warehouse.query import Warehouse
from headwater.warehouse.replica import Replica


def needed_columns(
    forms: Mapping[bool, SegmentedView], resolved: ResolvedProject
) -> dict[RelationName, tuple[str, ...]]:
    """Return the relations of a view with the columns that some form of it needs."""
    needed: dict[RelationName, set[str]] = {}
    for form in forms.values():
        for name, columns in form.relations.items():
            needed.setdefault(name, set()).update(columns)
    return {
        name: tuple(column for column in resolved.relations[name].column_names if column in columns)
        for name, columns in needed.items()
    }


def selected_shares(form: SegmentedView, rows: Mapping[RelationName, Bag]) -> Iterator[float]:
    """Yield for each occurrence the share of its rows that pass its selections."""
    for join in form.joins:
        for occurrence in join.occurrences:
            bag = rows.get(occurrence.relation.name)
            if bag is not None and bag.most:
                yield len(bag.selected(Extent.of(join.selections[occurrence.alias]))) / len(bag)


def partners(form: SegmentedView, rows: Mapping[RelationName, Bag]) -> Iterator[float]:
    """Yield for each way along an equality how many rows there are at its end for each value there."""
    for join in form.joins:
        for edge in join.edges:
            ends = ((edge.left, [own for own, _ in edge.pairs]), (edge.right, [own for _, own in edge.pairs]))
            for alias, columns in ends:
                bag = rows.get(join.occurrence(alias).relation.name)
                if bag is not None and bag.most:
                    values = bag.known(tuple(columns))
                    distinct = len(values.groups(tuple(columns)))
                    yield len(values) / distinct if distinct else 0.0


BATCHES = 3
"""How many of a view's newest batches are replayed."""
_SAMPLE_ROWS = 10_000
KINDS: tuple[tuple[MaintenanceKind | None, Maintenance], ...] = (
    (MaintenanceKind.SMR, Maintenance.RECOMPUTE_SELF),
    (MaintenanceKind.NSMR, Maintenance.RECOMPUTE_PROBE),
    (MaintenanceKind.SMIM, Maintenance.SELF),
    (MaintenanceKind.NSMIM, Maintenance.PROBE),
    (None, Maintenance.RUNTIME),
)


def analyze_view(spark: SparkSession, resolved: ResolvedProject, name: str) -> ViewAnalysis:
    """Return what each kind of maintenance costs a view. No table of the warehouse is changed."""
    warehouse = Warehouse.open(resolved.project.warehouse)
    following = MaintainersLog(resolved=resolved, warehouse=warehouse)
    scratch = f"{warehouse.path}/{passing_name(datetime.now(UTC))}"
    runner = Runner(spark=spark, held_rows=resolved.project.settings.batch.held_rows, scratch=scratch)
    try:
        with Snapshots(resolved.sources, resolved.relations, following, runner=runner) as snapshots:
            found = _Analysis(
                spark=spark,
                resolved=resolved,
                warehouse=warehouse,
                snapshots=snapshots,
                resolved_view=resolved.views[name],
                runner=runner,
            ).run()
            if snapshots.are_valid():
                return found
    finally:
        store_at(scratch).delete()
    raise SourceUnavailable(
        "a source restarted, or rewrote a table, while it was asked", code="HW-533", hint="try again"
    )


def kind_in_use(resolved_view: ResolvedView) -> Maintenance:
    """Return the kind by which a view is kept. Where some relations are copied and others are not, it asks."""
    if resolved_view.maintenance is not None:
        return resolved_view.maintenance
    return Maintenance.PROBE if Reading.PROBE in resolved_view.readings.values() else Maintenance.SELF


@dataclass(slots=True, kw_only=True)
class _Analysis:
    spark: SparkSession
    resolved: ResolvedProject
    warehouse: Warehouse
    snapshots: Snapshots
    resolved_view: ResolvedView
    runner: Runner

    def run(self) -> ViewAnalysis:
        forms = {recomputed: self._form(recomputed=recomputed) for recomputed in (False, True)}
        log = self._open()
        batches = tuple(self._batches())
        lo = batches[0][0] if batches else self.warehouse.frontier(self._name)
        rows = {
            name: self._rows(name, columns, log, lo) for name, columns in needed_columns(forms, self.resolved).items()
        }
        copies = {name: copy_of(self.runner, self.resolved.relations[name], bag, lo) for name, bag in rows.items()}
        try:
            measured = self._measured(forms, batches, log, rows, copies)
        finally:
            for copy in copies.values():
                copy.release()
        return self._analysis(forms[False], batches, log, rows, measured)

    @property
    def _name(self) -> str:
        return self.resolved_view.view.name

    def _form(self, *, recomputed: bool) -> SegmentedView:
        """Return the view as it is computed if it is recomputed, or if it is not."""
        view, chosen = self.resolved_view.view, self.resolved_view.maintenance
        if recomputed == (chosen is not None and chosen.recomputes):
            return view
        types = SelectTypes(spark=self.spark, view=view.name, path=view.path).columns
        return compile_view(
            view.name,
            view.sql,
            self.resolved.relations,
            types,
            path=view.path,
            lower=view.lower,
            recomputed=recomputed,
        )

    def _open(self) -> AcceptedLog[Bag]:
        """Open the sources of the view, and the log that knows what they show."""
        names = {relation.source for relation in self.resolved_view.view.relations}
        away = sorted(self.snapshots.open(sorted(names)))
        if away:
            raise SourceUnavailable(
                f'source "{away[0]}" does not answer',
                code="HW-541",
                detail="what it costs to ask it cannot be measured",
                hint="try again when it is back",
            )
        self.warehouse.log.refresh()
        log = AcceptedLog(self.warehouse.log, {}, sized_changes(self.warehouse.log, self.spark, self.runner.held_rows))
        for name in names:
            log.settle(name, self.snapshots.sight(name))
        return log

    def _batches(self) -> Iterator[Batch]:
        """Yield the view's newest batches that changed something and can be replayed, oldest first."""
        commits = self.warehouse.commits.read()
        birth = self.warehouse.view(self._name).birth
        ends = sorted({commit.record.frontiers.get(self._name, birth) for commit in commits} | {birth})
        spans = [(lo, hi) for lo, hi in pairwise(ends) if lo >= birth]
        yield from [span for span in spans if self._can_replay(span)][-BATCHES:]

    def _can_replay(self, span: Batch) -> bool:
        log, table = self.warehouse.log, self.warehouse.kept_table(self._name)
        if span[0] < max(log.horizon(), table.horizon()):
            return False
        relations = self.resolved_view.view.relations
        if any(truncated_at(log, name, span[0], log.last_tick) is not None for name in relations):
            return False
        return any(any(log.parts(name, (), *span)) for name in relations)

    def _rows(self, name: RelationName, columns: tuple[str, ...], log: AcceptedLog[Bag], tick: Tick) -> Bag:
        """Return all rows of a relation at a tick: from its replica if there is one with these columns of all rows."""
        relation, entry = self.resolved.relations[name], self.warehouse.catalog().replicas.get(name)
        replicas: dict[RelationName, BagLookup] = {}
        if entry is not None and entry.content.covers(Content(columns=columns)):
            folder = replica_folder(self.warehouse.path, name, entry.generation)
            replicas[name] = stored_replica(self.spark, relation, entry, Replica.open(folder), self.runner.held_rows)
        request: BagRequest = RowRequest(relation=name, wanted=columns)
        lookup = RelationLookup(relations=self.resolved.relations, replicas=replicas, snapshots=self.snapshots)
        return self.runner.settled(look_up(RebasedLookup(others=lookup, log=log, tick=tick), request).rows)

    def _measured(
        self,
        forms: Mapping[bool, SegmentedView],
        batches: Sequence[Batch],
        log: AcceptedLog[Bag],
        rows: Mapping[RelationName, Bag],
        copies: Mapping[RelationName, ReplicaReader],
    ) -> dict[Maintenance, MeasuredCost | None]:
        if not batches:
            return {}
        replay = KindReplay(
            spark=self.spark,
            relations=self.resolved.relations,
            table=self.warehouse.kept_table(self._name),
            auxiliary=self.warehouse.kept_segments(self._name),
            guarantee=self.resolved_view.guarantee,
            batches=batches,
            log=log,
            snapshots=self.snapshots,
            runner=self.runner,
            copies=copies,
            view_bytes=self._view_size().byte_count,
            copy_bytes=sum(byte_count(bag) for bag in rows.values()),
            settings=self.resolved.project.settings.batch,
            budget=MemoryBudget.of(self.resolved.project.memory_bytes),
        )
        return {kind: replay.measure(kind, forms[kind.recomputes]) for _, kind in KINDS}

    def _analysis(
        self,
        form: SegmentedView,
        batches: Sequence[Batch],
        log: AcceptedLog[Bag],
        rows: Mapping[RelationName, Bag],
        measured: Mapping[Maintenance, MeasuredCost | None],
    ) -> ViewAnalysis:
        changed = sum(
            len(bag)
            for span in batches
            for bag in base_changes(all_rows(self.resolved_view.view.relations), Guarantee.COMPLETE, span, log).values()
        )
        asking = measured.get(Maintenance.PROBE)
        parameters = estimate(
            view=self._view_size(),
            relations=[Size(rows=len(bag), byte_count=byte_count(bag)) for bag in rows.values()],
            occurrence_count=sum(1 for join in form.joins for one in join.occurrences if one.relation.name in rows),
            partners=list(partners(form, rows)),
            selected=list(selected_shares(form, rows)),
            interfering=0.0 if asking is None else self._rate(batches) * asking.seconds / len(batches),
            update_rows=changed / len(batches) if batches else 0.0,
            update_count=len(batches),
        )
        return ViewAnalysis(
            view=self._name,
            batch_count=len(batches),
            tick_count=sum(hi - lo for lo, hi in batches),
            changed_rows=changed,
            parameters=parameters,
            kinds=tuple(self._cost(kind, how, parameters, measured) for kind, how in KINDS),
        )

    def _cost(
        self,
        kind: MaintenanceKind | None,
        how: Maintenance,
        of: Parameters,
        measured: Mapping[Maintenance, MeasuredCost | None],
    ) -> KindCost:
        found = measured.get(how)
        lacking = (
            "nothing is kept for it, since the view is recomputed" if measured else "no batch is in the change log"
        )
        return KindCost(
            kind="runtime" if kind is None else kind.name,
            maintenance=how.value,
            in_use=how is kind_in_use(self.resolved_view),
            space=None if kind is None else corrected.space(kind, of),
            predicted=None if kind is None else corrected.rows(kind, of),
            read_rows=None if kind is None else indexed.rows(kind, of),
            measured=found,
            because="" if found is not None else lacking,
        )

    def _view_size(self) -> Size:
        table, tick = self.warehouse.kept_table(self._name), self.warehouse.frontier(self._name)
        rows, sample = table.row_count(tick), table.state_dataframe(self.spark, tick).limit(_SAMPLE_ROWS).toArrow()
        return Size(rows=rows, byte_count=round(rows * sample.nbytes / sample.num_rows) if sample.num_rows else 0)

    def _rate(self, batches: Sequence[Batch]) -> float:
        """Return the transactions in a second while the batches' were committed."""
        found = [one.committed_at for _, one in self.warehouse.log.transactions(None, batches[0][0], batches[-1][1])]
        seconds = (max(found) - min(found)).total_seconds()
        return len(found) / seconds if seconds else 0.0
