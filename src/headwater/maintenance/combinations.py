"""How many combinations of entries a batch would join, and where to cut it so that a hot key does not blow up.

Signed stamps also combine versions of rows that never met: a key with a thousand versions on either side of a join has
a million combinations, of which a few thousand are real. Cut in k pieces, it has k times fewer. The pieces of a batch
need no new probes: what lies before a piece is the old rows and the pieces before it, netted.

Where bags are held they are counted here, and where they are stored by a query (`combinations_sql`). Of stored entries
more combinations are allowed: they are joined on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.signed_bag import SignedBag
from headwater.maintenance.probe_plan import VisitTree
from headwater.maintenance.visit_trees import visit_trees
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater.views.text.spark_text import quoted

MOST_COMBINATIONS = 4_000_000
_MOST_PER_ENTRY = 16
_FEW_ROWS = 200
_WEIGHT = "_weight"
_BELOW = "_below"

Bags = Mapping[RelationName, Any]
"""Bags of one implementation, or of several that may meet."""
Estimate = Callable[[JoinView, Bags], int]
"""Returns about how many combinations of entries a join has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPiece:
    """A part (after, upto] of a batch: what is joined for it, and about how many combinations that has."""

    after: Tick
    upto: Tick
    bags: Bags
    combinations: int


def most_combinations(bags: Bags) -> int:
    """Return how many combinations are joined at once: of entries that are held, and of stored ones."""
    is_held = all(bag.held is not None for bag in bags.values())
    return (
        MOST_COMBINATIONS
        if is_held
        else max(MOST_COMBINATIONS, _MOST_PER_ENTRY * sum(bag.most for bag in bags.values()))
    )


def pieces(
    view: JoinView, bags: Bags, lo: Tick, hi: Tick, estimate: Estimate, most: int = MOST_COMBINATIONS
) -> Iterator[BatchPiece]:
    """Yield consecutive parts of a batch, each with few enough combinations."""
    left = bags
    while lo < hi:
        upto = hi
        part = _upto(left, upto)
        while (found := estimate(view, part)) > most and upto - lo > 1:
            upto = Tick(lo + (upto - lo) // 2)
            part = _upto(left, upto)
        yield BatchPiece(after=lo, upto=upto, bags=part, combinations=found)
        if upto < hi:  # from the whole: on what was left before, the plan of a stored bag would double with every piece
            left = {relation: _fold(bag, upto) for relation, bag in bags.items()}
        lo = upto


def _upto(bags: Bags, upto: Tick) -> Bags:
    return {relation: bag.upto(upto) for relation, bag in bags.items()}


def _fold(bag: SignedBag[Any], upto: Tick) -> SignedBag[Any]:
    """Return the bag with everything up to a tick netted into old rows of that tick."""
    return bag.upto(upto).restamped(upto).net().plus(bag.after(upto))


def estimate_combinations(view: JoinView, bags: Mapping[RelationName, ArrowBag]) -> int:
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


def combinations_sql(view: JoinView, tables: Mapping[RelationName, str]) -> str:
    """Return the query that gives the same as one number, a double, over tables named by relation."""
    sums = [
        f"(SELECT COALESCE(SUM({_WEIGHT}), 0D) FROM ({_weigh_sql(view, tables, tree, tree.root)}) AS weighed)"
        for tree in visit_trees(view)
    ]
    return f"SELECT {' * '.join(sums)} AS combinations"


def _weigh_sql(view: JoinView, tables: Mapping[RelationName, str], tree: VisitTree, node: str) -> str:
    """Return the query for the rows of an occurrence with the number of combinations below each."""
    occurrence = next(one for one in view.occurrences if one.alias == node)
    source, weights = [f"{quoted(tables[occurrence.relation.name])} AS own"], ["1D"]
    for number, child in enumerate(tree.children(node)):
        own, theirs = _join_columns(view, node, child)
        names = [f"k{place}" for place in range(len(own))]
        by = ", ".join(map(quoted, theirs))
        keys = ", ".join(f"{quoted(column)} AS {name}" for column, name in zip(theirs, names, strict=True))
        below = (
            f"SELECT {keys}, SUM({_WEIGHT}) AS {_BELOW} FROM ({_weigh_sql(view, tables, tree, child)}) GROUP BY {by}"
        )
        same = " AND ".join(f"own.{quoted(column)} = c{number}.{name}" for column, name in zip(own, names, strict=True))
        source.append(f"JOIN ({below}) AS c{number} ON {same}")
        weights.append(f"c{number}.{_BELOW}")
    return f"SELECT own.*, {' * '.join(weights)} AS {_WEIGHT} FROM {' '.join(source)}"


def _weigh(view: JoinView, bags: Mapping[RelationName, ArrowBag], tree: VisitTree, node: str) -> pa.Table:
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
            names=[*own, _BELOW],
        )
        joined = weighed.select([*dict.fromkeys([*weighed.column_names])]).join(typed, own, join_type="inner")
        product = pc.multiply(joined[_WEIGHT], joined[_BELOW])
        weighed = joined.drop_columns([_WEIGHT, _BELOW]).append_column(_WEIGHT, product)
    return weighed


def _join_columns(view: JoinView, node: str, child: str) -> tuple[list[str], list[str]]:
    for edge in view.edges:
        if (edge.left, edge.right) == (node, child):
            return [left for left, _ in edge.pairs], [right for _, right in edge.pairs]
        if (edge.right, edge.left) == (node, child):
            return [right for _, right in edge.pairs], [left for left, _ in edge.pairs]
    raise AssertionError("a tree's edge is an edge of the view")
