"""The seam to an autonomous database: describe, prepare, follow, read a snapshot, tear down.

Nobody coordinates two sources, and a source knows nothing of the warehouse. What a source shows through a snapshot and
what it says in its log are two channels; `Seen` and `Position` are what lets the warehouse bring them together:

- a snapshot saw a *set* of transactions (`seen`), not a prefix of the log;
- what it saw is fully known only once the log has been followed past its `position`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import pyarrow as pa

from headwater.deltas.extent import Remainder
from headwater.errors import HeadwaterError, SourceLost, SourceRefused
from headwater.model.position import Distance, Position
from headwater.model.relation import Relation, RelationName
from headwater.model.settings import DEFAULTS, Settings
from headwater.model.transaction import Capture, Seen
from headwater.sources.measure import SourceMeasure


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part of a relation, small enough to be read in one go.

    With `column` set it is a key range, low < column <= high (None: no bound; the chunk that has no low bound also
    holds the rows whose column is NULL), and means the same rows in every snapshot. Without, it is the whole relation.
    Bounds are texts as the source prints them; the source's own order decides.
    """

    number: int
    column: str | None = None
    low: str | None = None
    high: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotState:
    """A place where the source keeps its log for one warehouse: it has forgotten what is at or before a position."""

    name: str
    forgotten_to: Position
    is_in_use: bool
    held_bytes: int
    """How much of its log the source keeps for it."""
    what: str
    """What the source calls it, with its name."""
    drop: str
    """The statement that drops it at the source."""
    lost: SourceLost | None = None
    """That the source has thrown away what it should have kept, if it has."""


def require_held(slot: str, forgotten_to: Position, held_to: Position) -> None:
    """Refuse to follow by a slot if the source has forgotten more than the change log holds.

    Whatever the source is told to forget is durable in the change log first, so it was not this warehouse that told it.
    """
    if held_to < forgotten_to:
        source = held_to.source
        raise SourceLost(
            f'source "{source}" has already forgotten changes that this warehouse does not have',
            code="HW-314",
            detail=f'its slot "{slot}" stands at {forgotten_to.text}, the change log '
            f"holds it up to {held_to.text}: another copy of this warehouse has used the slot, or "
            "an older copy of the warehouse was put back",
            hint=f"run `headwater teardown --source {source}`, then `headwater run`: the source is read again, by a "
            "slot that only this warehouse has",
        )


def missing_slot(source: str, what: str) -> SourceLost:
    """Return the error of a source that has no slot of a name any more; `what` is the source's word for a slot."""
    return SourceLost(
        f'source "{source}" has no {what}',
        code="HW-313",
        detail="it was dropped, or the server was restored without it",
        hint=f"run `headwater teardown --source {source}`, then `headwater run`: it is read anew",
    )


