"""Paper 002's tables and turning points, computed: the four kinds as printed and corrected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

from headwater.advisor.kinds import corrected, printed
from headwater.advisor.kinds.parameters import Case, MaintenanceKind, Parameters

DEFAULT = Parameters()

_NEAR = 1e-5
_SMIM, _NSMIM = MaintenanceKind.SMIM, MaintenanceKind.NSMIM


@dataclass(frozen=True, slots=True, kw_only=True)
class KindEntry:
    """A kind at the default parameters in one case: space, and rows accessed."""

    kind: MaintenanceKind
    case: Case
    printed_space: float
    corrected_space: float
    printed_rows: float
    corrected_rows: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """A cardinality at which one thing outgrows another, and what the paper says of it."""

    what: str
    rows: float
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Rows that asking accesses through rows that replicas do, by both versions."""

    where: str
    printed: float
    corrected: float


def entries() -> tuple[KindEntry, ...]:
    """Return Tables 2 to 4 at the default parameters."""
    return tuple(
        KindEntry(
            kind=kind,
            case=case,
            printed_space=printed.space(kind, DEFAULT, case),
            corrected_space=corrected.space(kind, DEFAULT, case),
            printed_rows=printed.rows(kind, DEFAULT, case).total,
            corrected_rows=corrected.rows(kind, DEFAULT, case).total,
        )
        for kind in MaintenanceKind
        for case in Case
    )


def crossings() -> tuple[Crossing, ...]:
    """Return where COLLECT outgrows the replicas, and where asking stops to access fewer rows than replicas."""

    def collect_in_rows(of: Parameters) -> float:
        return sum(printed.collected(of)) - of.auxiliary_count * of.relation_rows * of.relation_row_size

    return (
        Crossing(
            what="COLLECT outgrows the replicas, by the printed formula",
            rows=_crossing(lambda of: printed.space(_NSMIM, of) - printed.space(_SMIM, of), 1e4, 1e12),
            said="6.0 × 10⁷",
        ),
        Crossing(
            what="the same, with COLLECT's rows against the replicas' bytes",
            rows=_crossing(collect_in_rows, 1e4, 1e12),
            said="6.0 × 10⁷: ts(V) was forgotten",
        ),
        Crossing(
            what="the same, every answer counted once",
            rows=_crossing(lambda of: corrected.space(_NSMIM, of) - corrected.space(_SMIM, of), 1e4, 1e12),
            said="–",
        ),
        Crossing(what="NSMIM begins to access fewer rows than SMIM", rows=_rows_crossing(10, 3e3), said="never"),
        Crossing(what="NSMIM accesses more rows than SMIM again", rows=_rows_crossing(3e3, 1e9), said="always more"),
    )


def ratios() -> tuple[Ratio, ...]:
    """Return rows of NSMIM through rows of SMIM: at the defaults, and where the printed order is another."""
    places = (
        ("the defaults", DEFAULT),
        ("σ = 0.0001", replace(DEFAULT, selectivity=1e-4)),
        ("j = 0.001", replace(DEFAULT, join_factor=1e-3)),
        ("1,000 rows", replace(DEFAULT, relation_rows=1e3)),
        ("1,000,000,000 rows", replace(DEFAULT, relation_rows=1e9)),
    )
    return tuple(
        Ratio(
            where=where,
            printed=printed.rows(_NSMIM, of).total / printed.rows(_SMIM, of).total,
            corrected=corrected.rows(_NSMIM, of).total / corrected.rows(_SMIM, of).total,
        )
        for where, of in places
    )


def _rows_crossing(least: float, most: float) -> float:
    return _crossing(lambda of: printed.rows(_NSMIM, of).total - printed.rows(_SMIM, of).total, least, most)


def _crossing(difference: Callable[[Parameters], float], least: float, most: float) -> float:
    """Return the cardinality of relations at which a difference changes its sign, to within a hundred-thousandth."""

    def is_above(rows: float) -> bool:
        return difference(replace(DEFAULT, relation_rows=rows)) > 0

    begins_above = is_above(least)
    assert begins_above != is_above(most), "the sign changes"
    while most / least > 1 + _NEAR:
        middle = sqrt(least * most)
        least, most = (middle, most) if is_above(middle) == begins_above else (least, middle)
    return least
