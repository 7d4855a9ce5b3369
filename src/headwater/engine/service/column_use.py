"""Which columns of a relation views read: what happens to the others at the source does not matter."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from headwater.deltas.extent import Content
from headwater.model.project import IdColumn
from headwater.model.relation import Column, ColumnUse, Relation, RelationName
from headwater.project.resolve import ResolvedProject


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
