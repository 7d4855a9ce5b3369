"""A scenario: a small world, the moves played in it one after another, and what is expected to happen.

A story has blocks: some moves, and what follows from them. The results are written for one algorithm, the first that
the scenario expects something of; the others are played through the same moves, as far as the moves concern them (one
that asks no question gets no answer), and are held to the guarantee that is expected of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.model.guarantee import Guarantee
from headwater_lab.ledger import Rows
from headwater_lab.world import Committed, GotAnswer, Received, Served, World, WorldSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMove:
    """A source commits a transaction."""

    source: str
    changes: Rows
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """A source answers the oldest query sent to it."""

    source: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receive:
    """The warehouse receives a source's next message, or all up to its how many-th transaction."""

    source: str
    version: int | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Everything that is on its way arrives, and every query is answered, until nothing is left."""

    line: int = field(default=0, compare=False)


Move = CommitMove | Serve | Receive | Finish


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioBlock:
    """Some moves, and what follows from them, line by line, or None if the scenario does not say."""

    moves: tuple[Move, ...]
    told: tuple[str, ...] | None = None
    remarks: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A story: what it is about, its world, what is expected of each algorithm, and its blocks."""

    name: str
    about: tuple[str, ...]
    setting: WorldSetting
    expected: Mapping[str, Guarantee]
    blocks: tuple[ScenarioBlock, ...]

    @property
    def title(self) -> str:
        """What it is about, in one line."""
        return self.about[0] if self.about else self.name

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves of all blocks."""
        return tuple(move for block in self.blocks for move in block.moves)

    @property
    def teller(self) -> str:
        """The algorithm for which the scenario says what happens."""
        return next(iter(self.expected))


def moves_of(world: World) -> tuple[Move, ...]:
    """Return the moves that were played in a world, so that they can be played again."""
    moves: list[Move] = []
    for event in world.events:
        match event:
            case Committed():
                moves.append(CommitMove(source=event.source, changes=event.changes))
            case Served():
                moves.append(Serve(source=event.source))
            case Received() | GotAnswer():
                moves.append(Receive(source=event.source))
            case _:
                pass
    return tuple(moves)
