"""The visit trees of a view: over its equalities, but for those that only test what others determine.

        lineitem ──► orders ──► customer            an arrow leads onto a key: a row there has at most one partner
            └──────► supplier    ║
                         ╚═══════╝                  nationkey = nationkey: onto no key

Where one occurrence determines two others along arrows, an equality between these two leads from a row of the one to
many of the other that the first never joins: every customer of a supplier's nation. It would make a tree with fewer
inner nodes, and a sweep that asks for most of two relations. So it is left out here; as a condition it is tested all
the same. What is left connects whatever was connected before, and of that the trees have the fewest visits
(`probe_plan`): n + γ - 1, where γ is that of the equalities that are left.
"""

from __future__ import annotations

from headwater.maintenance.probe_plan import VisitTree, plan_visits
from headwater.views.steps.join import Edge, JoinView


def visit_trees(view: JoinView) -> tuple[VisitTree, ...]:
    """Return a tree of fewest visits for each connected part of a view's join graph."""
    return plan_visits([o.alias for o in view.occurrences], [(edge.left, edge.right) for edge in leading_edges(view)])


def leading_edges(view: JoinView) -> tuple[Edge, ...]:
    """Return the edges that rows are found along."""
    onto = {(a, b) for edge in view.edges for a, b in _onto_keys(view, edge)}
    determined = [_determined(occurrence.alias, onto) for occurrence in view.occurrences]
    return tuple(
        edge
        for edge in view.edges
        if _onto_keys(view, edge) or not any({edge.left, edge.right} <= reached for reached in determined)
    )


def _onto_keys(view: JoinView, edge: Edge) -> list[tuple[str, str]]:
    """Return the directions in which an edge leads onto a key."""
    found = []
    for place, (start, end) in enumerate(((edge.right, edge.left), (edge.left, edge.right))):
        key = view.occurrence(end).relation.key
        if key and set(key) <= {pair[place] for pair in edge.pairs}:
            found.append((start, end))
    return found


def _determined(start: str, onto: set[tuple[str, str]]) -> set[str]:
    """Return an occurrence and those of which each of its rows has at most one partner."""
    reached = {start}
    while more := {end for begin, end in onto if begin in reached} - reached:
        reached |= more
    return reached
