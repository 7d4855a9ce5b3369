"""Paper 002 for this warehouse: what each kind of maintenance would cost a view, predicted and measured.

Predicted by the corrected formulas, from the rows, widths, distinct values and selections of its relations as they are
now; measured by replaying its recent batches (`kind_replay`). Relations are read whole into memory for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pyspark.sql import SparkSession

from headwater.advisor.kinds import corrected, indexed
from headwater.advisor.kinds.estimate import Size, estimate
from headwater.advisor.kinds.parameters import MaintenanceKind, Parameters
from headwater.deltas.content import Content, all_rows
from headwater.deltas.on_arrow import ArrowBag
from headwater.errors import SourceUnavailable
from headwater.guarantee import Guarantee
from headwater.keeping import Maintenance
from headwater.maintenance.questions import Ask, Probe
from headwater.maintenance.rebase import rebase
from headwater.position import Tick
from headwater.project import Reading
from headwater.relation import RelationName
from headwater.results.keeping import KindCost, MeasuredCost, ViewAnalysis
from headwater.runtime.accepted_log import AcceptedLog
from headwater.runtime.batch import base_changes
from headwater.runtime.join_statistics import needed_columns, partners, selected_shares
from headwater.runtime.kind_replay import Batch, Replay, byte_count, copy_of
from headwater.runtime.performer import Performer, Snapshots
from headwater.runtime.replica_reader import ReplicaReader, stored_replica
from headwater.runtime.spark_types import SelectTypes
from headwater.runtime.truncation import truncated_at
from headwater.runtime.understand import Understood, UnderstoodView
from headwater.runtime.wait_until_followed import MaintainersLog
from headwater.views.compile import compile_view
from headwater.views.segments import SegmentedView
from headwater.warehouse.folders import replica_folder
from headwater.warehouse.query import Warehouse
from headwater.warehouse.replica import Replica
from headwater.warehouse.row_count import row_count

BATCHES = 3
"""So many of a view's batches are replayed, the newest ones."""
_SAMPLE_ROWS = 10_000
KINDS: tuple[tuple[MaintenanceKind | None, Maintenance], ...] = (
    (MaintenanceKind.SMR, Maintenance.RECOMPUTE_SELF),
    (MaintenanceKind.NSMR, Maintenance.RECOMPUTE_PROBE),
    (MaintenanceKind.SMIM, Maintenance.SELF),
    (MaintenanceKind.NSMIM, Maintenance.PROBE),
    (None, Maintenance.RUNTIME),
)


def analyze_view(spark: SparkSession, understood: Understood, name: str) -> ViewAnalysis:
    """Return what each kind of maintenance costs a view; nothing of the warehouse is changed."""
    warehouse = Warehouse.open(str(understood.project.warehouse))
    following = MaintainersLog(understood=understood, warehouse=warehouse)
    with Snapshots(understood.sources, following) as snapshots:
        found = _Analysis(
            spark=spark, understood=understood, warehouse=warehouse, snapshots=snapshots, known=understood.views[name]
        ).run()
        if snapshots.are_valid():
            return found
    raise SourceUnavailable("a source restarted while it was asked", code="HW-533", hint="try again")


def kind_in_use(known: UnderstoodView) -> Maintenance:
    """Return the kind by which a view is kept; where some relations are copied and others are not, it asks."""
    if known.maintenance is not None:
        return known.maintenance
    return Maintenance.PROBE if Reading.PROBE in known.readings.values() else Maintenance.SELF


