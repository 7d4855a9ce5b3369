"""The rows of a Delta table as of one version: its data files, and which of them can hold some values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headwater.deltas.indexed_rows import is_among
from headwater.errors import SourceLost
from headwater.model.relation import Relation
from headwater.sources.delta.commits import TableFile, TableLayout, unreadable_features, unreadable_table
from headwater.sources.delta.lake import LakeTable
from headwater.sources.delta.rows import file_rows, partition_value

_STATISTICS_UNIT = timedelta(milliseconds=1)
"""Times are cut off to this in statistics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFile:
    """A data file with what the log says of its values. `None` for a bound: nothing is known."""

    file: TableFile
    rows: int | None
    lows: Mapping[str, Any]
    highs: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A table as of a version."""

    table: LakeTable
    version: int
    layout: TableLayout
    files: tuple[StatedFile, ...]

    @property
    def row_count(self) -> int:
        """How many rows it has, as far as the log says."""
        return sum(one.rows or 0 for one in self.files)

    def read(self, relation: Relation, wanted: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the wanted columns of all rows."""
        for one in self.files:
            yield from file_rows(self.table, relation, one.file, wanted)

    def find(self, relation: Relation, wanted: Sequence[str], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the wanted columns of the rows that hold one of the keys. Files that cannot hold one are not read."""
        names = tuple(dict.fromkeys((*wanted, *columns)))
        empty = relation.arrow_schema(names).empty_table()
        if columns and not keys.num_rows:
            return empty.select(list(wanted))
        files = self.files_of(relation, columns, keys)
        parts = (rows for one in files for rows in file_rows(self.table, relation, one.file, names))
        found = [rows.filter(is_among(rows, columns, keys)) if columns else rows for rows in parts]
        return pa.concat_tables([empty, *found]).select(list(wanted))

    def files_of(self, relation: Relation, columns: tuple[str, ...], keys: pa.Table) -> list[StatedFile]:
        """Return the files that may hold rows with some keys, by partition values and by statistics."""
        return [
            one
            for one in self.files
            if all(self._may_hold(one, relation, name, keys.column(place)) for place, name in enumerate(columns))
        ]

    def _may_hold(self, one: StatedFile, relation: Relation, name: str, values: pa.ChunkedArray) -> bool:
        field = relation.column(name).arrow_field
        if pa.types.is_floating(field.type) or pa.types.is_nested(field.type):
            return True  # statistics leave NaN out, and do not tell 0.0 from −0.0
        if name in (one.file.partition or {}):
            return bool(pc.any(pc.equal(values, partition_value(self.table, field, one.file.partition or {}))).as_py())
        low, high = one.lows.get(name), one.highs.get(name)
        if low is None or high is None or pa.types.is_boolean(field.type) or pa.types.is_binary(field.type):
            return True
        try:
            first, last = pa.scalar(low).cast(field.type), pa.scalar(_last(high, field.type)).cast(field.type)
        except pa.ArrowInvalid:
            return True
        inside = pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))
        return bool(pc.any(inside, min_count=0).as_py())


def _last(high: Any, kind: pa.DataType) -> Any:
    return high + _STATISTICS_UNIT if pa.types.is_timestamp(kind) else high


def load_state(table: LakeTable, version: int | None = None) -> TableState:
    """Return a table as of a version, or as it is now. A version that cannot be read any more is a lost source."""
    opened = _opened(table, version)
    metadata, protocol = opened.metadata(), opened.protocol()
    configuration = dict(metadata.configuration)
    said = {"minReaderVersion": protocol.min_reader_version, "readerFeatures": protocol.reader_features}
    number = int(opened.version())
    if features := unreadable_features(said, configuration):
        raise unreadable_table(str(table.relation), features, f"version {number}")
    layout = TableLayout(
        table_id=str(metadata.id),
        schema_text=opened.schema().to_json(),
        partition_columns=tuple(metadata.partition_columns),
        configuration=configuration,
    )
    actions = pa.table(opened.get_add_actions(flatten=False)).to_pylist()
    return TableState(table=table, version=number, layout=layout, files=tuple(_stated(one, layout) for one in actions))


def _opened(table: LakeTable, version: int | None) -> DeltaTable:
    """Return a table as of a version. Folders are listed while others write, so that a list may have gaps: try again.

    The newest version is looked up first. What is there when a list begins is in it.
    """
    versions = table.versions()
    if not versions:
        raise table.unavailable(FileNotFoundError(table.path))
    for last in (False, False, True):
        try:
            return DeltaTable(table.path, version=versions[-1] if version is None else version)
        except DeltaError as error:
            if not last:
                continue
            if features := _features_in_log(table, versions):
                raise unreadable_table(str(table.relation), features, f"version {versions[-1]}") from error
            if version is not None and version < versions[-1]:
                raise _unreadable_state(table, version, error) from error
            raise table.unavailable(error) from error
    raise AssertionError("the last attempt returns or raises")


def _features_in_log(table: LakeTable, versions: Sequence[int]) -> tuple[str, ...]:
    """Return what the newest commit that names any asks of readers: a library may not open such a table at all."""
    found = (commit for version in reversed(versions) if (commit := table.commit(version)) is not None)
    return next((commit.unreadable for commit in found if commit.unreadable), ())


def _stated(action: Mapping[str, Any], layout: TableLayout) -> StatedFile:
    values = action.get("partition") or {}
    partition = {name: _partition_text(values.get(name)) for name in layout.partition_columns}
    return StatedFile(
        file=TableFile(path=unquote(action["path"]), partition=partition, size=int(action["size_bytes"] or 0)),
        rows=action.get("num_records"),
        lows=action.get("min") or {},
        highs=action.get("max") or {},
    )


def _partition_text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unreadable_state(table: LakeTable, version: int, error: Exception) -> SourceLost:
    return SourceLost(
        f'Delta table "{table.relation}" cannot be read as of version {version} any more',
        code="HW-378",
        detail=f"{error}",
        hint="let the owner keep the log for longer (delta.logRetentionDuration); "
        f"`headwater teardown --source {table.relation.source}` and `headwater run` read this source again",
    )