def missing_relation(name: RelationName, detail: str) -> SourceRefused:
    """Return the error of a relation that is not there; the detail says what was looked for."""
    return SourceRefused(
        f'source "{name.source}" has no relation "{name}"',
        code="HW-323",
        detail=detail,
        hint="check the name in the view, and the account's rights on the schema",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSlots:
    """The slots of one project at a source, by name, whichever warehouse each belongs to."""

    present: Mapping[str, SlotState]
    former: str
    """What the one slot of the project was called when all its warehouses shared it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TornDown:
    """What was dropped at a source, and the slots of the project that were left to others."""

    dropped: tuple[str, ...]
    left: tuple[SlotState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What a source says about some of its relations, and what stands between them and being followed."""

    relations: tuple[Relation, ...]
    owner_sql: tuple[str, ...]
    """Statements still needed that only the tables' owner may run; empty when nothing is missing."""
    may_run_owner_sql: bool
    """Whether the account we use has those rights itself, so that `prepare` can run them."""
    refusals: tuple[HeadwaterError, ...] = ()
    """What else stands in the way; a relation that is not there is refused, and lacks above."""
    warnings: tuple[str, ...] = ()

    def require_rights(self, source: str) -> None:
        """Refuse a source that still needs its owner, with what the owner has to run."""
        if self.owner_sql and not self.may_run_owner_sql:
            raise SourceRefused(
                f'source "{source}" needs its owner before it can be followed',
                code="HW-329",
                detail="the account may not run the statements that are still needed",
                hint="let the owner run:\n" + "\n".join(f"{statement};" for statement in self.owner_sql),
            )


class Snapshot(Protocol):
    """One consistent moment of a source, open for reading by several threads at once. A context manager."""

    @property
    def seen(self) -> Seen:
        """Which transactions this snapshot shows."""
        ...

    @property
    def position(self) -> Position:
        """Every transaction this snapshot shows commits at or before this position of the log."""
        ...

    @property
    def token(self) -> str:
        """What snapshots have in common whose rows may be mixed; a server that crashed may have lost what it showed."""
        ...

    def read_seen(self, said: Mapping[str, Any]) -> Seen:
        """Return what an earlier snapshot of this source has `written` of what it saw."""
        ...

    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the wanted columns of the rows whose `columns` equal some row of `keys` (distinct, no NULLs)."""
        ...

    def chunks(self, relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
        """Divide a relation into chunks that together hold every row exactly once."""
        ...

    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Remainder) -> Iterator[pa.Table]:
        """Yield the wanted columns of a chunk's rows, in tables small enough to hold in memory.

        Rows that are not in the remainder may be left out, where it is sure that they are not.
        """
        ...

    def is_valid(self) -> bool:
        """Tell whether its answers count: the server is the same, and no table that was probed was rewritten meanwhile.

        A server that restarted may have lost what it showed; a table that is rewritten looks empty to older snapshots.
        """
        ...

    def __enter__(self) -> Self:
        """Keep the snapshot open for a block."""
        ...

    def __exit__(self, *exception: object) -> None:
        """Close the snapshot and its connections."""
        ...


class Follower(Protocol):
    """One connection to a source's log. Used by one thread; `acknowledge` and `hasten` may come from others."""

    def next_capture(self, timeout_seconds: float) -> Capture | None:
        """Return the next transactions, or None when none came in that time."""
        ...

    def followed_to(self) -> Position:
        """Every transaction that commits at or before this position has been returned by `next_capture`."""
        ...

    def log_end(self) -> Position:
        """Where the source's log ends now, whether or not it holds anything for us; called by the following thread."""
        ...

    def acknowledge(self, position: Position) -> None:
        """Let the source forget what it logged up to here; called only once the change log durably holds that."""
        ...

    def hasten(self, position: Position) -> None:
        """Say that somebody waits for `followed_to` to reach this position."""
        ...

    def keep_alive(self) -> None:
        """Let the source know that we are there although nothing is read; called often by the following thread."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Memory(Protocol):
    """Where a source keeps a text that it has to know in the next run of the same warehouse."""

    def read(self) -> str | None:
        """Return the text written last; None if none was."""
        ...

    def write(self, text: str) -> None:
        """Replace the text, durably."""
        ...


class ProcessMemory:
    """A memory that ends with the process."""

    def __init__(self, text: str | None = None) -> None:
        """Remember a text from the beginning, or nothing."""
        self._text = text

    def read(self) -> str | None:
        """Return the text written last."""
        return self._text

    def write(self, text: str) -> None:
        """Replace the text."""
        self._text = text


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """What a project says of a source, and what a kind of source makes one from."""

    name: str
    """The name views use for it."""
    url: Callable[[], str]
    """Returns the address as it is kept now, passwords and all; read again when a login is refused."""
    project: str
    """Whose warehouses will follow it: what is made at the source is named after it."""
    probe_timeout_seconds: float = 60.0
    connection_limit: int = 4
    """How many connections may read a snapshot at once."""
    tells_prepared: bool = False
    """Whether the ids of prepared transactions are needed, because they are parts of global ones."""
    memory: Memory = field(default_factory=ProcessMemory)
    project_settings: Settings = DEFAULTS
    """What the operator of the project has set."""
    declared_in: str = ""
    """File and line, for a person."""


class Source(Protocol):
    """An autonomous database."""

    @property
    def name(self) -> str:
        """The name views use for it."""
        ...

    @property
    def default_schema(self) -> str:
        """What it calls the schema of relations that are named without one (`DEFAULT_SCHEMA` in their names)."""
        ...

    def inspect(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations, and say what is missing before they can be followed; changes nothing."""
        ...

    def slots(self) -> ProjectSlots:
        """Return the slots that warehouses of this project have here now."""
        ...

    def new_slot(self) -> str:
        """Return a name for a slot that no other warehouse has; nothing is made."""
        ...

    def prepare(self, relations: Sequence[RelationName], slot: str, *, is_new: bool) -> Position:
        """Make the source log these relations for us, and return up to where it has forgotten its log.

        Only a slot that `is_new` is made if it is not there. Running it again is harmless. Raises `SourceRefused` with
        the owner's SQL where the account may not.
        """
        ...

    def follow(self, relations: Sequence[Relation], slot: str, held_to: Position | None) -> Follower:
        """Open the log that a slot keeps, after the position up to which the change log holds it.

        Transactions at or before it are dropped, even if the source repeats them. A source that has forgotten more
        than the change log holds is lost. None: from where the source has not forgotten it.
        """
        ...

    def peek(self, relations: Sequence[Relation], slot: str, held_to: Position | None) -> Capture | None:
        """Return the transactions after a position that a slot keeps now, None if there are none.

        The source forgets nothing by it: whoever follows it next is sent the same transactions again.
        """
        ...

    def snapshot(self, *, bootstrap: bool = False) -> Snapshot:
        """Open a snapshot; for a bootstrap, one that shows everything the log does not hold for us."""
        ...

    def distance(self, earlier: Position, later: Position) -> Distance:
        """Say how much of the log lies between two positions of one history; asks nobody."""
        ...

    def index_hint(self, relation: Relation, columns: Sequence[str]) -> str | None:
        """Return what the owner runs so that probes by these columns find their rows; None where nothing helps."""
        ...

    def measure(self, relations: Sequence[Relation]) -> SourceMeasure:
        """Say how large relations are, and how long it takes to ask; changes nothing."""
        ...

    def teardown(self, slot: str | None, held_to: Position | None) -> TornDown:
        """Drop what `prepare` made for a slot, unless the source has forgotten more than `held_to` for it.

        Such a slot was used by somebody else. What all warehouses of the project share goes with the last slot.
        """
        ...
