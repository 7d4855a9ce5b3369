"""Batched SWEEP: what a batch of ticks (lo, hi] can reach, in one pass, however many transactions it holds.

Law. Stamp the rows a relation had before the batch `lo`, and the signed rows of the transaction with tick s `s`. Joins,
selections and bag projections are linear in each input, so

    change of V at s = sum over joinable combinations of entries whose largest stamp is s

One set-oriented query over stamped rows therefore gives the change at *every* tick of the batch. What is not known is
which old rows the changes can join. This generator finds them: it passes along a tree of the join graph, from the
leaves to the root and back, and asks each occurrence for the rows under the values that its neighbours hold.

    R: +(9, 2) at 7                    S: +(2, 5) at 8, read by the answer
    ask S b = 2  ─────────►            answer (2, 3), (2, 5), which saw 8
    rebase to lo = 6:  (2, 3)          and (2, 5) joins as the batch's own entry, stamped 8

Invariants
  1. Old rows are the rows at `lo`: every answer is rebased before anything is taken from it.
  2. Onward keys come from rebased rows and the batch's own entries, never from a raw answer: a row deleted since must
     still lead on to its partners (4 % of runs are wrong otherwise, simulated).
  3. A row is never asked for through the neighbour it leads to: the pass does not turn back, so it reaches what the
     changes can join and not the whole connected component of the data.
  4. Rows found twice, through two neighbours, count once: both findings are exact parts of the same bag.
  5. A row that fails a selection of its occurrence leads nowhere: nothing is asked for it. One that fails those of
     every occurrence of its relation is left out of answers and log alike, so an answer need not have it.

Guarantee: complete; each tick of the batch gets its own exact change. `strong` stamps all of the batch `hi`.
Cost: at most n + γ - 1 probes for a batch of any size (`visit_trees`); SWEEP needs m (n - 1) for m transactions.
Occurrences that share no equality are not reachable by values: they are read whole when another part has changed.

Paper: 000 (SWEEP, one update at a time), extended (PAPERS.md §5). Erratum there: the figures merge a single concurrent
update; all of them have to be.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import reduce
from typing import Any

from headwater.deltas.extent import Extent
from headwater.deltas.lookup import B, RowRequest, RowResult, restricted
from headwater.maintenance.probe_plan import VisitTree
from headwater.maintenance.rebase import Log, rebase
from headwater.maintenance.visit_trees import visit_trees
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView

Sweep = Generator[Sequence[RowRequest[Any]], Sequence[RowResult[B]], Mapping[RelationName, B]]
_Steps = Generator[Sequence[RowRequest[Any]], Sequence[RowResult[Any]], None]


def batched_sweep(view: JoinView, lo: Tick, changes: Mapping[RelationName, B], log: Log[B]) -> Sweep[B]:
    """Ask for what the changes after `lo` can join, and return the rows of each relation, old ones stamped `lo`.

    `changes` holds the batch's signed rows of every relation of the view, stamped with their ticks.
    """
    reach = _Reach(view, lo, changes, log)
    trees = visit_trees(view)
    touched = [tree for tree in trees if reach.is_touched(tree)]
    for tree in trees:
        if any(other is not tree for other in touched):
            yield from reach.read_whole(tree)
        elif tree in touched:
            yield from reach.pass_over(tree)
    return {relation: reach.rows(relation) for relation in changes}


class _Reach:
    """What one pass has found so far."""

    def __init__(self, view: JoinView, lo: Tick, changes: Mapping[RelationName, B], log: Log[B]) -> None:
        self._lo = lo
        self._changes: Mapping[RelationName, Any] = changes
        self._log: Log[Any] = log
        self._wanted = view.relations
        self._extents = view.extents
        self._selected = {alias: Extent.of(selections) for alias, selections in view.selections.items()}
        self._relation = {occurrence.alias: occurrence.relation.name for occurrence in view.occurrences}
        self._edges = {(edge.left, edge.right): edge.pairs for edge in view.edges} | {
            (edge.right, edge.left): tuple((right, left) for left, right in edge.pairs) for edge in view.edges
        }
        self._found: dict[tuple[RelationName, tuple[str, ...]], Any] = {}
        self._asked: dict[tuple[RelationName, tuple[str, ...]], Any] = {}
        self._through: dict[tuple[str, str], Any] = {}
        """Old rows of the first occurrence that the second one led to."""

    def is_touched(self, tree: VisitTree) -> bool:
        """Tell whether a relation of this part of the join graph has changed."""
        return any(self._changes[self._relation[node]].most for level in tree.levels for node in level)

    def rows(self, relation: RelationName) -> Any:
        """Return the batch's changes of a relation and every old row found of it, once."""
        parts = [found for (owner, _), found in self._found.items() if owner == relation]
        changes = self._changes[relation]
        return changes.plus(reduce(lambda rows, part: rows.widest(part), parts)) if parts else changes

    def read_whole(self, tree: VisitTree) -> _Steps:
        """Ask for all rows of the relations of a part that no equality leads to."""
        relations = dict.fromkeys(self._relation[node] for level in tree.levels for node in level)
        yield from self._ask([(relation, (), None) for relation in relations])

    def pass_over(self, tree: VisitTree) -> _Steps:
        """Pass from the leaves to the root, then from the root to the leaves."""
        for level in reversed(tree.levels[:-1]):
            yield from self._visit([(node, child) for node in level for child in tree.children(node)])
        for level in tree.levels[1:]:
            yield from self._visit([(node, tree.parents[node]) for node in level])

    def _visit(self, visits: Sequence[tuple[str, str]]) -> _Steps:
        """Find the rows of each first occurrence that the second one leads to."""
        questions = []
        for node, neighbour in visits:
            pairs = self._edges[node, neighbour]
            columns = tuple(own for own, _ in pairs)
            relation = self._relation[node]
            leading = self._side(neighbour, away_from=node)
            keys = leading.keys(tuple(theirs for _, theirs in pairs), self._changes[relation], columns)
            questions.append((node, neighbour, relation, columns, keys))
        yield from self._ask([(relation, columns, keys) for _, _, relation, columns, keys in questions])
        for node, neighbour, relation, columns, keys in questions:
            if (relation, columns) in self._found:
                self._through[node, neighbour] = self._found[relation, columns].matching(columns, keys)

    def _side(self, node: str, *, away_from: str) -> Any:
        """Return the entries of an occurrence that some other neighbour, or its own change, led to."""
        rows = self._changes[self._relation[node]]
        for (owner, neighbour), found in self._through.items():
            if owner == node and neighbour != away_from:
                rows = rows.plus(found)
        return rows.selected(self._selected[node])

    def _ask(self, wishes: Sequence[tuple[RelationName, tuple[str, ...], Any]]) -> _Steps:
        """Ask for what was not asked before, and keep the rebased answers."""
        missing: dict[tuple[RelationName, tuple[str, ...]], Any] = {}
        for relation, columns, keys in wishes:
            key = (relation, columns)
            if keys is None:
                if key not in self._found:
                    missing[key] = None
                continue
            new = keys.without(self._asked[key]) if key in self._asked else keys
            if new.most:
                missing[key] = missing[key].plus(new) if key in missing else new
        if not missing:
            return
        probes = tuple(
            RowRequest(relation=relation, wanted=self._wanted[relation], within=restricted(columns, keys))
            for (relation, columns), keys in missing.items()
        )
        answers = yield probes
        for probe, answer in zip(probes, answers, strict=True):
            key = (probe.relation, probe.columns)
            rows = rebase(probe, answer, self._log, self._lo).selected(self._extents[probe.relation])
            self._found[key] = self._found[key].plus(rows) if key in self._found else rows
            if probe.keys is not None:
                self._asked[key] = self._asked[key].plus(probe.keys) if key in self._asked else probe.keys
