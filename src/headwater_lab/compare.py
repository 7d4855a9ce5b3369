"""Compare algorithms: every one of them over the same recordings, as sources, update rate and deletes vary.

One thing varies at a time, the others stay at their middle values. An algorithm that needs all relations at one source
plays the same transactions there; one that cannot maintain the view either way is left out, with the reason. A run that
misses the guarantee it claims is kept as a scenario, so that it can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from headwater.maintenance.published.algorithms import DescribedAlgorithm
from headwater_lab.any_order import LARGEST_LATTICE
from headwater_lab.grading import states_by_vector
from headwater_lab.measure import MeasuredAlgorithm, Right, measure, rounds_per_update
from headwater_lab.scenario import Scenario, ScenarioBlock, moves_of
from headwater_lab.shapes import SHAPES
from headwater_lab.timed import Conditions, Recording, at_one_source, play_recording, record
from headwater_lab.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A line of Table 1 of paper 000, as printed: what it claims of an algorithm, to stand beside what is measured."""

    architecture: str
    consistency: str
    messages: str
    comments: str


TABLE_1: Mapping[str, Claim] = {
    "eca": Claim(
        architecture="centralized",
        consistency="strong",
        messages="O(1)",
        comments="remote compensation, quadratic message size, requires quiescence",
    ),
    "strobe": Claim(
        architecture="distributed",
        consistency="strong",
        messages="O(n)",
        comments="unique key assumption, requires quiescence",
    ),
    "c-strobe": Claim(
        architecture="distributed",
        consistency="complete",
        messages="O(n!)",
        comments="unique key assumption, not scalable",
    ),
    "sweep": Claim(architecture="distributed", consistency="complete", messages="O(n)", comments="local compensation"),
    "nested-sweep": Claim(
        architecture="distributed",
        consistency="strong",
        messages="O(n)",
        comments="local compensation, requires non-interference",
    ),
}
"""The paper's lines, by the names that the algorithms have here."""


T = TypeVar("T")

_MOST_QUERIES_PER_UPDATE = 100
LEAST_RELATIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePlan:
    """What is compared: the values that are tried, and the seed that everything comes from."""

    seed: int
    source_counts: tuple[int, ...]
    intervals: tuple[float, ...]
    deletes: tuple[float, ...]
    transaction_count: int
    shapes: tuple[str, ...] = tuple(SHAPES)

    @property
    def middle(self) -> Conditions:
        """The conditions of the table: the middle value of each."""
        return Conditions(
            source_count=_middle(self.source_counts),
            interval=_middle(self.intervals),
            deletes=_middle(self.deletes),
            transaction_count=self.transaction_count,
            shape=self.shapes[0],
        )

    @property
    def tables(self) -> tuple[Conditions, ...]:
        """The conditions of the tables: the middle, in each shape. A shape has three relations or more."""
        count = max(self.middle.source_count, LEAST_RELATIONS)
        others = (replace(self.middle, shape=shape, source_count=count) for shape in self.shapes[1:])
        return self.middle, *others

    @property
    def all_conditions(self) -> tuple[Conditions, ...]:
        """Every set of conditions, each once: the middle, what differs from it in one thing, and the other shapes."""
        middle = self.middle
        varied = [middle]
        varied += [replace(middle, source_count=value) for value in self.source_counts]
        varied += [replace(middle, interval=value) for value in self.intervals]
        varied += [replace(middle, deletes=value) for value in self.deletes]
        return tuple(dict.fromkeys([*varied, *self.tables]))


