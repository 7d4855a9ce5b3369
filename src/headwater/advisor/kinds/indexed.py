"""Rows accessed by the four kinds where partners are found by an index or by hashing, and not by comparing all pairs.

Paper 002 counts every row that a nested loop looks at: a relation once for each row found so far. Engines do not join
like that. What remains are the rows that are read or found:

    recomputed       Card(V) + N·Card(r)                                    each relation once, and the view to compare
    incremental      Card(U) + Card(U) · Σ_{i=1}^{N−1} (σJ)^i               the update, and the partners it leads to

They are rows of the warehouse where the view is self-maintained, and rows of the sources otherwise; a self-maintained
view also brings the update into its replicas. An update changes the view without reading it.
"""

from __future__ import annotations

from typing import assert_never

from headwater.advisor.kinds.parameters import MaintenanceKind, Parameters, Rows, power_sum


def rows(kind: MaintenanceKind, of: Parameters) -> Rows:
    """Return the rows that a kind of maintenance reads for all updates.

    >>> of = Parameters(view_rows=10.0, relation_rows=100.0, join_factor=0.02, selectivity=1.0, update_rows=5.0)
    >>> rows(MaintenanceKind.SMR, of).in_warehouse, rows(MaintenanceKind.NSMIM, of).in_source
    (310.0, 30.0)
    """
    found = of.update_rows * (power_sum(of.selectivity * of.partners, of.relation_count) - 1)
    whole = of.relation_count * of.relation_rows
    match kind:
        case MaintenanceKind.SMR:
            once = Rows(in_warehouse=of.view_rows + whole, in_source=0.0)
        case MaintenanceKind.NSMR:
            once = Rows(in_warehouse=of.view_rows, in_source=whole)
        case MaintenanceKind.SMIM:
            once = Rows(in_warehouse=of.update_rows + found, in_source=0.0)
        case MaintenanceKind.NSMIM:
            once = Rows(in_warehouse=of.update_rows, in_source=found)
        case _:
            assert_never(kind)
    return Rows(in_warehouse=of.update_count * once.in_warehouse, in_source=of.update_count * once.in_source)
