"""What `analyze` answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headwater.advisor.kinds.parameters import Parameters, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCost:
    """What recent batches of a view took by a kind of maintenance, all together.

    `space` is the bytes of the view's rows and of all that is kept to maintain it. `unasked_count` batches asked no
    source. `agrees` if their changes are those that the view has.
    """

    space: int
    rows_in_warehouse: int
    rows_in_source: int
    probe_count: int
    unasked_count: int
    seconds: float
    agrees: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCost:
    """A kind of maintenance of a view: `predicted` by paper 002's corrected formulas, and measured.

    `space` is predicted, in bytes; `read_rows` are what the formulas would say if partners were found by an index.
    None: the paper has no formula for it, or it could not be measured, `because` of something.
    """

    kind: str
    maintenance: str
    in_use: bool
    space: float | None = None
    predicted: Rows | None = None
    read_rows: Rows | None = None
    measured: MeasuredCost | None = None
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewAnalysis:
    """A view's kinds of maintenance, compared over the same batches, with their ticks and changed rows."""

    view: str
    batch_count: int
    tick_count: int
    changed_rows: int
    parameters: Parameters
    kinds: tuple[KindCost, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeResult:
    """Paper 002 for this warehouse, and the files it was written to."""

    views: tuple[ViewAnalysis, ...]
    files: tuple[Path, ...] = ()