def _middle(values: Sequence[T]) -> T:
    return values[len(values) // 2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What is claimed of an algorithm before it runs: its cost by our formula, and the paper's line, if it has one."""

    algorithm: str
    queries: float
    rounds: float
    formula: str
    message_size: str
    requirements: tuple[str, ...]
    table_1: Claim | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCell:
    """What was measured under one set of conditions, by algorithm in the order of the registry."""

    conditions: Conditions
    view: str
    predicted: tuple[Predicted, ...]
    measured: tuple[MeasuredAlgorithm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that was measured, and which algorithms were left out for what reason."""

    plan: ComparePlan
    cells: tuple[ComparedCell, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def middle(self) -> ComparedCell:
        """The cell of the first table."""
        return self.tables[0]

    @property
    def tables(self) -> tuple[ComparedCell, ...]:
        """The cells of the tables, one for each shape."""
        by_conditions = {cell.conditions: cell for cell in self.cells}
        return tuple(by_conditions[conditions] for conditions in self.plan.tables)


def compare_all(
    plan: ComparePlan, entrants: Sequence[DescribedAlgorithm], progress: Callable[[Conditions], None]
) -> tuple[Comparison, tuple[Scenario, ...]]:
    """Play every algorithm under every set of conditions. Return what was measured, and the runs that missed a claim.

    `progress` is called with each set of conditions before it begins.
    """
    cells: list[ComparedCell] = []
    missed: list[Scenario] = []
    for conditions in plan.all_conditions:
        progress(conditions)
        largest_lattice = LARGEST_LATTICE if conditions == plan.middle else conditions.transaction_count + 1
        stages = _stages(conditions, plan.seed)
        measured, failed = _play_all(stages, entrants, conditions, largest_lattice)
        placed = [(described, _stage(described, stages)) for described in entrants]
        predicted = tuple(_predict(described, stage) for described, stage in placed if stage is not None)
        view = stages[0].setting.view.sql
        cells.append(ComparedCell(conditions=conditions, view=view, predicted=predicted, measured=measured))
        missed += failed
    stages = _stages(plan.middle, plan.seed)
    placed = [(described, _stage(described, stages)) for described in entrants]
    comparison = Comparison(
        plan=plan,
        cells=tuple(cells),
        left_out=tuple(
            (described.name, "; ".join(described.missing(stages[-1].setting.view)))
            for described, stage in placed
            if stage is None
        ),
    )
    return comparison, tuple(missed)


def _stages(conditions: Conditions, seed: int) -> tuple[Recording, ...]:
    """Return one recording on two stages: with a source for each relation, and with all relations at one source."""
    recording = record(conditions, seed)
    return recording, at_one_source(recording)


def _stage(described: DescribedAlgorithm, stages: tuple[Recording, ...]) -> Recording | None:
    """Return where an algorithm can play: as it is, at one source, or nowhere."""
    return next((stage for stage in stages if not described.missing(stage.setting.view)), None)


def _predict(described: DescribedAlgorithm, stage: Recording) -> Predicted:
    cost = described.cost(stage.setting.view)
    return Predicted(
        algorithm=described.name,
        queries=cost.queries,
        rounds=cost.rounds,
        formula=cost.formula,
        message_size=cost.message_size,
        requirements=tuple(requirement.name for requirement in described.requirements),
        table_1=TABLE_1.get(described.name),
    )


def _play_all(
    stages: tuple[Recording, ...], entrants: Sequence[DescribedAlgorithm], conditions: Conditions, largest_lattice: int
) -> tuple[tuple[MeasuredAlgorithm, ...], list[Scenario]]:
    """Play every algorithm that can play, and return what was measured, and the runs that missed what they claim."""
    states = [states_by_vector(one.setting, ((t.source, t.changes) for t in one.transactions)) for one in stages]
    most_queries = _MOST_QUERIES_PER_UPDATE * conditions.transaction_count
    measured: list[MeasuredAlgorithm] = []
    missed: list[Scenario] = []
    for described in entrants:
        stage = _stage(described, stages)
        if stage is None:
            continue
        assert described.run is not None, "every algorithm of the lab runs on messages"
        timed = play_recording(stage, described.run, most_queries=most_queries)
        place = stages.index(stage)
        right = Right(states=states[place], largest_lattice=largest_lattice)
        rounds = rounds_per_update(stage, described.run)
        one = measure(described.name, described.guarantee, timed, right, rounds=rounds, one_source=place > 0)
        measured.append(one)
        if not one.kept and not one.gave_up:
            missed.append(_as_scenario(described, timed.world, one, conditions, stage.seed))
    return tuple(measured), missed


def _as_scenario(
    described: DescribedAlgorithm, world: World, one: MeasuredAlgorithm, conditions: Conditions, seed: int
) -> Scenario:
    """Return the interleaving of a run as a scenario. It expects what is claimed, so that a replay shows the miss."""
    size, interval, deletes = conditions.source_count, conditions.interval, conditions.deletes
    said = f"{conditions.shape} of {size}, interval {interval}, {deletes:.0%} deletes"
    return Scenario(
        name=f"{described.name}_{conditions.shape}_{size}_{interval}_{deletes}_{seed}",
        about=(
            f"{described.name} claims {one.claim.value} and was {one.guarantee.value}: {said}, seed {seed}.",
            "Written by `headwater lab compare`.",
        ),
        setting=world.setting,
        expected={described.name: described.guarantee},
        blocks=(ScenarioBlock(moves=moves_of(world)),),
    )
