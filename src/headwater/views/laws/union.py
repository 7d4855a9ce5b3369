"""The law of a union: a sum of inputs with signs is linear, so its changes are the sum of its inputs' changes.

    Δ(A + B - C)(s) = ΔA(s) + ΔB(s) - ΔC(s)

Rows that a minus sign takes away are there (invariant 4 of `segments`), so every state is a bag of real rows; within a
tick the inputs' changes may overlap, and are netted. Nothing old is needed, and no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headwater.deltas.on_arrow import ArrowBag, empty_table
from headwater.model.relation import Relation, RelationName

if TYPE_CHECKING:  # a step names its law, and laws need no Spark
    from headwater.deltas.stored_bag import Bag
    from headwater.views.steps.union_step import UnionStep


def change_union(step: UnionStep, united: Relation, changes: Mapping[RelationName, Bag]) -> Bag:
    """Return how a union changes, from how its inputs change. Columns go by their order."""
    schema = empty_table(united.arrow_schema()).schema
    total: Bag = ArrowBag(schema.empty_table())
    for signed in step.inputs:
        bag = changes[signed.input] if signed.sign > 0 else changes[signed.input].negated()
        total = total.plus(bag.typed(schema))
    return total.net()
