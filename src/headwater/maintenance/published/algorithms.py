"""The algorithms that a view may be maintained by, by name: what each guarantees, needs and costs.

`batched-sweep` is the engine itself and the default. The others are the published ones, each in a file of its own; they
run on the same sources and the same Spark, one message at a time, to see what they cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headwater.maintenance.published.c_strobe import c_strobe
from headwater.maintenance.published.eca import eca
from headwater.maintenance.published.eca_key import eca_key
from headwater.maintenance.published.messages import Algorithm
from headwater.maintenance.published.multi_appearance import multi_appearance
from headwater.maintenance.published.nested_sweep import nested_sweep
from headwater.maintenance.published.strobe import strobe
from headwater.maintenance.published.sweep import parallel_sweep, pipelined_sweep, sides, sweep
from headwater.maintenance.published.version_numbers import self_maintaining, version_numbers
from headwater.maintenance.visit_plan import plan, round_count
from headwater.maintenance.visit_trees import visit_trees
from headwater.maintenance.visits import layout_of
from headwater.model.guarantee import Guarantee
from headwater.model.project import DEFAULT_ALGORITHM
from headwater.views.steps.join import JoinView
from headwater.views.steps.keys import key_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmRequirement:
    """Something a view must have before an algorithm can maintain it. `missing` says what a view lacks, or nothing."""

    name: str
    missing: Callable[[JoinView], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmCost:
    """What an algorithm costs for one transaction that changes one relation, predicted: as a number and as its formula.

    A query is one message to a source, its answer another one. Queries that go out at once make one round.
    """

    queries: float
    rounds: float
    formula: str
    message_size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedAlgorithm:
    """One algorithm: its guarantee, what it needs of a view, what it costs, where it was published.

    `run` is None for the engine itself, which works on whole batches and not on messages. One that `needs_order` is
    given every answer after all transactions that it saw and before all others; the others go by what answers saw.
    """

    name: str
    guarantee: Guarantee
    requirements: tuple[AlgorithmRequirement, ...]
    cost: Callable[[JoinView], AlgorithmCost]
    paper: str
    remark: str
    run: Algorithm | None
    needs_order: bool = True

    def missing(self, view: JoinView) -> tuple[str, ...]:
        """Return what a view lacks for this algorithm."""
        return tuple(lack for requirement in self.requirements if (lack := requirement.missing(view)))


def _many_sources(view: JoinView) -> str:
    sources = sorted({occurrence.relation.name.source for occurrence in view.occurrences})
    return "" if len(sources) == 1 else f"its relations are at {len(sources)} sources: {', '.join(sources)}"


def _missing_keys(view: JoinView) -> str:
    lacking = [
        f"{occurrence.relation.name} has no primary key"
        if not occurrence.relation.key
        else f"the key of {occurrence.alias} ({', '.join(occurrence.relation.key)})"
        for occurrence in view.occurrences
        if not key_outputs(view, occurrence.alias)
    ]
    return f"not among its columns: {'; '.join(lacking)}" if lacking else ""


ONE_SOURCE = AlgorithmRequirement(name="all relations at one source", missing=_many_sources)
KEYS_IN_VIEW = AlgorithmRequirement(
    name="the primary key of every relation among the view's columns", missing=_missing_keys
)


def _linear_cost(view: JoinView) -> AlgorithmCost:
    others = len(view.occurrences) - 1
    return AlgorithmCost(
        queries=others, rounds=others, formula="n - 1 for each changed occurrence", message_size="keys of one step"
    )


def _parallel_cost(view: JoinView) -> AlgorithmCost:
    longest = max(len(side) for one in view.occurrences for side in sides(view, one.alias) or [set()])
    return replace(_linear_cost(view), rounds=longest)


def _nested_cost(view: JoinView) -> AlgorithmCost:
    others = len(view.occurrences) - 1
    return AlgorithmCost(
        queries=others,
        rounds=others,
        formula="at most n - 1 for each changed occurrence, fewer where changes meet",
        message_size="keys of one step, for each change under way",
    )


def _eca_cost(_: JoinView) -> AlgorithmCost:
    return AlgorithmCost(
        queries=1, rounds=1, formula="1", message_size="product over the other relations of 1 + their open changes"
    )


def _eca_key_cost(_: JoinView) -> AlgorithmCost:
    return AlgorithmCost(
        queries=1, rounds=1, formula="1 if it inserts, 0 if it only deletes", message_size="the inserted rows"
    )


def _strobe_cost(view: JoinView) -> AlgorithmCost:
    others = len(view.occurrences) - 1
    return AlgorithmCost(
        queries=others,
        rounds=others,
        formula="n - 1 for each occurrence inserted into, 0 for deletes",
        message_size="keys of one step",
    )


def _c_strobe_cost(view: JoinView) -> AlgorithmCost:
    others = len(view.occurrences) - 1
    return AlgorithmCost(
        queries=others,
        rounds=others,
        formula="(n - 1) (1 + K)^(n - 2) for each occurrence inserted into, 0 for deletes; "
        "K: transactions that delete from each other one meanwhile",
        message_size="keys of one step",
    )


def _batched_cost(view: JoinView) -> AlgorithmCost:
    trees = visit_trees(view)
    return AlgorithmCost(
        queries=sum(tree.visit_count for tree in trees),
        rounds=sum(2 * (len(tree.levels) - 1) for tree in trees),
        formula="n + γ - 1 for a batch of any number of transactions",
        message_size="keys of the batch",
    )


def _most_visits(view: JoinView, *, closure: bool) -> tuple[int, int]:
    """Return how many visits the dearest relation's change costs, and how many rounds the longest takes."""
    appearances: dict[str, list[frozenset[str]]] = {}
    for occurrence in view.occurrences:
        appearances.setdefault(str(occurrence.relation.name), []).append(frozenset({occurrence.alias}))
    layout = layout_of(view, closure=closure)
    visits = max(len(plan(layout, starts)) for starts in appearances.values())
    return visits, max(round_count(layout, starts) for starts in appearances.values())


