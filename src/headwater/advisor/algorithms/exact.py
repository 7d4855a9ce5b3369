"""The cheapest set, without pricing them all: solve every segment on its own, keep what may still win, and bound.

Law. What a segment costs depends on what is kept of it and, of everything below an operand, only on what the few
questions cost that the segment may put to that operand. Which questions these are does not depend on what is kept
(`flow`). So everything that may be kept below a node comes down to states

    (what is spent below,  what each question from above costs)

and the cost of the whole rises with every one of these numbers: it is made of sums, of minima and of shares of them.

1. Of two states of a node, one that is nowhere cheaper can be dropped: in any set, the other takes its place and the
   whole costs no more. This holds for operands that were added up partly, too: their sums are such numbers.
2. A segment with its group table answers from that: all its states answer alike, and the one that spends least remains.
   Without it, a sum over some operands can be dropped if, even with the cheapest of all operands to come, it would end
   in a state that the one with the group table beats.
3. A relation or segment that is read twice is one thing with two readers. What is kept of those is decided first, one
   after the other; the rest is solved for each decision. As long as some are undecided, each of their questions is
   answered with or without the undecided table, at the lower cost, and the table is written at no cost: a bound from
   below. Where that is not under the best answer known (at first that of greedy and three-step), no decision is looked
   at further.

Each step drops only what cannot win, so the answer costs what the cheapest set costs.∎

Cost. Groups answered from a group table leave one state, so for most views the work is a small number of states times
the number of segments: 2 levels of fan-out 5 take a second, where paper 004's exhaustive search never ended. In the
worst case it is exponential, in the fan-out of segments over relations and in the number of things read twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.advisor.algorithms.choice import Choice
from headwater.advisor.algorithms.three_step import combined
from headwater.advisor.candidates import NOTHING, Auxiliary, Kept, search_space
from headwater.advisor.cost_model import CostModel, Fetched
from headwater.advisor.flow import Question
from headwater.advisor.structure import Node, RelationNode, SegmentNode


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What is kept in a part of the view: what is spent there, and what the questions from above cost."""

    spent: float
    answers: tuple[float, ...]
    kept: Kept

    def beats(self, other: _State) -> bool:
        """Tell whether this is nowhere dearer."""
        return self.spent <= other.spent and all(
            mine <= its for mine, its in zip(self.answers, other.answers, strict=True)
        )


def exact(model: CostModel) -> Choice:
    """Return a cheapest set."""
    search = _Search(model)
    search.decide(NOTHING, search.shared_choices)
    kept = search.best.kept
    return Choice(kept=kept, total=model.total(kept), priced_count=search.priced_count)


