"""How many combinations of entries a batch would join, and where to cut it so that a hot key does not blow up.

Signed stamps also combine versions of rows that never met: a key with a thousand versions on either side of a join has
a million combinations, of which a few thousand are real. Cut in k pieces, it has k times fewer. The pieces of a batch
need no new probes: what lies before a piece is the old rows and the pieces before it, netted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.on_arrow import ArrowBag
from headwater.maintenance.probe_plan import VisitTree
from headwater.maintenance.visit_trees import visit_trees
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView

MOST_COMBINATIONS = 4_000_000
_FEW_ROWS = 200
_WEIGHT = "_weight"

Bags = Mapping[RelationName, ArrowBag]


def pieces(
    view: JoinView, bags: Bags, lo: Tick, hi: Tick, most: int = MOST_COMBINATIONS
) -> Iterator[tuple[Tick, Tick, Bags]]:
    """Yield (after, upto, bags) for consecutive parts of a batch, each with few enough combinations."""
    while lo < hi:
        upto = hi
        part = _upto(bags, upto)
        while upto - lo > 1 and estimate_combinations(view, part) > most:
            upto = Tick(lo + (upto - lo) // 2)
            part = _upto(bags, upto)
        yield lo, upto, part
        if upto < hi:
            bags = {relation: _fold(bag, upto) for relation, bag in bags.items()}
        lo = upto


def _upto(bags: Bags, upto: Tick) -> Bags:
    return {relation: bag.upto(upto) for relation, bag in bags.items()}


def _fold(bag: ArrowBag, upto: Tick) -> ArrowBag:
    """Return the bag with everything up to a tick netted into old rows of that tick."""
    return bag.upto(upto).restamped(upto).net().plus(bag.after(upto))


def estimate_combinations(view: JoinView, bags: Bags) -> int:
    """Return how many combinations join along the equalities of the view's visit trees.

    Other conditions only make them fewer, so this is an upper bound, exact for a tree of equalities.
    """
    if sum(len(bag) for bag in bags.values()) < _FEW_ROWS:
        return 0
    trees = visit_trees(view)
    total = 1
    for tree in trees:
        weighed = _weigh(view, bags, tree, tree.root)
        total *= int(pc.sum(weighed[_WEIGHT]).as_py() or 0)
    return total


def _weigh(view: JoinView, bags: Bags, tree: VisitTree, node: str) -> pa.Table:
    """Return the rows of an occurrence with the number of combinations below each."""
    occurrence = next(o for o in view.occurrences if o.alias == node)
    rows = bags[occurrence.relation.name].table
    weighed = rows.append_column(_WEIGHT, pa.repeat(pa.scalar(1.0), rows.num_rows))
    for child in tree.children(node):
        own, theirs = _join_columns(view, node, child)
        below = _weigh(view, bags, tree, child)
        sums = below.group_by(theirs, use_threads=False).aggregate([(_WEIGHT, "sum")])
        typed = pa.table(
            [
                sums[column].cast(weighed.schema.field(mine).type, safe=False)
                for mine, column in zip(own, theirs, strict=True)
            ]
            + [sums[f"{_WEIGHT}_sum"]],
            names=[*own, "_below"],
        )
        joined = weighed.select([*dict.fromkeys([*weighed.column_names])]).join(typed, own, join_type="inner")
        product = pc.multiply(joined[_WEIGHT], joined["_below"])
        weighed = joined.drop_columns([_WEIGHT, "_below"]).append_column(_WEIGHT, product)
    return weighed


def _join_columns(view: JoinView, node: str, child: str) -> tuple[list[str], list[str]]:
    for edge in view.edges:
        if (edge.left, edge.right) == (node, child):
            return [left for left, _ in edge.pairs], [right for _, right in edge.pairs]
        if (edge.right, edge.left) == (node, child):
            return [right for _, right in edge.pairs], [left for left, _ in edge.pairs]
    raise AssertionError("a tree's edge is an edge of the view")