def _visiting_cost(view: JoinView) -> AlgorithmCost:
    visits, rounds = _most_visits(view, closure=False)
    return AlgorithmCost(
        queries=visits,
        rounds=rounds,
        formula="visits of a minimum plan for all appearances of the changed relation together",
        message_size="keys of all terms, each once",
    )


def _version_cost(view: JoinView) -> AlgorithmCost:
    visits, rounds = _most_visits(view, closure=True)
    return AlgorithmCost(
        queries=visits,
        rounds=rounds,
        formula="visits of a minimum plan in which a source answers all that hangs together there; 0 for deletes by "
        "key and for changes that a foreign key makes irrelevant; + 1 where a concurrent delete hid the way on",
        message_size="keys of all terms, each once; executed keys come back with the rows",
    )


ALGORITHMS: tuple[DescribedAlgorithm, ...] = (
    DescribedAlgorithm(
        name=DEFAULT_ALGORITHM,
        guarantee=Guarantee.COMPLETE,
        requirements=(),
        cost=_batched_cost,
        paper="000, extended",
        remark="every transaction of a batch its own state, in one pass",
        run=None,
    ),
    DescribedAlgorithm(
        name="sweep",
        guarantee=Guarantee.COMPLETE,
        requirements=(),
        cost=_linear_cost,
        paper="000, Figure 4",
        remark="one transaction at a time, one source at a time; errors are taken out locally",
        run=sweep,
    ),
    DescribedAlgorithm(
        name="parallel-sweep",
        guarantee=Guarantee.COMPLETE,
        requirements=(),
        cost=_parallel_cost,
        paper="000, §5.3",
        remark="as sweep, both sides at once",
        run=parallel_sweep,
    ),
    DescribedAlgorithm(
        name="pipelined-sweep",
        guarantee=Guarantee.COMPLETE,
        requirements=(),
        cost=_parallel_cost,
        paper="000, §5.3",
        remark="as sweep, several transactions at once, installed in order",
        run=pipelined_sweep,
    ),
    DescribedAlgorithm(
        name="nested-sweep",
        guarantee=Guarantee.STRONG,
        requirements=(),
        cost=_nested_cost,
        paper="000, Figure 6",
        remark="transactions that meet are swept and installed together, up to a cut-off",
        run=nested_sweep,
    ),
    DescribedAlgorithm(
        name="eca",
        guarantee=Guarantee.STRONG,
        requirements=(ONE_SOURCE,),
        cost=_eca_cost,
        paper="000, §3",
        remark="each query takes back its errors in the open ones; installs when no query is open",
        run=eca,
    ),
    DescribedAlgorithm(
        name="eca-key",
        guarantee=Guarantee.STRONG,
        requirements=(ONE_SOURCE, KEYS_IN_VIEW),
        cost=_eca_key_cost,
        paper="000, §3",
        remark="deletes by key, nothing to compensate; installs when no query is open",
        run=eca_key,
    ),
    DescribedAlgorithm(
        name="strobe",
        guarantee=Guarantee.STRONG,
        requirements=(KEYS_IN_VIEW,),
        cost=_strobe_cost,
        paper="000, §3",
        remark="deletes by key, answers as they come; installs when no query is open",
        run=strobe,
    ),
    DescribedAlgorithm(
        name="c-strobe",
        guarantee=Guarantee.COMPLETE,
        requirements=(KEYS_IN_VIEW,),
        cost=_c_strobe_cost,
        paper="000, §3",
        remark="one transaction at a time; what concurrent deletes took from an answer is asked for again",
        run=c_strobe,
    ),
    DescribedAlgorithm(
        name="version-numbers",
        guarantee=Guarantee.COMPLETE,
        requirements=(),
        cost=_version_cost,
        paper="001",
        remark="answers say what they were read at: also on channels that lose, repeat and reorder messages",
        run=version_numbers,
        needs_order=False,
    ),
    DescribedAlgorithm(
        name="version-numbers-from-view",
        guarantee=Guarantee.COMPLETE,
        requirements=(),
        cost=_version_cost,
        paper="001, §4.3",
        remark="as version-numbers; rows that the view shows whole, by their keys, are read there and not asked for",
        run=self_maintaining,
        needs_order=False,
    ),
    DescribedAlgorithm(
        name="multi-appearance",
        guarantee=Guarantee.COMPLETE,
        requirements=(),
        cost=_visiting_cost,
        paper="003, §4, §4.2",
        remark="a relation that appears several times is asked as if it appeared once; both sides at once",
        run=multi_appearance,
    ),
)

_BY_NAME = {described.name: described for described in ALGORITHMS}
NAMES = tuple(_BY_NAME)


def algorithm(name: str) -> DescribedAlgorithm:
    """Return the algorithm of that name. Asking for one that is not there is a bug of the caller."""
    return _BY_NAME[name]
