"""Which followed sources the parts of global transactions come from, and what a project cannot mean by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from headwater.changelog.global_transaction_buffer import GlobalSources
from headwater.errors import InvalidProject, UnsupportedView
from headwater.model.project import PROJECT_FILE, GlobalTransactions, IdColumn, PreparedId
from headwater.model.relation import Relation

if TYPE_CHECKING:
    from headwater.project.resolve import ResolvedProject

_ID_TYPES = ("string", "smallint", "int", "bigint")


def global_sources(resolved: ResolvedProject) -> GlobalSources | None:
    """Return the sources whose parts wait for each other, or None if there are none.

    A source that is not followed, or has no relation with the column, sends no parts, so none are waited for.
    """
    declared = resolved.project.global_transactions
    if declared is None:
        return None
    names = tuple(
        name for name in declared.sources if name in resolved.sources and _sends_parts(resolved, declared, name)
    )
    return GlobalSources(names=names, ids=declared.ids) if len(names) > 1 else None


def _sends_parts(resolved: ResolvedProject, declared: GlobalTransactions, source: str) -> bool:
    match declared.ids:
        case IdColumn():
            return bool(_carriers(resolved, declared.ids, source))
        case PreparedId():
            return True
    assert_never(declared.ids)


def _carriers(resolved: ResolvedProject, column: IdColumn, source: str) -> list[Relation]:
    """Return the followed relations of a source that have the column."""
    return [one for one in resolved.followed(source) if column.name in one.column_names]


def with_global_transactions(resolved: ResolvedProject) -> ResolvedProject:
    """Return a project that can mean its global transactions, with a warning for each source that sends no parts."""
    declared = resolved.project.global_transactions
    if declared is None:
        return resolved
    if isinstance(declared.ids, IdColumn):
        _check_types(resolved, declared, declared.ids)
    _check_algorithms(resolved, declared)
    return replace(resolved, warnings=(*resolved.warnings, *_warnings(resolved, declared)))


def _check_types(resolved: ResolvedProject, declared: GlobalTransactions, column: IdColumn) -> None:
    """Refuse ids of a type that has no one text."""
    for relation in (one for name in declared.sources for one in _carriers(resolved, column, name)):
        if relation.column(column.name).type not in _ID_TYPES:
            raise InvalidProject(
                f'column "{column.name}" of {relation.name} cannot hold the ids of global transactions',
                code="HW-131",
                detail=f"it is {relation.column(column.name).native}; ids are texts or whole numbers",
                hint=f"name another column in [global_transactions] of {PROJECT_FILE}",
            )


def _check_algorithms(resolved: ResolvedProject, declared: GlobalTransactions) -> None:
    """Refuse a view that cannot take the parts of several sources at once."""
    for name, view in resolved.views.items():
        parts = sorted({relation.source for relation in view.view.relations} & set(declared.sources))
        if view.algorithm.run is not None and len(parts) > 1:
            raise UnsupportedView(
                f'view "{name}" cannot be kept by {view.algorithm.name}: it reads {" and ".join(parts)}',
                code="HW-246",
                detail="they take part in global transactions; the papers prove their guarantees for transactions of "
                "one source, and between two parts a state would be shown that never was",
                hint=f"remove `algorithm` from [views.{name}], or [global_transactions] from {PROJECT_FILE}",
            )


def _warnings(resolved: ResolvedProject, declared: GlobalTransactions) -> Iterator[str]:
    """Yield a warning for every source that should send parts and cannot."""
    for name in declared.sources:
        if name not in resolved.sources:
            yield f'[global_transactions] names source "{name}", which no view reads: its parts are not waited for'
        elif not _sends_parts(resolved, declared, name):
            yield (
                f'no relation of source "{name}" that a view reads has the column of [global_transactions]: '
                f"its parts are not waited for"
            )
