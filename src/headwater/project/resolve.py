"""From what a project says to what is meant: its relations described by their sources, its views declared and typed.

Nothing is changed anywhere. Every mistake a project can hold is found here, before anything is done, and refuses the
project. A view over which Headwater itself fails is left out, and told: the others can be maintained.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, reduce

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from headwater.deltas.extent import Content, Extent
from headwater.errors import ErrorList, HeadwaterError, InvalidProject
from headwater.maintenance.published.algorithms import DescribedAlgorithm
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import Continuous, Maintenance, Refresh
from headwater.model.memory_budget import MemoryBudget
from headwater.model.project import VIEWS_FOLDER, IdColumn, PreparedId, Project, Reading, ViewFile
from headwater.model.relation import DEFAULT_SCHEMA, Column, ColumnUse, Relation, RelationName
from headwater.project.choose_algorithm import check_algorithm, chosen_algorithm, is_recomputed, view_guarantee
from headwater.project.choose_reading import check_keeping, require_copied, view_readings
from headwater.project.global_sources import with_global_transactions
from headwater.project.warnings import missing_indexes, untold_transactions, unused_settings
from headwater.sources import registry
from headwater.sources.source import Inspection, Source, SourceSettings, missing_relation
from headwater.spark.types import SelectTypes
from headwater.spark.view_errors import is_view_error, not_understood
from headwater.views.compile.compile_view import compile_view
from headwater.views.compile.reasons import whole_inputs
from headwater.views.steps.group_tables import keep_group_tables
from headwater.views.steps.join import JoinView
from headwater.views.steps.keep_lineage import keep_lineage
from headwater.views.steps.needed_content import needed_content
from headwater.views.steps.segments import SegmentedView
from headwater.views.text.declaration import relations_named
from headwater.views.text.upstream_views import ViewText, views_below
from headwater.warehouse.source_memory import SourceFiles, SourceMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedView:
    """A view with the types of its columns, the guarantee it was promised, and how and when it is kept."""

    view: SegmentedView
    schema: pa.Schema
    guarantee: Guarantee
    algorithm: DescribedAlgorithm
    readings: Mapping[RelationName, Reading]
    """How it reads each of its relations."""
    needs: Mapping[RelationName, Content]
    """What it needs of each of its relations."""
    maintenance: Maintenance | None
    refresh: Refresh
    is_compared_at_birth: bool
    """Whether it is computed by its SQL and by its steps when it is born, and compared."""

    @property
    def join(self) -> JoinView:
        """The view as one join of relations: nothing else can be given to a published algorithm."""
        join = self.view.only_join
        assert join is not None, "a view of a published algorithm is one join"
        return join

    @property
    def shares(self) -> bool:
        """Whether its segments change as those of other views do that mean the same: tick by tick, in any batch."""
        is_told_by_tick = self.guarantee is Guarantee.COMPLETE and not is_recomputed(self.view)
        return is_told_by_tick and isinstance(self.refresh, Continuous)

    def asks(self, replicas: Mapping[RelationName, Content]) -> tuple[RelationName, ...]:
        """Return the relations whose sources it has to ask, given what the replicas hold that are there."""
        return tuple(
            name
            for name, needed in self.needs.items()
            if self.readings[name] is Reading.PROBE or name not in replicas or not replicas[name].covers(needed)
        )

    @property
    def is_recomputed_per_tick(self) -> bool:
        """Whether some part is computed from whole inputs, and at every tick that changes one of them."""
        return self.guarantee is Guarantee.COMPLETE and is_recomputed(self.view)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedProject:
    """A project, understood."""

    project: Project
    sources: Mapping[str, Source]
    inspections: Mapping[str, Inspection]
    relations: Mapping[RelationName, Relation]
    views: Mapping[str, ResolvedView]
    warnings: tuple[str, ...]
    failed: Mapping[str, HeadwaterError] = field(default_factory=dict)
    """The views over which Headwater itself failed; the others can be maintained."""

    def replicated(self) -> Mapping[RelationName, Content]:
        """Return the relations that are kept as replicas, each with what views need of it."""
        return self.together(
            (name, content)
            for view in self.views.values()
            for name, content in view.needs.items()
            if view.readings[name] is Reading.REPLICA
        )

    def together(self, contents: Iterable[tuple[RelationName, Content]]) -> dict[RelationName, Content]:
        """Return what is needed of each relation, by one or another."""
        needed: dict[RelationName, list[Content]] = {}
        for name, content in contents:
            needed.setdefault(name, []).append(content)
        return {
            name: Content(
                columns=self.relations[name].in_order(column for one in contents for column in one.columns),
                rows=reduce(Extent.plus, (one.rows for one in contents)),
            )
            for name, contents in needed.items()
        }

    def require_rights(self) -> None:
        """Refuse the sources that still need their owners, all of them."""
        errors = ErrorList()
        for name, inspection in self.inspections.items():
            with errors.gathered():
                inspection.require_rights(name)
        errors.raise_all()

    def followed(self, source: str) -> tuple[Relation, ...]:
        """Return the relations of a source that some view reads."""
        return tuple(relation for name, relation in sorted(self.relations.items()) if name.source == source)

    def followed_names(self, source: str) -> tuple[RelationName, ...]:
        """Return their names."""
        return tuple(relation.name for relation in self.followed(source))


def connect_sources(project: Project) -> dict[str, Source]:
    """Return the project's sources. Nothing is connected yet."""
    return {source.name: connect_source(project, source.name) for source in project.sources}


