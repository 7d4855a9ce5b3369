"""What one version of a Delta table did: the actions in its commit file, read by the protocol's own rules.

A version has changed rows in one of two ways:

- it has change files (`cdc`): these hold every changed row, and its other files say nothing of rows;
- or its rows are those of the files that it added, and those of the files that it removed are gone. Files that are
  marked as `dataChange = false` only moved rows that were there (OPTIMIZE).

An action or a feature that is not known could mean anything, so it is refused by its name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from headwater.errors import SourceRefused

_CHANGES = ("add", "remove", "cdc", "metaData", "protocol")
_KNOWN = frozenset({*_CHANGES, "txn", "domainMetadata", "commitInfo", "checkpointMetadata", "sidecar"})
_READABLE = frozenset({"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint", "columnMapping"})
"""Features of readers that change nothing of what is read here. Column mapping is looked at by its mode."""
_FEATURES_FROM = 3
_MAPPING_FROM = 2
_HOW_TO_DROP = "ALTER TABLE {table} DROP FEATURE {feature}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """A data file of a table: its path below the table, and the values that all its rows share."""

    path: str
    partition: Mapping[str, str | None] | None
    """Values of partition columns as texts. None: the log does not say."""
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """What a table's metadata says of it."""

    table_id: str
    schema_text: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommit:
    """One version of a table."""

    version: int
    proof: bytes
    committed_at: datetime
    added: tuple[TableFile, ...]
    removed: tuple[TableFile, ...]
    change_files: tuple[TableFile, ...]
    layout: TableLayout | None
    """What the table is from here on, if the version says so."""
    unreadable: tuple[str, ...]
    """Names of what it asks of readers and we cannot do."""

    @property
    def has_changes(self) -> bool:
        """Whether it may have changed rows."""
        return bool(self.added or self.removed or self.change_files)


def proof_of(content: bytes) -> bytes:
    """Return by what a commit file is recognised."""
    return hashlib.sha256(content).digest()[:16]


def read_commit(version: int, content: bytes, modified_at: datetime) -> TableCommit:
    """Return what a commit file says."""
    said: dict[str, list[Any]] = {}
    for line in content.splitlines():
        for kind, action in (json.loads(line) if line.strip() else {}).items():
            said.setdefault(kind, []).append(action)
    if not said:
        raise ValueError("a commit file without a word")
    layouts = [_layout(one) for one in said.get("metaData", ())]
    times = [time for one in said.get("commitInfo", ()) if (time := _time(one))]
    unreadable = [f'the action "{kind}"' for kind in said if kind not in _KNOWN]
    if any(one.get("deletionVector") for kind in ("add", "remove") for one in said.get(kind, ())):
        unreadable.append("deletionVectors")
    for protocol in said.get("protocol", [None]):
        unreadable += unreadable_features(protocol, layouts[-1].configuration if layouts else {})
    return TableCommit(
        version=version,
        proof=proof_of(content),
        committed_at=times[-1] if times else modified_at,
        added=_changed(said.get("add", ())),
        removed=_changed(said.get("remove", ())),
        change_files=tuple(map(_file, said.get("cdc", ()))),
        layout=layouts[-1] if layouts else None,
        unreadable=tuple(dict.fromkeys(unreadable)),
    )


def unreadable_features(protocol: Mapping[str, Any] | None, configuration: Mapping[str, str]) -> list[str]:
    """Return the features by which a table cannot be read here.

    >>> unreadable_features({"minReaderVersion": 3, "readerFeatures": ["deletionVectors", "timestampNtz"]}, {})
    ['deletionVectors']
    >>> unreadable_features({"minReaderVersion": 2}, {"delta.columnMapping.mode": "name"})
    ['columnMapping']
    """
    found = ["columnMapping"] if configuration.get("delta.columnMapping.mode", "none") != "none" else []
    if protocol is not None:
        reader = int(protocol.get("minReaderVersion") or 1)
        if reader > _FEATURES_FROM:
            found.append(f"reader version {reader}")
        elif reader == _FEATURES_FROM:
            found += sorted(set(protocol.get("readerFeatures") or ()) - _READABLE)
    return found


def unreadable_table(relation: str, features: Iterable[str], at: str) -> SourceRefused:
    """Return the refusal of a table that asks of its readers what we cannot do."""
    named = tuple(features)
    plain = [name for name in named if name.isidentifier()]
    steps = [_HOW_TO_DROP.format(table=relation.partition(".")[2], feature=name) for name in plain]
    return SourceRefused(
        f'Delta table "{relation}" cannot be read: it uses {", ".join(named)}',
        code="HW-370",
        detail=f"as of {at}, the table asks every reader to know this, and we do not: rows could be read wrongly",
        hint="let the owner run:\n" + "\n".join(f"{step};" for step in steps)
        if steps
        else "write the table without it, or leave it out of the views",
    )


def _changed(actions: Iterable[Mapping[str, Any]]) -> tuple[TableFile, ...]:
    """Return the files that changed rows: OPTIMIZE says of its own that they do not."""
    return tuple(_file(one) for one in actions if one.get("dataChange", True))


def _file(said: Mapping[str, Any]) -> TableFile:
    return TableFile(path=unquote(said["path"]), partition=said.get("partitionValues"), size=int(said.get("size") or 0))


def _layout(said: Mapping[str, Any]) -> TableLayout:
    return TableLayout(
        table_id=said["id"],
        schema_text=said["schemaString"],
        partition_columns=tuple(said.get("partitionColumns") or ()),
        configuration=dict(said.get("configuration") or {}),
    )


def _time(said: Mapping[str, Any]) -> datetime | None:
    milliseconds = said.get("inCommitTimestamp") or said.get("timestamp")
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if isinstance(milliseconds, int | float) else None
