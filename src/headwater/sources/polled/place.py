"""What is polled: a database or a folder that can be read as it is now, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from headwater.errors import SourceRefused
from headwater.model.relation import Column, Relation, RelationName
from headwater.sources.source import Inspection

BATCH_ROWS = 10_000


class Moment(Protocol):
    """A place as it is at one time, as far as it can show one."""

    def describe(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations as they are at that time, as far as the place can tell."""
        ...

    def rows(self, relation: Relation) -> Iterator[pa.Table]:
        """Yield the rows of a relation, in small tables, with all its columns. Every NaN is one value."""
        ...

    def require_same(self) -> None:
        """Refuse what was read if it was not of one time: some places know that only afterwards."""
        ...


class Place(Protocol):
    """What is polled."""

    @property
    def default_schema(self) -> str:
        """What it calls the schema of relations that are named without one."""
        ...

    def describe(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations as they are now. One that is not there is refused."""
        ...

    def moment(self) -> AbstractContextManager[Moment]:
        """Open the place as it is now."""
        ...


def typed(values: Sequence[Any], column: Column, relation: RelationName) -> pa.Array:
    """Return values of a column as Arrow holds them. One that is not of the column's type is refused by its name."""
    try:
        return pa.array(values, column.arrow_field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError):
        wrong = next((value for value in values if not _fits(value, column)), None)
        raise wrong_value(wrong, column, relation) from None


def wrong_value(value: Any, column: Column, relation: RelationName) -> SourceRefused:
    """Return the refusal of a value that is not of its column's type."""
    shown = repr(value)
    return SourceRefused(
        f'column "{column.name}" of "{relation}" holds a value that is not of its type',
        code="HW-352",
        detail=f"the column is {column.native} and is read as {column.type}; a value is of type {type(value).__name__}"
        f", {len(shown)} characters long, and cannot be that",
        hint=f"find it at the source and correct it, or leave the column out of all views by leaving out {relation}",
    )


def _fits(value: Any, column: Column) -> bool:
    try:
        pa.array([value], column.arrow_field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError):
        return False
    return True