def connect_source(project: Project, name: str) -> Source:
    """Return one of the project's sources. Nothing is connected yet."""
    return registry.connect(_settings(project, name))


def _settings(project: Project, name: str) -> SourceSettings:
    parts = project.global_transactions
    prepared = parts.sources if parts is not None and isinstance(parts.ids, PreparedId) else ()
    source = project.source(name)
    return SourceSettings(
        name=name,
        url=partial(source.url, os.environ),
        project=project.name,
        probe_timeout_seconds=source.statement_timeout_seconds,
        connection_limit=source.probe_connections,
        tells_prepared=name in prepared,
        memory=SourceMemory(project.warehouse, name),
        files=SourceFiles(project.warehouse, name),
        project_settings=project.settings,
        spill_bytes=MemoryBudget.of(project.memory_bytes).spill_bytes(len(project.sources)),
        declared_in=source.declared_in,
        options=source.options,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """The views of a project as far as their texts tell: what each is built on, and the relations that it reads."""

    lower: Mapping[str, tuple[ViewText, ...]]
    relations: Mapping[str, tuple[RelationName, ...]]

    def of_source(self, source: str) -> list[RelationName]:
        """Return the relations of a source that some view reads."""
        return sorted({name for names in self.relations.values() for name in names if name.source == source})


def _named(project: Project, errors: ErrorList, failed: dict[str, HeadwaterError], only: str | None = None) -> _Named:
    """Read the texts of views. What is wrong with one is an error, and the view is left out."""
    texts = {file.name: ViewText(name=file.name, sql=file.sql, path=file.path_text) for file in project.views}
    lower: dict[str, tuple[ViewText, ...]] = {}
    relations: dict[str, tuple[RelationName, ...]] = {}
    for name, text in texts.items():
        if only in (None, name):
            with errors.gathered(), _left_out(name, failed):
                below = views_below(name, texts)
                found = relations_named(text.sql, name=name, path=text.path, lower=below)
                for relation in found:
                    project.source(relation.source)
                lower[name], relations[name] = below, found
    return _Named(lower=lower, relations=relations)


def require_addresses(project: Project) -> None:
    """Refuse a project that does not say where a source is that views read. Nothing is connected."""
    named = _named(project, ErrorList(), {})
    for source in project.sources:
        if named.of_source(source.name):
            registry.require_kind(_settings(project, source.name))


def inspect_source(project: Project, name: str) -> Inspection:
    """Return what a source says of the relations that views read, and what it still needs. Needs no Spark."""
    errors = ErrorList()
    project.source(name)
    named = _named(project, errors, {})
    errors.raise_all()
    return connect_source(project, name).inspect(named.of_source(name))


Connect = Callable[[Project, str], Source]
"""Returns a source of a project by its name; nothing is connected yet."""


def resolve_project(
    project: Project, spark: SparkSession, only: str | None = None, connect: Connect = connect_source
) -> ResolvedProject:
    """Ask the sources about the relations that views name, then declare every view and let Spark type it.

    All mistakes are reported at once: those of views, and obstacles at sources.

    With `only`, just this view is resolved, to answer a question; nothing can be maintained by that.
    """
    if not project.views:
        raise InvalidProject(
            f'the project "{project.name}" has no views',
            code="HW-160",
            detail=f'"{project.folder / VIEWS_FOLDER}" holds no .sql file',
            hint=f"write {VIEWS_FOLDER}/NAME.sql with one SELECT in it",
        )
    errors = ErrorList()
    failed: dict[str, HeadwaterError] = {}
    named = _named(project, errors, failed, only)
    sources: dict[str, Source] = {}
    inspections: dict[str, Inspection] = {}
    for name in (source.name for source in project.sources if named.of_source(source.name)):
        with errors.gathered():
            sources[name] = connect(project, name)
            misnamed = dict(_default_schema_named(named.of_source(name), sources[name].default_schema))
            errors.add(*misnamed.values())
            inspections[name] = sources[name].inspect([one for one in named.of_source(name) if one not in misnamed])
            errors.add(*inspections[name].refusals)
    catalog = {relation.name: relation for inspection in inspections.values() for relation in inspection.relations}
    found: dict[str, ResolvedView] = {}
    files = [file for file in project.views if file.name in named.lower]
    for file in sorted(files, key=lambda file: len(named.lower[file.name])):
        lower = named.lower[file.name]  # a mistake in a view is reported for that view, not for one that reads it
        is_whole = only is not None or all(text.name in found for text in lower)
        if is_whole and catalog.keys() >= set(named.relations[file.name]):
            with errors.gathered(), _left_out(file.name, failed):
                read = tuple(catalog[name] for name in named.relations[file.name])
                view = _resolve_view(file, lower, read, spark, project)
                require_copied(file.name, view.readings, sources)
                found[file.name] = view
        elif below := [text.name for text in lower if text.name in failed]:
            failed[file.name] = failed[below[0]]
    if only in failed:
        raise failed[only]
    views = {file.name: found[file.name] for file in files if file.name in found}
    resolved = ResolvedProject(
        project=project,
        sources=sources,
        inspections=inspections,
        relations=catalog,
        views=views,
        warnings=tuple(
            dict.fromkeys(
                [
                    *(unused_settings(project, catalog) if only is None else ()),
                    *_warnings(inspections.values(), views.values(), sources),
                ]
            )
        ),
        failed=failed,
    )
    if errors.found:
        with errors.gathered():
            resolved.require_rights()
    errors.raise_all()
    return with_global_transactions(resolved)


def _default_schema_named(names: Iterable[RelationName], schema: str) -> Iterator[tuple[RelationName, HeadwaterError]]:
    """Yield relations that are named with their source's default schema, each with the error that says so."""
    for name in names:
        if name.schema == schema != DEFAULT_SCHEMA:
            yield name, missing_relation(name, f'"{schema}" is its default schema: write {name.source}.{name.name}')


@contextmanager
def _left_out(view: str, failed: dict[str, HeadwaterError]) -> Iterator[None]:
    """Record that Headwater failed to compile a view, so that the others can go on. An author's mistake is raised."""
    try:
        yield
    except Exception as error:  # what is not the view's own is raised again
        if not is_view_error(error):
            raise
        failed[view] = not_understood(view, error)


def _warnings(
    inspections: Iterable[Inspection], views: Iterable[ResolvedView], sources: Mapping[str, Source]
) -> Iterator[str]:
    def index_hint(relation: Relation, columns: Sequence[str]) -> str | None:
        return sources[relation.name.source].index_hint(relation, columns)

    yield from untold_transactions(sources.values())
    for inspection in inspections:
        yield from inspection.warnings
    for one in views:
        yield from whole_inputs(one.view)
        yield from missing_indexes(one.view, one.readings, index_hint)


def _resolve_view(
    file: ViewFile,
    lower: tuple[ViewText, ...],
    relations: tuple[Relation, ...],
    spark: SparkSession,
    project: Project,
) -> ResolvedView:
    """Understand a view by its text and the relations that it reads alone, whatever else the project holds."""
    check_keeping(file, chosen_algorithm(file))
    view = _segmented(file, lower, relations, spark)
    readings = view_readings(file, view, project)
    return ResolvedView(
        view=view,
        schema=output_schema(view, spark),
        guarantee=view_guarantee(file, view),
        algorithm=check_algorithm(file, view, readings),
        readings=readings,
        needs=needed_content(view),
        maintenance=file.maintenance,
        refresh=file.refresh,
        is_compared_at_birth=file.is_compared_at_birth,
    )


@lru_cache(maxsize=1_000)
def _segmented(
    file: ViewFile, lower: tuple[ViewText, ...], relations: tuple[Relation, ...], spark: SparkSession
) -> SegmentedView:
    """Return the segments of a view. They are cached by texts and relations, because traces ask for them often."""
    compiled = compile_view(
        file.name,
        file.sql,
        {relation.name: relation for relation in relations},
        SelectTypes(spark=spark, view=file.name, path=file.path_text, own=file.sql).columns,
        path=file.path_text,
        strict=file.strict,
        lower=lower,
        recomputed=file.maintenance is not None and file.maintenance.recomputes,
    )
    return keep_lineage(keep_group_tables(compiled, file.group_tables), file.keep)


def output_schema(view: SegmentedView, spark: SparkSession) -> pa.Schema:
    """Return the types of a view's columns as Spark finds them. What Spark cannot type is refused in its words."""
    typed = SelectTypes(spark=spark, view=view.name, path=view.path, own=view.sql).schema(view.whole, view.described)
    arrow = to_arrow_schema(typed, timezone="UTC")
    return pa.schema([pa.field(field.name, field.type) for field in arrow])


def followed_relations(
    resolved: ResolvedProject, source: str, going: Collection[str], held: Mapping[RelationName, Collection[str]]
) -> tuple[Relation, ...]:
    """Return the relations of a source that views read, and for each column what views do with it.

    Views that are `going` on, and replicas with the columns that they have `held` so far, need every row of the log;
    the other views begin with what the source holds now.
    """
    said = resolved.project.global_transactions
    ids = {said.ids.name} if said is not None and source in said.sources and isinstance(said.ids, IdColumn) else set()

    def used(name: RelationName, column: Column) -> ColumnUse:
        readers = [view for view, one in resolved.views.items() if column.name in _needed(one.needs, name)]
        if column.name in ids or column.name in held.get(name, ()) or any(view in going for view in readers):
            return ColumnUse.READ
        return ColumnUse.FIRST_READ if readers else ColumnUse.UNREAD

    return tuple(
        replace(relation, columns=tuple(replace(one, use=used(relation.name, one)) for one in relation.columns))
        for relation in resolved.followed(source)
    )


def _needed(needs: Mapping[RelationName, Content], name: RelationName) -> Collection[str]:
    return {*needs[name].columns, *needs[name].rows.columns} if name in needs else ()
