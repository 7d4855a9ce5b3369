"""Bring new views to life while the others go on: read what they need, choose a tick, compute them there.

    publish ──► follow ──► snapshot (sees all that the log does not hold) ──► chunks ──► tick t0 ──► rebase ──► view

What the warehouse already copies is taken from its replicas; the rest is read from its source, each relation in one
snapshot, in parallel, resumably: the columns and rows that views need, and of a replica that is widened only what it
lacks (`fill`). When everything is read and the log knows all that was seen, t0 is the log's last tick: the views are
computed there from their original SQL, compared with what their steps give (`whole_view`), and catch up from t0 like
any other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headwater.changelog.accept import Acceptor
from headwater.changelog.change_log import ChangeLog
from headwater.deltas.extent import Content, Remainder
from headwater.engine.bootstrap.born_rows import BornInputs, BornRows
from headwater.engine.bootstrap.corrections import Corrections, MissedTicks
from headwater.engine.bootstrap.kept_segments import BornTables
from headwater.engine.bootstrap.make_replica import filled, is_made_of_chunks, keep_chunks, make_replica
from headwater.engine.bootstrap.recompute import recompute, rows_at
from headwater.engine.bootstrap.staging import StagedRelation, forget_staged, stage_relation
from headwater.engine.bootstrap.task_reading import TaskReading, reading_by_tasks
from headwater.engine.bootstrap.whole_view import require_same_rows, require_same_types
from headwater.engine.state.auxiliary_table import AuxiliaryTable
from headwater.engine.state.replica_reader import ReplicaReader, contents
from headwater.errors import HeadwaterError, SourceUnavailable, UnsupportedView
from headwater.fail_points import reach
from headwater.model.memory_budget import MemoryBudget
from headwater.model.position import Tick
from headwater.model.relation import Relation, RelationName
from headwater.observe.events import Listener
from headwater.project.fill import Fill, Way, fill_whole
from headwater.project.resolve import ResolvedProject, ResolvedView
from headwater.sources.source import Snapshot, Source
from headwater.spark.view_errors import contradiction_error, is_contradiction, is_view_error, unborn_error
from headwater.views.steps.segment_names import shape
from headwater.warehouse.catalog import ViewEntry
from headwater.warehouse.folders import reserve_generation, staging_folder, view_folder
from headwater.warehouse.journal import Journal
from headwater.warehouse.kept_table import KeptTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A relation that must be read, and the columns and rows that are needed of it."""

    relation: Relation
    wanted: tuple[str, ...]
    rows: Remainder