class _Search:
    def __init__(self, model: CostModel) -> None:
        self.model = model
        shared = model.structure.shared_names
        self.best = combined(model) if shared else Choice(kept=NOTHING, total=float("inf"), priced_count=0)
        self.priced_count = self.best.priced_count
        self.shared = [node for node in model.structure.nodes if node.name in shared]
        self.choices = search_space(model.structure).choices
        self.shared_choices = [choice for choice in self.choices if choice[0].of in shared]
        self.questions = _questions(model)

    def decide(self, decided: Kept, undecided: Sequence[tuple[Auxiliary, ...]]) -> None:
        """Decide what is kept of what is read twice, as far as it may lead to something better than the best known."""
        solved = self.solve(decided, undecided)
        if solved.spent >= self.best.total:
            return
        if not undecided:
            self.best = Choice(kept=solved.kept, total=solved.spent, priced_count=0)
            return
        choice, *rest = undecided
        self.decide(decided, rest)
        for table in choice:
            self.decide(decided | {table}, rest)

    def solve(self, decided: Kept, undecided: Sequence[tuple[Auxiliary, ...]]) -> _State:
        """Return the cheapest state of the view, with the undecided tables available and free."""
        free = frozenset(table for choice in undecided for table in choice)
        fixed = _Fixed(decided=decided, available=decided | free, names=frozenset(node.name for node in self.shared))
        (state,) = self.states(self.model.structure.top, fixed)
        spent = sum(self.spent_on(node, fixed) for node in self.shared)
        return _State(spent=state.spent + spent, answers=(), kept=state.kept | decided)

    def spent_on(self, node: Node, fixed: _Fixed) -> float:
        """Return the cost of something that is read twice: its writes as decided, the rest with all tables."""
        model = self.model
        if isinstance(node, RelationNode):
            return model.replica_writes(node, fixed.decided)
        fetched = self.least_of(node, fixed)
        spent = model.tracing(node, fixed.available, fetched) + model.updating(node, fixed.available, fetched)
        return spent + model.segment_writes(node, fixed.decided)

    def least(self, node: Node, fixed: _Fixed, question: Question) -> float:
        """Return the least that a question to something read twice may cost, however the undecided is decided."""
        model = self.model
        if isinstance(node, RelationNode):
            return min(model.fetch(node, kept, question) for kept in (fixed.decided, fixed.available))
        found = []
        if model.is_written(node, fixed.available):
            found.append(model.fetch(node, fixed.available, question))
        if not model.is_written(node, fixed.decided):
            computed = model.members(node, fixed.available, question, self.least_of(node, fixed))
            found.append(computed + model.structure.warehouse.compute_cost)
        return min(found)

    def least_of(self, segment: SegmentNode, fixed: _Fixed) -> Fetched:
        """Return the least that questions to a segment's operands may cost."""
        return lambda index, question: self.least(segment.operands[index], fixed, question)

    def states(self, node: Node, fixed: _Fixed) -> list[_State]:
        """Return the states of a node that may win."""
        questions = self.questions[node.name]
        if node.name in fixed.names:
            answers = tuple(self.least(node, fixed, question) for question in questions)
            return [_State(spent=0.0, answers=answers, kept=NOTHING)]
        if isinstance(node, RelationNode):
            return _undominated([self._of_relation(node, kept, questions) for kept in self._options(node)])
        operands = [self.states(operand, fixed) for operand in node.operands]
        written = [option for option in self._options(node) if self.model.is_written(node, option)]
        with_groups = (self._with_groups(node, option, operands) for option in written)
        best = min(with_groups, key=lambda state: state.spent, default=None)
        others = [option for option in self._options(node) if option not in written]
        found = [state for option in others for state in self._without_groups(node, option, operands, best)]
        return _undominated(found if best is None else [best, *found])

    def _options(self, node: Node) -> list[Kept]:
        """Return every way to keep tables of one node."""
        options: list[Kept] = [NOTHING]
        for choice in self.choices:
            if choice[0].of == node.name:
                options = [kept | more for kept in options for more in (NOTHING, *(frozenset({one}) for one in choice))]
        return options

    def _of_relation(self, relation: RelationNode, kept: Kept, questions: Sequence[Question]) -> _State:
        self.priced_count += 1
        answers = tuple(self.model.fetch(relation, kept, question) for question in questions)
        return _State(spent=self.model.replica_writes(relation, kept), answers=answers, kept=kept)

    def _with_groups(self, segment: SegmentNode, option: Kept, operands: Sequence[list[_State]]) -> _State:
        """Return the cheapest state of a segment whose groups are kept: its answers come from them."""
        summing = _Summing(self, segment, option)
        best = min(summing.sums(operands, None), key=lambda state: state.spent)
        answers = tuple(self.model.fetch(segment, option, question) for question in self.questions[segment.name])
        return replace(best, answers=answers)

    def _without_groups(
        self, segment: SegmentNode, option: Kept, operands: Sequence[list[_State]], rival: _State | None
    ) -> list[_State]:
        """Return the states of a segment whose groups are recomputed, without those that a rival beats."""
        return _Summing(self, segment, option, self.questions[segment.name]).sums(operands, rival)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fixed:
    """What is decided of things that are read twice, and which of their tables are available."""

    decided: Kept
    available: Kept
    names: frozenset[str]


