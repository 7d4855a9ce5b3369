"""What `check` and `demo` answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.deltas.compare import Row
from headwater.judge.grade import Verdict
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick

REWRITING = "orders that a text leaves open are completed by all columns of the row, NULLs first as in Spark"
DUCKDB, SPARK = "DuckDB", "Spark"
"""The engines that judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCheck:
    """What the judge found for a view, against what was promised."""

    view: str
    promised: Guarantee
    tick: Tick
    verdict: Verdict
    judged_by: Mapping[str, int] = field(default_factory=dict)
    """How many of the states were judged by which engine."""

    @property
    def kept(self) -> bool:
        """Whether the promise was kept."""
        return self.verdict.guarantee >= self.promised


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What the judge found. `rewriting` is what it changed in the views' texts before it ran them."""

    views: tuple[ViewCheck, ...]
    rewriting: str = REWRITING

    @property
    def kept(self) -> bool:
        """Whether every promise was kept."""
        return all(view.kept for view in self.views)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A few rows of a view at a tick."""

    view: str
    tick: Tick
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """What the demo showed: counts of transactions and sources, and what the judge found.

    `answer_count` answers came from probed sources; `corrected_answer_count` of them had seen transactions they should
    not have, or missed some, and were corrected by rebasing.
    """

    transaction_count: int
    source_count: int
    commit_count: int
    answer_count: int
    corrected_answer_count: int
    check: CheckResult
    samples: tuple[Sample, ...]
    seconds: float
