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

from headwater.model.position import LSN, Notation, Position, Positions, Tick
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
    """How many rows a batch added to a view and removed from it, each counted as often as it stands; what that took.

    So many rows changed of what it needs, so many old ones were read for that wherever they are; `asked` is what of
    that was asked for, by source.
    """

    rows_added: int
    rows_removed: int
    changed_rows: int = 0
    read_rows: int = 0
    asked: Mapping[str, AskedCount] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatistics:
    """What a batch did and what it cost; its ticks are (lo, hi]."""

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
    """How far everything has come, and who said so; `positions` is how far each log had been followed."""

    frontiers: Mapping[str, Tick] = field(default_factory=dict)
    stopped: Mapping[str, Stopped] = field(default_factory=dict)
    positions: Positions = field(default_factory=dict)
    holder: str = ""
    statistics: BatchStatistics | None = None
    refreshed_at: Mapping[str, datetime] = field(default_factory=dict)
    """When views were last brought up to date that are not kept continuously."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One atomic step of the warehouse. `catalog_sequence` is the commit that last wrote the catalog; 0: none did."""

    sequence: int
    epoch: int
    kind: CommitKind
    tick: Tick
    committed_at: datetime
    catalog_sequence: int
    record: CommitRecord


def commit_text(commit: Commit) -> str:
    """Return a commit as the JSON text that is written; `parse_commit` reads it back.

    >>> from datetime import UTC
    >>> one = Commit(sequence=3, epoch=1, kind=CommitKind.BATCH, tick=Tick(9), catalog_sequence=2,
    ...              committed_at=datetime(2026, 1, 1, tzinfo=UTC), record=CommitRecord(frontiers={"sales": Tick(9)}))
    >>> parse_commit(commit_text(one)) == one
    True
    """
    value = asdict(commit) | {"kind": commit.kind.value}
    for log, position in commit.record.positions.items():
        written = value["record"]["positions"][log]
        del written["proof"]  # only who follows needs it, and the change log's mark has it
        if not position.log:  # goes without saying, as it did before there were several
            del written["log"]
        if position.notation == LSN:  # and so does this
            del written["notation"]
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
        positions={log: _parse_position(position) for log, position in value["positions"].items()},
        holder=value["holder"],
        statistics=statistics,
        refreshed_at={view: datetime.fromisoformat(at) for view, at in value.get("refreshed_at", {}).items()},
    )


def _parse_position(value: dict[str, Any]) -> Position:
    return Position(**value | {"notation": Notation(**value["notation"]) if "notation" in value else LSN})


def _parse_delta(value: dict[str, Any]) -> ViewDelta:
    """Read what a batch did to a view; a count that is not there was not counted when it was written."""
    return ViewDelta(
        rows_added=value["rows_added"],
        rows_removed=value["rows_removed"],
        changed_rows=value.get("changed_rows", 0),
        read_rows=value.get("read_rows", 0),
        asked={source: AskedCount(**count) for source, count in value.get("asked", {}).items()},
        seconds=value.get("seconds", 0.0),
    )