class _Summing:
    """Adds up the operands of a segment for one way to keep it: spent, and finding what is behind groups.

    Groups are those that are traced, then those that changes touch, if what is behind them is read, then those that are
    asked for from above, if these have to be computed.
    """

    def __init__(self, search: _Search, segment: SegmentNode, option: Kept, asked: Sequence[Question] = ()) -> None:
        self._search, self._segment, self._option = search, segment, option
        model = search.model
        self._flow = model.flows[segment.name]
        self._writes = model.segment_writes(segment, option)
        computing = model.computing_groups(segment, option)
        touches = self._flow.touches if computing is not None else {}
        self._groups = (*self._flow.traced, *(touch.question for touch in touches), *asked)
        self._kept_members = [model.members_kept(segment, option, question) for question in self._groups]
        self._rates = [model.structure.usage.query_rate] * len(self._flow.traced) + list(touches.values())
        self._fixed = [0.0] * len(self._flow.traced) + [computing or 0.0] * len(touches)
        self._fixed += [model.structure.warehouse.compute_cost] * len(asked)

    def sums(self, operands: Sequence[list[_State]], rival: _State | None) -> list[_State]:
        """Return the finished states that may win."""
        parts = [self._contributions(index, states) for index, states in enumerate(operands)]
        cheapest = [_cheapest(part) for part in parts]
        sums = [_State(spent=0.0, answers=(0.0,) * len(self._groups), kept=self._option)]
        for index, part in enumerate(parts):
            sums = [_plus(one, other) for one in sums for other in part]
            self._search.priced_count += len(sums)
            if rival is not None:
                sums = [one for one in sums if not rival.beats(self._finished(_plus(one, *cheapest[index + 1 :])))]
            sums = _undominated(sums)
        return [self._finished(one) for one in sums]

    def _contributions(self, index: int, states: Sequence[_State]) -> list[_State]:
        """Return what each state of an operand adds: spent below and on joins, and what is behind the groups."""
        operand = self._segment.operands[index]
        questions = {question: number for number, question in enumerate(self._search.questions[operand.name])}
        behind = [questions[self._flow.question_behind(index, question)] for question in self._groups]
        found = []
        for state in states:
            joins = self._search.model.joining(self._segment, self._option, index, _answered(questions, state.answers))
            answers = tuple(state.answers[number] for number in behind)
            found.append(_State(spent=state.spent + joins, answers=answers, kept=state.kept))
        return _undominated(found)

    def _finished(self, one: _State) -> _State:
        """Return the state of the segment that a sum over all operands is."""
        found = zip(self._kept_members, one.answers, self._fixed, strict=True)
        members = [min(kept, behind) + fixed for kept, behind, fixed in found]
        own = sum(rate * cost for rate, cost in zip(self._rates, members, strict=False))
        return _State(spent=one.spent + self._writes + own, answers=tuple(members[len(self._rates) :]), kept=one.kept)


def _answered(questions: Mapping[Question, int], answers: Sequence[float]) -> Callable[[int, Question], float]:
    return lambda _, question: answers[questions[question]]


def _plus(one: _State, *others: _State) -> _State:
    spent, answers, kept = one.spent, one.answers, one.kept
    for other in others:
        spent += other.spent
        answers = tuple(mine + its for mine, its in zip(answers, other.answers, strict=True))
        kept |= other.kept
    return _State(spent=spent, answers=answers, kept=kept)


def _cheapest(states: Sequence[_State]) -> _State:
    """Return what no state is below in any number."""
    answers = tuple(min(column) for column in zip(*(state.answers for state in states), strict=True))
    return _State(spent=min(state.spent for state in states), answers=answers, kept=NOTHING)


def _undominated(states: Sequence[_State]) -> list[_State]:
    """Return the states that no other beats, and of equal ones the first."""
    found: list[_State] = []
    for state in sorted(states, key=lambda one: one.spent):
        if not any(other.beats(state) for other in found):
            found.append(state)
    return found


def _questions(model: CostModel) -> Mapping[str, tuple[Question, ...]]:
    """Return every question that may be put to a relation or segment, whatever is kept."""
    asked: dict[str, dict[Question, None]] = {model.structure.top.name: {}}
    for segment in model.structure.segments:
        flow = model.flows[segment.name]
        groups = [*flow.traced, *(touch.question for touch in flow.touches), *asked[segment.name]]
        for index, operand in enumerate(segment.operands):
            of_operand = asked.setdefault(operand.name, {})
            of_operand |= dict.fromkeys(flow.question_behind(index, question) for question in groups)
            of_operand |= dict.fromkeys(flow.joined[index])
    return {name: tuple(questions) for name, questions in asked.items()}
