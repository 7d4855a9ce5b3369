"""Paper 002's formulas as printed: space in the warehouse (Table 2), rows accessed (Tables 3 and 4).

    SMR, SMIM    space = Card(V)·ts(V) + Nav·Card(AV)·ts(AV)
    NSMR         space = Card(V)·ts(V)
    NSMIM        space = Card(V)·ts(V) + COLLECT·ts(V)
                 COLLECT = Σ_{k=1}^{N−1} I^{k−1} · Nq(k) · σ^N · j^{k−1} · Card(U)^k · J^{N−k}
                 Nq(k)   = σ^k · j^{k−1} · Card(U)^k · Σ_{i=0}^{N−k−1} (σJ)^i              wrapper queries

    SMR          rows  = Card(V) + 2·Card(AV) + Card(U) + Card(AV)² · Σ_{i=1}^{N−1} σ^i·J^{i−1}
    NSMR         rows  = Card(V); in the source Card(r) + Card(r)² · Σ_{i=1}^{N−1} σ^i·J^{i−1}
    SMIM         rows  = Card(V) + Card(AV) + Card(ΔAV) · (2 + Card(AV) · Σ_{i=0}^{Nav−2} σ^{i+1}·J^i)
    NSMIM        rows  = Card(V) / I; in the source Σ_{k=1}^{N−1} I^{k−1} · Nq(k) · query(k)
                 query(k) = Card(U) + Σ_{i=0}^{k−2} σ^{i+1}·j^i·Card(U)^{i+2}
                                    + σ^k·j^{k−1}·Card(U)^k·Card(r) · Σ_{i=0}^{N−k−1} (σJ)^i

Rows are for one update; all of Nupdate cost Nupdate times as much. The worst case is the average one with σ = j = 1 and
Nav = N, which is what the tables print. What is wrong with them is in `corrected`.
"""

from __future__ import annotations

from typing import assert_never

from headwater.advisor.kinds.parameters import Case, MaintenanceKind, Parameters, Rows, power_sum


def space(kind: MaintenanceKind, of: Parameters, case: Case = Case.AVERAGE) -> float:
    """Return the bytes that a kind of maintenance needs in the warehouse (Table 2)."""
    view = of.view_rows * of.view_row_size
    if case is Case.BEST:
        return view
    given = of.worst if case is Case.WORST else of
    match kind:
        case MaintenanceKind.SMR | MaintenanceKind.SMIM:
            return view + given.auxiliary_count * given.relation_rows * given.relation_row_size
        case MaintenanceKind.NSMR:
            return view
        case MaintenanceKind.NSMIM:
            return view + sum(collected(given)) * given.view_row_size
        case _:
            assert_never(kind)


def rows(kind: MaintenanceKind, of: Parameters, case: Case = Case.AVERAGE) -> Rows:
    """Return the rows that a kind of maintenance accesses (Tables 3 and 4). Best: no source is asked."""
    given = of.worst if case is Case.WORST else of
    match kind:
        case MaintenanceKind.SMR:
            found = Rows(in_warehouse=given.view_rows + kept_rows(given) + recomputed_rows(given), in_source=0.0)
        case MaintenanceKind.NSMR:
            found = Rows(in_warehouse=given.view_rows, in_source=recomputed_rows(given))
        case MaintenanceKind.SMIM:
            found = Rows(in_warehouse=given.view_rows + kept_rows(given) + joined_rows(given), in_source=0.0)
        case MaintenanceKind.NSMIM:
            found = Rows(in_warehouse=_view_visits(given), in_source=_asked_rows(given))
        case _:
            assert_never(kind)
    in_source = 0.0 if case is Case.BEST else of.update_count * found.in_source
    return Rows(in_warehouse=of.update_count * found.in_warehouse, in_source=in_source)


def collected(of: Parameters) -> tuple[float, ...]:
    """Return the rows of ECA's COLLECT table, for k = 1 … N − 1 relations that were updated."""
    return tuple(
        of.interfering ** (k - 1) * wrapper_queries(of, k) * answer_rows(of, k) for k in range(1, of.relation_count)
    )


def wrapper_queries(of: Parameters, k: int) -> float:
    """Nq(k): the queries about single rows that a query with k updated relations becomes."""
    steps = power_sum(of.selectivity * of.partners, of.relation_count - k)
    return of.selectivity**k * of.join_factor ** (k - 1) * of.update_rows**k * steps


def answer_rows(of: Parameters, k: int) -> float:
    """Card(A^N): the rows of the answer to a query with k updated relations."""
    joined = of.join_factor ** (k - 1) * of.partners ** (of.relation_count - k)
    return of.selectivity**of.relation_count * of.update_rows**k * joined


def query_rows(of: Parameters, k: int) -> float:
    """Return the rows that a query with k updated relations looks at."""
    updates = sum(of.selectivity ** (i + 1) * of.join_factor**i * of.update_rows ** (i + 2) for i in range(k - 1))
    met = of.selectivity**k * of.join_factor ** (k - 1) * of.update_rows**k
    steps = power_sum(of.selectivity * of.partners, of.relation_count - k)
    return of.update_rows + updates + met * of.relation_rows * steps


def recomputed_rows(of: Parameters) -> float:
    """Return the rows that recomputing the view reads: each relation once for every row found so far."""
    steps = of.selectivity * power_sum(of.selectivity * of.partners, of.relation_count - 1)
    return of.relation_rows + of.relation_rows**2 * steps


def joined_rows(of: Parameters) -> float:
    """Return the rows that joining an update with the other replicas looks at."""
    steps = of.selectivity * power_sum(of.selectivity * of.partners, of.auxiliary_count - 1)
    return of.update_rows * (1.0 + of.relation_rows * steps)


def kept_rows(of: Parameters) -> float:
    """Return the rows that bringing an update into a replica looks at."""
    return of.relation_rows + of.update_rows


def _asked_rows(of: Parameters) -> float:
    return sum(
        of.interfering ** (k - 1) * wrapper_queries(of, k) * query_rows(of, k) for k in range(1, of.relation_count)
    )


def _view_visits(of: Parameters) -> float:
    return of.view_rows / of.interfering if of.interfering else float("inf")
