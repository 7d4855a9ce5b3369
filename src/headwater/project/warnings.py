"""What `plan` warns of: settings that change nothing, and columns that are probed without an index."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from headwater.errors import did_you_mean
from headwater.model.project import PROJECT_FILE, Project, Reading
from headwater.model.relation import Relation, RelationName, SegmentName
from headwater.sources.source import Source
from headwater.views.steps.group_tables import looked_up_below
from headwater.views.steps.segments import SegmentedView


def unused_settings(project: Project, read: Collection[RelationName]) -> list[str]:
    """Return a warning for each table of the project file that names a relation or a source that no view reads."""
    sources = {relation.source for relation in read}
    if project.global_transactions is not None:
        sources.update(project.global_transactions.sources)
    warnings = [
        f'[relations."{name}"] in {PROJECT_FILE} changes nothing: no view reads that relation; {_meant(name, read)}'
        for name in project.readings
        if name not in read
    ]
    return warnings + [
        f"[sources.{source.name}] in {source.declared_in} changes nothing: no view reads that source"
        for source in project.sources
        if source.name not in sources
    ]


def untold_transactions(sources: Iterable[Source]) -> Iterator[str]:
    """Yield a warning for every source that does not tell every transaction."""
    for source in sources:
        if not source.abilities.tells_every_transaction:
            every = source.abilities.polled_every_seconds
            polled = "" if every is None else f" (it is polled every {every:g} s)"
            yield (
                f'source "{source.name}" does not tell every transaction{polled}: views of it are exact at the states '
                "in which it was seen, and what happened between two of them is one change"
            )


def _meant(name: RelationName, read: Collection[RelationName]) -> str:
    """Return which relation was probably meant: one of the same name in another schema before all others."""
    same = [str(one) for one in read if (one.source, one.name) == (name.source, name.name)]
    if same:
        return f'did you mean "{same[0]}"?'
    return did_you_mean(str(name), tuple(map(str, read)), otherwise="is the name right?")


IndexHint = Callable[[Relation, Sequence[str]], str | None]
"""Returns what the owner of a relation runs to make an index, in the words of its source."""


def missing_indexes(view: SegmentedView, readings: Mapping[RelationName, Reading], hint: IndexHint) -> Iterator[str]:
    """Yield a warning for every index that lacks."""
    for relation, columns in (*_along_equalities(view), *looked_up_below(view)):
        if isinstance(relation.name, SegmentName) or readings[relation.name] is not Reading.PROBE:
            continue
        if not any(index[:1] and index[0] in columns for index in relation.indexes):
            statement = hint(relation, columns)
            remedy = "Read" if statement is None else f"Create one at the source ({statement}), or read"
            yield (
                f'view "{view.name}" probes {relation.name} by {", ".join(columns)}, which has no index: every batch '
                f"will scan it. {remedy} it as a replica"
            )


def _along_equalities(view: SegmentedView) -> Iterator[tuple[Relation, Sequence[str]]]:
    """Yield what joins ask for."""
    for join in view.joins:
        for edge in join.edges:
            yield join.occurrence(edge.left).relation, [own for own, _ in edge.pairs]
        for edge in join.edges:
            yield join.occurrence(edge.right).relation, [own for _, own in edge.pairs]
