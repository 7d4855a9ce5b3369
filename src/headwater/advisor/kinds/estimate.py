"""From what is known of a view's relations to the parameters of paper 002's formulas, which take them to be all alike.

Card(r) is the mean of the relations' rows, and ts(r) is such that replicas take as many bytes as they do. J, the rows
of another relation that a row joins, is the mean over all ways along an equality: the rows of the relation at its end
over the distinct values there. σ is the geometric mean of what selections leave of each relation. An update is what
changes in all relations between two refreshes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from headwater.advisor.kinds.parameters import Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many rows something has, and how many bytes they are."""

    rows: int
    byte_count: int


def estimate(
    *,
    view: Size,
    relations: Sequence[Size],
    occurrence_count: int,
    partners: Sequence[float],
    selected: Sequence[float],
    interfering: float,
    update_rows: float,
    update_count: int,
) -> Parameters:
    """Return the parameters of a view.

    `partners` has the mean number of partners for every way along an equality, `selected` the share of every
    occurrence's rows that pass its selections.

    >>> found = estimate(view=Size(rows=30, byte_count=600), relations=[Size(rows=10, byte_count=80),
    ...     Size(rows=30, byte_count=600)], occurrence_count=2, partners=[1, 3], selected=[1.0, 0.25], interfering=0,
    ...     update_rows=4, update_count=5)
    >>> found.relation_rows, found.relation_row_size, found.partners, found.selectivity
    (20.0, 17.0, 2.0, 0.5)
    """
    mean = fmean(relation.rows for relation in relations)
    rows = sum(relation.rows for relation in relations)
    return Parameters(
        view_rows=view.rows,
        view_row_size=view.byte_count / view.rows if view.rows else 0.0,
        relation_count=occurrence_count,
        auxiliary_count=len(relations),
        relation_rows=mean,
        relation_row_size=sum(relation.byte_count for relation in relations) / rows if rows else 0.0,
        selectivity=geometric_mean(selected) if all(selected) else 0.0,
        join_factor=fmean(partners) / mean if partners and mean else 0.0,
        interfering=interfering,
        update_rows=update_rows,
        update_count=update_count,
    )
