"""What a commit says: how far every view and source has come, which views there are, and what the batch cost.

The catalog of views is written only by the commits that change it; every other commit names the commit that has it, so
that a batch's record stays small however long the views' SQL is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

import msgspec

from headwater.model.position import LSN, Positions, Tick
from headwater.observe.events import ProbeCount


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
    asked: Mapping[str, ProbeCount] = field(default_factory=dict)
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
    spark_job_count: int | None = 0
    """None: Spark did not tell."""
    commit_before_seconds: float | None = None
    """How long the commit of the batch before took: none can say it of itself. None: this one was the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRecord:
    """How far views have come, and which epoch wrote it. `positions` says how far each log was followed."""

    frontiers: Mapping[str, Tick] = field(default_factory=dict)
    stopped: Mapping[str, Stopped] = field(default_factory=dict)
    positions: Positions = field(default_factory=dict)
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
    value = msgspec.to_builtins(commit)
    for position in value["record"]["positions"].values():
        del position["proof"]  # only who follows needs it, and the change log's mark has it
        if not position["log"]:  # goes without saying, as it did before there were several
            del position["log"]
        if position["notation"] == _LSN:  # and so does this
            del position["notation"]
    return msgspec.json.encode(value, order="sorted").decode()


def parse_commit(text: str) -> Commit:
    """Read a written commit. What an older version did not write has its default."""
    return msgspec.json.decode(text, type=Commit)


_LSN = msgspec.to_builtins(LSN)