@dataclass(slots=True, kw_only=True)
class _Analysis:
    spark: SparkSession
    understood: Understood
    warehouse: Warehouse
    snapshots: Snapshots
    known: UnderstoodView

    def run(self) -> ViewAnalysis:
        forms = {recomputed: self._form(recomputed=recomputed) for recomputed in (False, True)}
        log = self._open()
        batches = tuple(self._batches())
        lo = batches[0][0] if batches else self.warehouse.frontier(self._name)
        rows = {
            name: self._rows(name, columns, log, lo) for name, columns in needed_columns(forms, self.understood).items()
        }
        copies = {name: copy_of(self.spark, self.understood.relations[name], bag, lo) for name, bag in rows.items()}
        try:
            measured = self._measured(forms, batches, log, rows, copies)
        finally:
            for copy in copies.values():
                copy.release()
        return self._analysis(forms[False], batches, log, rows, measured)

    @property
    def _name(self) -> str:
        return self.known.view.name

    def _form(self, *, recomputed: bool) -> SegmentedView:
        """Return the view as it is computed if it is recomputed, or if it is not."""
        view, chosen = self.known.view, self.known.maintenance
        if recomputed == (chosen is not None and chosen.recomputes):
            return view
        types = SelectTypes(spark=self.spark, view=view.name, path=view.path).columns
        return compile_view(
            view.name,
            view.sql,
            self.understood.relations,
            types,
            path=view.path,
            lower=view.lower,
            recomputed=recomputed,
        )

    def _open(self) -> AcceptedLog:
        """Open the sources of the view, and the log that knows what they show."""
        names = {relation.source for relation in self.known.view.relations}
        away = sorted(self.snapshots.open(sorted(names)))
        if away:
            raise SourceUnavailable(
                f'source "{away[0]}" does not answer',
                code="HW-541",
                detail="what it costs to ask it cannot be measured",
                hint="try again when it is back",
            )
        self.warehouse.log.refresh()
        log = AcceptedLog(self.warehouse.log, {})
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
        relations = self.known.view.relations
        if any(truncated_at(log, name, span[0], log.last_tick) is not None for name in relations):
            return False
        return any(log.rows(name, columns[:1], *span).num_rows for name, columns in relations.items())

    def _rows(self, name: RelationName, columns: tuple[str, ...], log: AcceptedLog, tick: Tick) -> ArrowBag:
        """Return all rows of a relation at a tick: from its replica if there is one with these columns of all rows."""
        relation, entry = self.understood.relations[name], self.warehouse.catalog().replicas.get(name)
        replicas: dict[RelationName, ReplicaReader] = {}
        if entry is not None and entry.content.covers(Content(columns=columns)):
            folder = replica_folder(self.warehouse.path, name, entry.generation)
            replicas[name] = stored_replica(self.spark, relation, entry, Replica.open(folder))
        probe: Probe[Any] = Probe(relation=name, wanted=columns, columns=(), keys=None)
        [answer] = Performer(self.understood.relations, replicas, self.snapshots)(Ask(probes=(probe,)))
        return rebase(probe, answer, log, tick)

    def _measured(
        self,
        forms: Mapping[bool, SegmentedView],
        batches: Sequence[Batch],
        log: AcceptedLog,
        rows: Mapping[RelationName, ArrowBag],
        copies: Mapping[RelationName, ReplicaReader],
    ) -> dict[Maintenance, MeasuredCost | None]:
        if not batches:
            return {}
        replay = Replay(
            spark=self.spark,
            relations=self.understood.relations,
            table=self.warehouse.kept_table(self._name),
            hidden=self.warehouse.kept_segments(self._name),
            guarantee=self.known.guarantee,
            batches=batches,
            log=log,
            snapshots=self.snapshots,
            copies=copies,
            view_bytes=self._view_size().byte_count,
            copy_bytes=sum(byte_count(bag) for bag in rows.values()),
        )
        return {kind: replay.measure(kind, forms[kind.recomputes]) for _, kind in KINDS}

    def _analysis(
        self,
        form: SegmentedView,
        batches: Sequence[Batch],
        log: AcceptedLog,
        rows: Mapping[RelationName, ArrowBag],
        measured: Mapping[Maintenance, MeasuredCost | None],
    ) -> ViewAnalysis:
        changed = sum(
            len(bag)
            for span in batches
            for bag in base_changes(all_rows(self.known.view.relations), Guarantee.COMPLETE, span, log).values()
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
            in_use=how is kind_in_use(self.known),
            space=None if kind is None else corrected.space(kind, of),
            predicted=None if kind is None else corrected.rows(kind, of),
            read_rows=None if kind is None else indexed.rows(kind, of),
            measured=found,
            because="" if found is not None else lacking,
        )

    def _view_size(self) -> Size:
        table, tick = self.warehouse.kept_table(self._name), self.warehouse.frontier(self._name)
        rows, sample = row_count(table, tick), table.state_dataframe(self.spark, tick).limit(_SAMPLE_ROWS).toArrow()
        return Size(rows=rows, byte_count=round(rows * sample.nbytes / sample.num_rows) if sample.num_rows else 0)

    def _rate(self, batches: Sequence[Batch]) -> float:
        """Return the transactions in a second while the batches' were committed."""
        found = [one.committed_at for _, one in self.warehouse.log.transactions(None, batches[0][0], batches[-1][1])]
        seconds = (max(found) - min(found)).total_seconds()
        return len(found) / seconds if seconds else 0.0
