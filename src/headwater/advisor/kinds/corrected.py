"""Paper 002's formulas, corrected: what differs from `printed`, and why.

1. An answer is counted once. The printed formulas multiply the number of wrapper queries N_q by the cardinality of the
   whole answer (space) and by the rows of the whole query (rows), though all of a query's wrapper queries together give
   its answer once:
       COLLECT = Σ_{k=1}^{N−1} I^{k−1} · Card(A^N of k)         rows in the source = Σ_{k=1}^{N−1} I^{k−1} · query(k)
   With that, asking accesses no more rows than replicas do, at any cardinality tried: that "SMIM accesses the fewest
   rows" is gone.
2. The view is visited when all queries that interfere have been answered: Nupdate / (1 + I) times, not Nupdate / I,
   which is infinite without interference.
3. Typing errors, of which the simplified formulas are free: Card(A^N) = σ_1·Σ σ_i·J_i is a product; Σ_{i=0}^{Nav} has
   one term too many; the third term of the compensating query is σ²·j·Card(U)³.
4. J = j·Card(r) is 79 million partners per row by the paper's defaults, and an update of one row of a view of 914 rows
   then has an answer of 168 million. Set `join_factor` to partners / relation_rows where the partners are known.

SMR, NSMR and SMIM are right as printed.
"""

from __future__ import annotations

from headwater.advisor.kinds import printed
from headwater.advisor.kinds.parameters import Case, MaintenanceKind, Parameters, Rows


def space(kind: MaintenanceKind, of: Parameters, case: Case = Case.AVERAGE) -> float:
    """Return the bytes that a kind of maintenance needs in the warehouse."""
    if kind is not MaintenanceKind.NSMIM or case is Case.BEST:
        return printed.space(kind, of, case)
    given = of.worst if case is Case.WORST else of
    return (given.view_rows + sum(collected(given))) * given.view_row_size


def rows(kind: MaintenanceKind, of: Parameters, case: Case = Case.AVERAGE) -> Rows:
    """Return the rows that a kind of maintenance accesses. Best: no source is asked."""
    if kind is not MaintenanceKind.NSMIM:
        return printed.rows(kind, of, case)
    given = of.worst if case is Case.WORST else of
    queries = range(1, of.relation_count)
    asked = sum(given.interfering ** (k - 1) * printed.query_rows(given, k) for k in queries)
    return Rows(
        in_warehouse=of.update_count * given.view_rows / (1.0 + given.interfering),
        in_source=0.0 if case is Case.BEST else of.update_count * asked,
    )


def collected(of: Parameters) -> tuple[float, ...]:
    """Return the rows of ECA's COLLECT table, each answer once, for k = 1 … N − 1 relations that were updated."""
    return tuple(of.interfering ** (k - 1) * printed.answer_rows(of, k) for k in range(1, of.relation_count))