@dataclass(frozen=True, slots=True, kw_only=True)
class NewView:
    """A view that was just computed at its birth tick."""

    resolved: ResolvedView
    entry: ViewEntry
    table: KeptTable
    segments: Mapping[RelationName, str]
    """The names of its auxiliary tables, by segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrapped:
    """What a bootstrap made: views at a tick, and copies of relations."""

    tick: Tick
    views: tuple[NewView, ...]
    failed: Mapping[str, HeadwaterError]
    """Views that have no state at the tick: their SQL divides by zero, a replica contradicts its change log, or their
    steps give other rows than their SQL."""
    replicas: tuple[ReplicaReader, ...]
    auxiliary: Mapping[str, AuxiliaryTable]
    """The auxiliary tables that were made, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """What is to be brought to life, and with what."""

    spark: SparkSession
    warehouse: str
    journal: Journal
    resolved: ResolvedProject
    views: tuple[str, ...]
    rebuilt: frozenset[str]
    copied: Mapping[RelationName, Fill]
    adopted: Mapping[RelationName, str]
    """Auxiliary tables that other views keep already, by segment. A view that needs one does not make it."""
    is_beside_views: bool
    """Whether other views are maintained meanwhile."""
    acceptor: Acceptor
    log: ChangeLog
    budget: MemoryBudget
    listener: Listener

    def run(self, in_use: Callable[[], Mapping[RelationName, ReplicaReader]]) -> Bootstrapped:
        """Read, choose the tick, compute. `in_use` returns the copies that are there already.

        It is asked again once all is read: a copy may have been replaced, and its files deleted, in such a long time.
        """
        settings = self.resolved.project.settings.bootstrap
        reads = self._reads(contents(in_use()))
        wishes = tuple(
            Wish(relation=self.resolved.relations[name], wanted=read.columns, rows=read.rows)
            for name, read in sorted(reads.items())
        )
        staged = self._stage(staging_folder(self.warehouse), wishes)
        tick, replicas = self.log.last_tick, in_use()
        corrections = self._corrections(staged, tick)
        frames = {name: rows_at(self.spark, one, corrections[name]) for name, one in staged.items()}
        counts = {name: one.row_count for name, one in staged.items()}
        made = {
            name: self._make(name, reads[name], staged[name], corrections[name], frames[name], replicas.get(name), tick)
            for name in self.copied
        }
        reach("replicas written")
        held = {**replicas, **made}
        inputs = BornInputs(
            spark=self.spark,
            log=self.log,
            tick=tick,
            replicas=held,
            read=frames,
            read_counts=counts,
            small_rows=settings.small_rows,
        )
        born = BornTables(
            spark=self.spark,
            warehouse=self.warehouse,
            journal=self.journal,
            tick=tick,
            adopted=self.adopted,
            settings=self.resolved.project.settings.batch,
            budget=self.budget,
        )
        at_once = min(settings.views_at_once, os.cpu_count() or 1)  # small ones one by one leave processors idle
        with ThreadPoolExecutor(at_once, thread_name_prefix="birth") as pool:
            found = dict(
                zip(self.views, pool.map(lambda name: self._bear(name, inputs, born), self.views), strict=True)
            )
        forget_staged(self.warehouse)
        return Bootstrapped(
            tick=tick,
            views=tuple(one for one in found.values() if isinstance(one, NewView)),
            failed={name: one for name, one in found.items() if isinstance(one, HeadwaterError)},
            replicas=tuple(made.values()),
            auxiliary=born.made,
        )

    def _stage(self, folder: str, wishes: tuple[Wish, ...]) -> dict[RelationName, StagedRelation]:
        """Read the wished relations, one snapshot per source, and wait until the log knows all that was seen."""
        settings = self.resolved.project.settings.bootstrap
        staged: dict[RelationName, StagedRelation] = {}
        for name in dict.fromkeys(wish.relation.name.source for wish in wishes):
            own = [wish for wish in wishes if wish.relation.name.source == name]
            source = self.resolved.sources[name]
            with (
                source.snapshot([wish.relation.name for wish in own], bootstrap=True) as snapshot,
                self._tasks(source, snapshot) as tasks,
            ):
                for wish in own:
                    staged[wish.relation.name] = stage_relation(
                        folder,
                        source,
                        snapshot,
                        wish.relation,
                        wish.wanted,
                        wish.rows,
                        self.listener,
                        settings,
                        tasks,
                    )
                with snapshot.reader() as last:  # it sees no less than all before it
                    positions = last.positions
                if not self.acceptor.wait_for(positions, settings.follow_wait_seconds) or not snapshot.is_valid(
                    self.acceptor
                ):
                    raise SourceUnavailable(
                        f'the log of source "{name}" cannot be followed to what its snapshot saw',
                        code="HW-532",
                        hint="the bootstrap goes on from the chunks it has when the source answers",
                    )
        return staged

    def _tasks(self, source: Source, snapshot: Snapshot) -> AbstractContextManager[TaskReading | None]:
        """Give what reads by tasks of Spark. While other views are maintained, a core is left to their batches."""
        spared = 1 if self.is_beside_views else 0
        project = self.resolved.project
        return reading_by_tasks(self.spark, project, source, snapshot, self.listener, spared_cores=spared)

    def _bear(self, name: str, inputs: BornInputs, born: BornTables) -> NewView | HeadwaterError:
        """Return a view at its birth, or why it has no state there."""
        try:
            return self._compute(name, inputs, born)
        except UnsupportedView as error:
            return error
        except Exception as error:  # what is not the view's own is raised again
            if not is_view_error(error):
                raise
            if is_contradiction(error):
                return contradiction_error(self.resolved.views[name].view.relations, born.tick)
            return unborn_error(name, error, born.tick)

    def _corrections(
        self, staged: Mapping[RelationName, StagedRelation], tick: Tick
    ) -> dict[RelationName, Corrections]:
        """Return by what each relation is brought to the tick. Where the log does not say, everything is read again."""
        missed, few = MissedTicks(log=self.log, tick=tick), self.resolved.project.settings.bootstrap.small_rows
        try:
            found = {name: Corrections.find(self.spark, one, missed, few) for name, one in staged.items()}
            for corrections in found.values():
                corrections.require_untruncated()
        except SourceUnavailable:  # a part of a tick was seen, or a TRUNCATE was not: those chunks are of no use
            forget_staged(self.warehouse)
            raise
        return found

    def _reads(self, held: Mapping[RelationName, Content]) -> dict[RelationName, Fill]:
        """Return what is read of relations: for replicas, and for views that need what no replica holds."""
        there = {**held, **{name: fill.content for name, fill in self.copied.items()}}
        needed = [needed for view in self.views for needed in self.resolved.views[view].needs.items()]
        lacking = [(name, need) for name, need in needed if name not in there or not there[name].covers(need)]
        copied = [(name, fill.content) for name, fill in self.copied.items() if name in dict(lacking)]
        read = self.resolved.together([*lacking, *copied])
        return {**self.copied, **{name: fill_whole(content) for name, content in read.items()}}

    def _make(
        self,
        name: RelationName,
        read: Fill,
        staged: StagedRelation,
        corrections: Corrections,
        rows: DataFrame,
        old: ReplicaReader | None,
        tick: Tick,
    ) -> ReplicaReader:
        """Make the replica of a relation from what was read, and what there was before."""
        relation, content = self.resolved.relations[name], self.copied[name].content
        settings = self.resolved.project.settings
        small = settings.bootstrap.small_rows
        is_small = staged.row_count + (0 if old is None else old.rows.row_count) <= small
        try:
            if not is_small and self._is_kept(read, staged, content):
                return keep_chunks(
                    self.spark, self.warehouse, content, staged, corrections, tick, self.budget, settings.batch
                )
            held = None if old is None else old.plain_at(self.log, tick)
            plain = filled(replace(read, content=content), rows, held, relation)
            return make_replica(
                self.spark,
                self.warehouse,
                relation,
                content,
                plain,
                tick,
                small if is_small else 0,
                self.budget,
                settings.batch,
            )
        except PySparkException as error:
            if not is_contradiction(error):
                raise
            raise contradiction_error([name], tick) from None

    def _is_kept(self, read: Fill, staged: StagedRelation, content: Content) -> bool:
        """Tell whether the files that were read can become the replica's: no new view reads them beside it."""
        name = staged.relation.name
        needs = [self.resolved.views[view].needs for view in self.views]
        suffices = all(content.covers(need[name]) for need in needs if name in need)
        return suffices and read.way is Way.WHOLE and is_made_of_chunks(staged, content)

    def _compute(self, name: str, born_inputs: BornInputs, born: BornTables) -> NewView:
        resolved, tick = self.resolved.views[name], born.tick
        inputs = born_inputs.of_view(resolved.needs)
        generation = reserve_generation(view_folder(self.warehouse, name, 0))
        folder = view_folder(self.warehouse, name, generation)
        with born.tables_for(resolved, inputs, is_rebuilt=name in self.rebuilt) as made:
            table = KeptTable.create(folder, self.journal, resolved.schema, tick)
            computed = recompute(inputs.spark, resolved.view, resolved.view.whole, inputs.plain)
            by_text = BornRows.of_frame(computed, inputs.few)
            by_text.write(table.checkpoint, tick)
            if resolved.is_compared_at_birth:
                require_same_types(resolved.view, computed, made.rows)
                by_steps = BornRows.of_frame(made.rows, inputs.few if by_text.few is not None else 0)
                if not by_text.are_surely(by_steps):
                    shown = table.state_dataframe(inputs.spark, tick)
                    require_same_rows(resolved.view, shown, made.rows, tick)
        entry = ViewEntry(
            name=name,
            generation=generation,
            sql=resolved.view.sql,
            birth=tick,
            guarantee=resolved.guarantee.value,
            schema=tuple((field.name, str(field.type)) for field in resolved.schema),
            segments=tuple(made.tables.values()),
            shape=shape(resolved.view),
            lower=resolved.view.lower_texts,
            completed=resolved.view.completed,
        )
        return NewView(resolved=resolved, entry=entry, table=table, segments=made.tables)
