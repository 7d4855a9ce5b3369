"""Play a scenario: move by move, with what follows from each, and the verdict at the end.

The algorithm that a scenario is written for plays it strictly: a move that cannot happen is an error, and so is a
result that the scenario does not have. Any other one plays the same moves as far as they concern it: if it has
no open query, a source has nothing to answer, and the move is skipped. In the end all messages arrive, so that every
history is graded to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from headwater.deltas.compare import Bag
from headwater.judge.grade import Verdict, grade_sequence
from headwater.maintenance.published.algorithms import DescribedAlgorithm
from headwater.model.guarantee import Guarantee
from headwater.model.relation import Relation, RelationName
from headwater_lab.entrants import entrant, runnable
from headwater_lab.errors import InvalidScenario
from headwater_lab.grading import grade_in_any_order
from headwater_lab.in_memory.bag import Row
from headwater_lab.ledger import Rows, added
from headwater_lab.scenario import CommitMove, Finish, Move, Receive, Scenario, ScenarioBlock, Serve
from headwater_lab.scenario_text import format_move
from headwater_lab.story import tell_all
from headwater_lab.world import Committed, World, WorldSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedMove:
    """A move as it was played: the lines that tell what followed. `passed_over`: it did not concern the algorithm."""

    move: str
    happened: tuple[str, ...]
    passed_over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A block after which something else happened than the scenario says: both, line by line."""

    line: int
    told: tuple[str, ...]
    happened: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioReplay:
    """A scenario as one algorithm played it, and what it is worth.

    `expected` is what the scenario expects of this algorithm, None if nothing; `any_order` is None if there are too
    many orders to look at.
    """

    scenario: str
    title: str
    algorithm: str
    claim: Guarantee
    remark: str
    sql: str
    relations: Mapping[str, Bag]
    start: Bag
    moves: tuple[PlayedMove, ...]
    right: tuple[Bag, ...]
    shown: tuple[Bag, ...]
    verdict: Verdict
    any_order: Guarantee | None
    expected: Guarantee | None
    departures: tuple[Departure, ...]

    @property
    def as_expected(self) -> bool:
        """Whether everything happened as told, with the guarantee expected, or else at least the one claimed."""
        found = self.verdict.guarantee
        return not self.departures and (found >= self.claim if self.expected is None else found == self.expected)


