"""What a commit says: how far every view and source has come, which views there are, and what the batch cost.

The catalog of views is written only by the commits that change it; every other commit names the commit that has it, so
that a batch's record stays small however long the views' SQL is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from headwater.model.position import LSN, Notation, Position, Tick
from headwater.observe.probe_stats import AskedCount


class CommitKind(Enum):
    """Why a commit was made."""

    LEASE = "lease"
    BATCH = "batch"
    CATALOG = "catalog"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Why a view cannot go on past its frontier."""

    code: str
    summary: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDelta:
    """How many rows a batch added to a view and removed from it, with their counts, and what that cost.

    `changed_rows` of its input changed, `read_rows` old rows were read for that; `asked` says how many of those were
    asked for, by source.
    """

    rows_added: int
    rows_removed: int
    changed_rows: int = 0
    read_rows: int = 0
    asked: Mapping[str, AskedCount] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatistics:
    """What a batch did and what it cost. Its ticks are (lo, hi]."""

    lo: Tick
    hi: Tick
    seconds: Mapping[str, float]
    rows: Mapping[str, ViewDelta]
    probe_count: int = 0
    answer_count: int = 0
    byte_count: int = 0
    spark_job_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRecord:
    """How far views have come, and which epoch wrote it. `positions` says how far each source was followed."""

    frontiers: Mapping[str, Tick] = field(default_factory=dict)
    stopped: Mapping[str, Stopped] = field(default_factory=dict)
    positions: Mapping[str, Position] = field(default_factory=dict)
    holder: str = ""
    statistics: BatchStatistics | None = None
    refreshed_at: Mapping[str, datetime] = field(default_factory=dict)
    """When views were last brought up to date that are not kept continuously."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One atomic step of the warehouse. `catalog_sequence` is the commit that last wrote the catalog, or 0."""

    sequence: int
    epoch: int
    kind: CommitKind
    tick: Tick
    committed_at: datetime
    catalog_sequence: int
    record: CommitRecord


def commit_text(commit: Commit) -> str:
    """Return a commit as the JSON text that is written. `parse_commit` reads it back.

    >>> from datetime import UTC
    >>> one = Commit(sequence=3, epoch=1, kind=CommitKind.BATCH, tick=Tick(9), catalog_sequence=2,
    ...              committed_at=datetime(2026, 1, 1, tzinfo=UTC), record=CommitRecord(frontiers={"sales": Tick(9)}))
    >>> parse_commit(commit_text(one)) == one
    True
    """
    value = asdict(commit) | {"kind": commit.kind.value}
    for source, position in commit.record.positions.items():
        if position.notation == LSN:  # the default, as before notations were stored
            del value["record"]["positions"][source]["notation"]
    return json.dumps(value, sort_keys=True, default=datetime.isoformat)


def parse_commit(text: str) -> Commit:
    """Read a written commit."""
    value = json.loads(text)
    return Commit(
        **value
        | {
            "kind": CommitKind(value["kind"]),
            "committed_at": datetime.fromisoformat(value["committed_at"]),
            "record": _parse_record(value["record"]),
        }
    )


def _parse_record(value: dict[str, Any]) -> CommitRecord:
    statistics = value["statistics"]
    if statistics is not None:
        rows = {view: _parse_delta(delta) for view, delta in statistics["rows"].items()}
        statistics = BatchStatistics(**statistics | {"rows": rows})
    return CommitRecord(
        frontiers={view: Tick(tick) for view, tick in value["frontiers"].items()},
        stopped={view: Stopped(**reason) for view, reason in value["stopped"].items()},
        positions={source: _parse_position(position) for source, position in value["positions"].items()},
        holder=value["holder"],
        statistics=statistics,
        refreshed_at={view: datetime.fromisoformat(at) for view, at in value.get("refreshed_at", {}).items()},
    )


def _parse_position(value: dict[str, Any]) -> Position:
    return Position(**value | {"notation": Notation(**value["notation"]) if "notation" in value else LSN})


def _parse_delta(value: dict[str, Any]) -> ViewDelta:
    """Read what a batch did to a view. A count that is not there was not counted when it was written."""
    return ViewDelta(
        rows_added=value["rows_added"],
        rows_removed=value["rows_removed"],
        changed_rows=value.get("changed_rows", 0),
        read_rows=value.get("read_rows", 0),
        asked={source: AskedCount(**count) for source, count in value.get("asked", {}).items()},
        seconds=value.get("seconds", 0.0),
    )
