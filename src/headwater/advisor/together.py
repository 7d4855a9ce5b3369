"""Choose for several views together: a replica that several of them read is written once, and paid for once.

    cost(K1, ..., Kn)  =  Σ views: cost of K_v without the writes of shared replicas  +  Σ shared replicas kept: writes

Each view alone would pay all of it, and so give up a replica that is cheap for all. The search begins with what each
view chooses alone. Then it lets others pay for one more shared replica, the one that saves most, until none saves
anything: every view chooses again as if that replica cost it nothing, and its writes are added once.

What is not done: sets in which two replicas save only together are not looked for. Lineage of steps that views share is
kept once by the engine, and paid by each of them here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headwater.advisor.algorithms.choice import Choice
from headwater.advisor.candidates import Auxiliary, AuxiliaryKind, Kept
from headwater.advisor.cost_model import CostModel
from headwater.advisor.structure import Structure

Choose = Callable[[CostModel], Choice]

NOISE = 0.05
"""What is cheaper by less than this share of today's cost changes nothing: two measurements differ by as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenTogether:
    """What each view keeps, what all of it costs, and how many sets were priced for each view."""

    kept: Mapping[str, Kept]
    total: float
    priced_counts: Mapping[str, int]


def choose_together(structures: Mapping[str, Structure], choose: Choose) -> ChosenTogether:
    """Return what to keep for all views."""
    search = _SharedSearch(structures, choose)
    best, paid = search.chosen(frozenset()), frozenset[str]()
    while True:
        tried = [(search.chosen(paid | {name}), name) for name in sorted(search.shared - paid)]
        better = [(chosen.total, name, chosen) for chosen, name in tried if chosen.total < best.total]
        if not better:
            return best
        _, name, best = min(better, key=lambda one: one[:2])
        paid |= {name}


def cost_together(structures: Mapping[str, Structure], kept: Mapping[str, Kept]) -> float:
    """Return what it costs to keep these tables for these views, each shared replica paid for once."""
    shared = shared_relations(structures)
    models = {view: CostModel(structure, shared) for view, structure in structures.items()}
    writes: dict[str, float] = {}
    for view, structure in structures.items():
        paying = CostModel(structure)
        for relation in structure.relations:
            if relation.name in shared:
                cost = paying.replica_writes(relation, kept[view])
                writes[relation.name] = max(cost, writes.get(relation.name, 0.0))
    return sum(model.total(kept[view]) for view, model in models.items()) + sum(writes.values())


def shared_relations(structures: Mapping[str, Structure]) -> frozenset[str]:
    """Return the names of the relations that more than one view reads."""
    readers: dict[str, int] = {}
    for structure in structures.values():
        for relation in structure.relations:
            readers[relation.name] = readers.get(relation.name, 0) + 1
    return frozenset(name for name, count in readers.items() if count > 1)


def paid_by_others(view: str, kept: Mapping[str, Kept]) -> frozenset[str]:
    """Return the relations whose replicas a view that comes before this one pays for."""
    before = list(kept)[: list(kept).index(view)]
    return frozenset(one.of for name in before for one in kept[name] if one.kind is AuxiliaryKind.REPLICA)


def is_worth_it(today: float, best: float) -> bool:
    """Tell whether a better choice is better by more than measurements differ.

    >>> is_worth_it(100, 94), is_worth_it(100, 97)
    (True, False)
    """
    return today - best > NOISE * today


class _SharedSearch:
    """Choices for each view, by what others pay for: each is made once."""

    def __init__(self, structures: Mapping[str, Structure], choose: Choose) -> None:
        self.shared = shared_relations(structures)
        self._structures = structures
        self._choose = choose
        self._made: dict[tuple[str, frozenset[str]], Choice] = {}

    def chosen(self, paid: frozenset[str]) -> ChosenTogether:
        choices = {view: self._choice(view, paid) for view in self._structures}
        kept = {view: self._with_paid(view, choice.kept, paid) for view, choice in choices.items()}
        return ChosenTogether(
            kept=kept,
            total=cost_together(self._structures, kept),
            priced_counts={view: choice.priced_count for view, choice in choices.items()},
        )

    def _choice(self, view: str, paid: frozenset[str]) -> Choice:
        structure = self._structures[view]
        own = paid & {relation.name for relation in structure.relations}
        if (view, own) not in self._made:
            self._made[view, own] = self._choose(CostModel(structure, own))
        return self._made[view, own]

    def _with_paid(self, view: str, kept: Kept, paid: frozenset[str]) -> Kept:
        """Return a choice without a replica that costs the view nothing and saves it nothing."""
        model = CostModel(self._structures[view], paid)
        for name in sorted(paid):
            replica = Auxiliary(name, AuxiliaryKind.REPLICA)
            if replica in kept and model.total(kept - {replica}) <= model.total(kept):
                kept -= {replica}
        return kept