def replay(scenario: Scenario, described: DescribedAlgorithm) -> ScenarioReplay:
    """Play a scenario to its end."""
    world = World(scenario.setting, runnable(described, scenario.setting.view))
    to_the_letter = scenario.teller == described.name
    moves: list[PlayedMove] = []
    departures: list[Departure] = []
    for block in scenario.blocks:
        played = [_play_move(scenario, world, move, to_the_letter=to_the_letter) for move in block.moves]
        moves += played
        departures += _departure(block, played) if to_the_letter else ()
    if not world.is_quiet:
        moves.append(_play_move(scenario, world, Finish(), to_the_letter=False))
    right, shown = world.right_states(), world.shown_states()
    setting = scenario.setting
    return ScenarioReplay(
        scenario=scenario.name,
        title=scenario.title,
        algorithm=described.name,
        claim=described.guarantee,
        remark=described.remark,
        sql=setting.view.sql,
        relations={_heading(setting, name): dict(setting.rows.get(name, {})) for name in setting.catalog},
        start=dict(setting.recomputed(setting.rows)),
        moves=tuple(moves),
        right=tuple(dict(state) for state in right),
        shown=tuple(dict(state) for state in shown),
        verdict=grade_sequence(right, shown),
        any_order=grade_in_any_order(world),
        expected=scenario.expected.get(described.name),
        departures=tuple(departures),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What another algorithm made of the same scenario: what it claims, what was expected, what was found."""

    algorithm: str
    claim: Guarantee
    expected: Guarantee | None
    found: Guarantee
    any_order: Guarantee | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """A replay, and how the others that the scenario expects something of did."""

    replay: ScenarioReplay
    others: tuple[Standing, ...] = ()

    @property
    def as_expected(self) -> bool:
        """Whether everybody did what the scenario expects."""
        return self.replay.as_expected and all(other.found == other.expected for other in self.others)


def replay_all(scenario: Scenario, described: DescribedAlgorithm, *, others: bool) -> ReplayResult:
    """Play a scenario with one algorithm, and, if asked, with the others that it expects something of."""
    names = [name for name in scenario.expected if name != described.name] if others else []
    played = [replay(scenario, entrant(name)) for name in names]
    return ReplayResult(
        replay=replay(scenario, described),
        others=tuple(
            Standing(
                algorithm=one.algorithm,
                claim=one.claim,
                expected=one.expected,
                found=one.verdict.guarantee,
                any_order=one.any_order,
            )
            for one in played
        ),
    )


def _heading(setting: WorldSetting, name: RelationName) -> str:
    """Return a relation with its columns, and which of them the view needs: others never travel."""
    columns, needed = setting.catalog[name].column_names, setting.view.relations.get(name, ())
    needs = "" if needed == columns else f", of which it needs {', '.join(needed) or 'none'}"
    return f"{name} ({', '.join(columns)}){needs}"


def _departure(block: ScenarioBlock, played: list[PlayedMove]) -> Iterator[Departure]:
    happened = tuple(line for move in played for line in move.happened)
    if block.told is not None and block.told != happened:
        yield Departure(line=block.line, told=block.told, happened=happened)


def _play_move(scenario: Scenario, world: World, move: Move, *, to_the_letter: bool) -> PlayedMove:
    already, before = len(world.events), world.state
    reason = _perform(world, move, to_the_letter=to_the_letter)
    if reason and to_the_letter:
        raise InvalidScenario(
            f'scenario "{scenario.name}", line {move.line}: "{format_move(move)}" cannot be played',
            code="HW-715",
            detail=f"{reason}, as {scenario.teller} plays it",
            hint="put the move where there is something to answer or to receive",
        )
    happened = tuple(tell_all(scenario.setting.view, world.events[already:], before))
    return PlayedMove(move=format_move(move), happened=happened, passed_over=bool(reason))


def _perform(world: World, move: Move, *, to_the_letter: bool) -> str:
    """Make a move, and return why it cannot be made, if so."""
    match move:
        case CommitMove():
            return _commit(world, move)
        case Serve():
            if not world.queries[move.source]:
                return f"{move.source} has no query to answer"
            world.serve(move.source)
        case Receive(version=None):
            if not world.channels[move.source]:
                return f"nothing of {move.source} is on its way"
            world.deliver(move.source)
        case Receive():
            return _receive_upto(world, move, to_the_letter=to_the_letter)
        case Finish():
            finish(world)
    return ""


def _commit(world: World, move: CommitMove) -> str:
    after = {name: added(world.rows[name], change) for name, change in move.changes.items()}
    for name, rows in after.items():
        if any(count < 0 for count in rows.values()):
            return f"{name} does not hold what is deleted"
    if broken := broken_reference(world.setting.catalog, {**world.rows, **after}):
        return broken
    world.commit(move.source, move.changes)
    return ""


def _receive_upto(world: World, move: Receive, *, to_the_letter: bool) -> str:
    """Deliver a source's messages up to one of its transactions. In a strict replay, that must be the next one."""
    channel = world.channels[move.source]
    places = [
        place for place, sent in enumerate(channel) if isinstance(sent, Committed) and sent.version == move.version
    ]
    if not places or (to_the_letter and places != [0]):
        return f"{move.source}@{move.version} is not the next message of {move.source}"
    for _ in range(places[0] + 1):
        world.deliver(move.source)
    return ""


def finish(world: World) -> None:
    """Let everything arrive and be answered, source by source, until nothing is on its way."""
    while not world.is_quiet:
        for source in world.setting.sources:
            while world.queries[source]:
                world.serve(source)
            while world.channels[source]:
                world.deliver(source)


def broken_reference(catalog: Mapping[RelationName, Relation], rows: Rows) -> str:
    """Return which reference of which relation some rows break, or nothing if they keep all of them."""
    for name, relation in catalog.items():
        for reference in relation.foreign_keys:
            parent = catalog[reference.parent]
            there = set(_values(parent, reference.parent_columns, rows.get(parent.name, {})))
            if not there.issuperset(_values(relation, reference.columns, rows.get(name, {}))):
                return f"{name} refers to what {parent.name} does not hold"
    return ""


def _values(relation: Relation, columns: tuple[str, ...], rows: Iterable[Row]) -> list[Row]:
    places = [relation.column_names.index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in rows]
