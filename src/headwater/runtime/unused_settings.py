"""Settings of the project file that change nothing, because no view reads what they name."""

from __future__ import annotations

from collections.abc import Collection

from headwater.project import PROJECT_FILE, Project
from headwater.relation import RelationName
from headwater.toml_table import did_you_mean


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


def _meant(name: RelationName, read: Collection[RelationName]) -> str:
    """Return which relation was probably meant: one of the same name in another schema before all others."""
    same = [str(one) for one in read if (one.source, one.name) == (name.source, name.name)]
    if same:
        return f'did you mean "{same[0]}"?'
    return did_you_mean(str(name), tuple(map(str, read)), otherwise="is the name right?")
