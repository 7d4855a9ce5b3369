"""The seam to an autonomous database: describe, prepare, follow, read a snapshot, tear down.

Nobody coordinates two sources, and a source knows nothing of the warehouse. What a source shows to a reader and what it
says in its log are two channels; `Seen` and `Position` are what lets the warehouse bring them together:

- a reader saw a *set* of transactions (`seen`), not a prefix of the log;
- what it saw is fully known only once the log has been followed past its `positions`.

Sources differ. What the engine has to know of that is data (`Abilities`), or a part of the values that it handles
anyway: a source with a log for each table returns several `Positions`; one whose history cannot be recognised by a name
puts a proof into them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import pyarrow as pa

from headwater.deltas.extent import Remainder
from headwater.errors import HeadwaterError, InvalidProject, SourceLost, SourceRefused, did_you_mean
from headwater.model.memory_budget import SPILL_BYTES
from headwater.model.position import Distance, Position, Positions
from headwater.model.project import SOURCE_KEYS, Option
from headwater.model.relation import Relation, RelationName
from headwater.model.settings import DEFAULTS, Settings
from headwater.model.transaction import Capture, Seen
from headwater.sources.measure import SourceMeasure


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a kind of source can do, as far as others have to know it."""

    shares_snapshots: bool
    """Whether all readers of a snapshot see the same. Otherwise each sees at least what those opened before it saw."""
    exports_snapshots: bool
    """Whether other processes can join a snapshot (`Source.join`), and see the same as its readers."""
    reads_as_of: bool
    """Whether a snapshot can be opened at positions of the past."""
    holds_log: bool
    """Whether it keeps its log until we have acknowledged it. Otherwise it deletes its log by a clock of its own."""
    tells_every_transaction: bool
    """Whether its log tells every transaction. Otherwise it tells the difference between states it was seen in.

    Such a source is always copied: what a reader sees between two of these states belongs to none.
    """
    polled_every_seconds: float | None = None
    """How often it is looked at, if we do that."""


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
    """A place where a source keeps its logs for one warehouse: it has forgotten what is at or before some positions."""

    name: str
    forgotten_to: Positions
    is_in_use: bool
    held_bytes: int
    """How much of its log the source keeps for it."""
    what: str
    """What the source calls it, with its name."""
    drop: str
    """The statement that drops it at the source."""
    lost: SourceLost | None = None
    """That the source has thrown away what it should have kept, if it has."""


def require_held(slot: str, forgotten_to: Positions, held_to: Positions) -> None:
    """Refuse to follow by a slot if the source has forgotten more of a log than the change log holds.

    What this warehouse lets the source forget is durable in the change log first. So this warehouse did not cause it.
    """
    for log in forgotten_to.keys() & held_to.keys():
        if held_to[log] < forgotten_to[log]:
            source = held_to[log].source
            raise SourceLost(
                f'source "{source}" has already forgotten changes that this warehouse does not have',
                code="HW-314",
                detail=f'its slot "{slot}" stands at {forgotten_to[log].text}, the change log '
                f"holds it up to {held_to[log].text}: another copy of this warehouse has used the slot, or "
                "an older copy of the warehouse was put back",
                hint=f"run `headwater teardown --source {source}`, then `headwater run`: the source is read again, by "
                "a slot that only this warehouse has",
            )


def unproved_log(held_to: Position, detail: str) -> SourceLost:
    """Return the error of a log that does not hold what it held when its position was noted."""
    return SourceLost(
        f'the log of source "{held_to.source}" is not the one that was followed',
        code="HW-315",
        detail=f"at {held_to}: {detail}",
        hint=f"run `headwater teardown --source {held_to.source}`, then `headwater run`: the source is read again",
    )


def missing_slot(source: str, what: str) -> SourceLost:
    """Return the error of a source that has no slot of a name any more. `what` is the source's word for a slot."""
    return SourceLost(
        f'source "{source}" has no {what}',
        code="HW-313",
        detail="it was dropped, or the server was restored without it",
        hint=f"run `headwater teardown --source {source}`, then `headwater run`: it is read again",
    )


def missing_relation(name: RelationName, detail: str) -> SourceRefused:
    """Return the error of a relation that is not there. The detail says what was looked for."""
    return SourceRefused(
        f'source "{name.source}" has no relation "{name}"',
        code="HW-323",
        detail=detail,
        hint="check the name in the view, and the account's rights on the schema",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSlots:
    """The slots of one project at a source, by name, of all its warehouses."""

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


class LogView(Protocol):
    """What knows how far the sources' logs are in the change log."""

    def wait_for(self, positions: Positions, timeout_seconds: float) -> bool:
        """Wait until the change log holds everything up to these positions. Tell whether it does.

        It never holds anything from a transaction on that altered a relation which is followed.
        """
        ...

    def held(self, source: str) -> Positions:
        """Return up to where the change log holds everything that a source committed."""
        ...


class Reader(Protocol):
    """One moment of a source, for one thread."""

    @property
    def seen(self) -> Seen:
        """Which transactions it shows."""
        ...

    @property
    def positions(self) -> Positions:
        """Every transaction it shows commits at or before these positions, one for each log of the source."""
        ...

    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the wanted columns of the rows whose `columns` equal some row of `keys` (distinct, no NULLs)."""
        ...

    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Remainder) -> Iterator[pa.Table]:
        """Yield the wanted columns of a chunk's rows, in tables small enough to hold in memory.

        Rows that are not in the remainder may be left out, where it is sure that they are not.
        """
        ...


class Snapshot(Protocol):
    """What several threads read a source by at once, each by a reader of its own. A context manager.

    Where snapshots are shared (`Abilities.shares_snapshots`), all its readers show one moment.
    """

    @property
    def token(self) -> str:
        """What snapshots have in common whose rows may be mixed. A server that crashed may have lost what it showed."""
        ...

    def reader(self) -> AbstractContextManager[Reader]:
        """Lend a reader. Waits while too many are lent."""
        ...

    def chunks(self, relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
        """Divide a relation into chunks that together hold every row exactly once."""
        ...

    def exported(self) -> Mapping[str, Any]:
        """Return what `Source.join` is given in another process while this is open, as JSON holds it. No secrets."""
        ...

    def is_valid(self, log: LogView) -> bool:
        """Tell whether the answers of its readers count: the server is the same, and what was read was not rewritten.

        A server that restarted may have lost what it showed. A relation that is rewritten or altered may look empty, or
        otherwise than it was, to readers that were opened before. A source that cannot tell by itself whether that
        happened asks the log to come to where its own log ends now: one that tells of an alteration never does.
        """
        ...

    def __enter__(self) -> Self:
        """Keep the snapshot open for a block."""
        ...

    def __exit__(self, *exception: object) -> None:
        """Close the snapshot and its connections."""
        ...


class Follower(Protocol):
    """One connection to a source's logs. Used by one thread. `acknowledge` and `hasten` may come from others.

    Every method that returns positions returns one for each log.
    """

    def next_capture(self, timeout_seconds: float) -> Capture | None:
        """Return the next transactions, or None when none came in that time."""
        ...

    def followed_to(self) -> Positions:
        """Every transaction that commits at or before these positions has been returned by `next_capture`."""
        ...

    def log_end(self) -> Positions:
        """Where the source's logs end now, whether or not they hold anything for us. Called by the following thread."""
        ...

    def log_begin(self) -> Positions:
        """Up to where the source has deleted its logs. None where it holds them for us. Called as above."""
        ...

    def acknowledge(self, position: Position) -> None:
        """Let the source forget what it logged up to here. Called only once the change log durably holds that."""
        ...

    def hasten(self, position: Position) -> None:
        """Say that somebody waits for `followed_to` to reach this position."""
        ...

    def keep_alive(self) -> None:
        """Let the source know that we are there although nothing is read. Called often by the following thread."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Memory(Protocol):
    """Where a source keeps a text that it has to know in the next run of the same warehouse."""

    def read(self) -> str | None:
        """Return the text written last. None if none was."""
        ...

    def write(self, text: str) -> None:
        """Replace the text, durably."""
        ...


class StateFiles(Protocol):
    """Where a source keeps rows that it has to know in the next run of the same warehouse: files, by plain names."""

    def names(self) -> list[str]:
        """Return the names of all files."""
        ...

    def text(self, name: str) -> str | None:
        """Return the text of a file, or None if it is not there."""
        ...

    def write_new_text(self, name: str, text: str) -> bool:
        """Make a file, durably, unless it is there. At most one of several callers gets True."""
        ...

    def table(self, name: str) -> pa.Table:
        """Return the rows of a file, mapped where that is possible."""
        ...

    def write_table(self, name: str, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
        """Write rows of a schema, durably. One part at a time is held."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file. One that is not there is fine."""
        ...


class ProcessFiles:
    """Files that end with the process."""

    def __init__(self) -> None:
        """Begin without any."""
        self._held: dict[str, str | pa.Table] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Return the names of all files."""
        with self._lock:
            return list(self._held)

    def text(self, name: str) -> str | None:
        """Return the text of a file."""
        found = self._held.get(name)
        return found if isinstance(found, str) else None

    def write_new_text(self, name: str, text: str) -> bool:
        """Make a file unless it is there."""
        with self._lock:
            return self._held.setdefault(name, text) is text

    def table(self, name: str) -> pa.Table:
        """Return the rows of a file."""
        return self._held[name]

    def write_table(self, name: str, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
        """Keep rows."""
        self._held[name] = pa.concat_tables([schema.empty_table(), *parts])

    def delete(self, name: str) -> None:
        """Delete a file."""
        with self._lock:
            self._held.pop(name, None)


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
    files: StateFiles = field(default_factory=ProcessFiles)
    """Where it keeps what it has to know of rows."""
    project_settings: Settings = DEFAULTS
    """What the operator of the project has set."""
    spill_bytes: int = SPILL_BYTES
    """How large the rows may become that its follower gathers in memory. The others belong into files."""
    declared_in: str = ""
    """File and line, for a person."""
    options: Mapping[str, Option] = field(default_factory=dict)
    """What the project file says for this kind of source alone."""

    def allow_options(self, *known: str) -> None:
        """Refuse every option but these. A kind of source says so when it is connected."""
        for key in self.options:
            if key not in known:
                every = (*SOURCE_KEYS, *known)
                raise InvalidProject(
                    f'unknown key "{key}" of source "{self.name}"',
                    code="HW-351",
                    detail=f"a source of this kind knows {', '.join(every)}"
                    + (f" ({self.declared_in})" if self.declared_in else ""),
                    hint=did_you_mean(key, every, otherwise="remove it"),
                )


class Source(Protocol):
    """An autonomous database."""

    @property
    def name(self) -> str:
        """The name views use for it."""
        ...

    @property
    def abilities(self) -> Abilities:
        """What it can do."""
        ...

    @property
    def default_schema(self) -> str:
        """What it calls the schema of relations that are named without one (`DEFAULT_SCHEMA` in their names)."""
        ...

    def inspect(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations, and say what is missing before they can be followed. Changes nothing."""
        ...

    def slots(self) -> ProjectSlots:
        """Return the slots that warehouses of this project have here now. None where it does not hold its log."""
        ...

    def new_slot(self) -> str:
        """Return a name that no other warehouse follows this source by. Nothing is made."""
        ...

    def prepare(self, relations: Sequence[RelationName], slot: str, *, is_new: bool) -> Positions:
        """Make the source log these relations for us, and return up to where it has forgotten each of their logs.

        Only a slot that `is_new` is made if it is not there. Running it again is harmless. Raises `SourceRefused` with
        the owner's SQL where the account may not. A source that does not hold its logs returns where they end now.
        """
        ...

    def follow(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> Follower:
        """Open the logs that a slot keeps, after the positions up to which the change log holds them.

        Transactions at or before them are dropped, even if the source repeats them. A source that has forgotten more
        than the change log holds is lost, and so is one whose log does not go with the proof in a position. A log
        without a position is followed from where the source has not forgotten it.
        """
        ...

    def peek(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> Capture | None:
        """Return the transactions after some positions that a slot keeps now, None if there are none.

        The source forgets nothing by it: it sends the same transactions again to the next follower.
        """
        ...

    def snapshot(
        self, relations: Sequence[RelationName], *, bootstrap: bool = False, at: Positions | None = None
    ) -> Snapshot:
        """Open a snapshot of some relations. For a bootstrap, one that shows everything the log does not hold for us.

        What its readers say of positions is about the logs of these relations.

        With `at` it shows what was committed up to these positions and nothing else, for sources that can do that.
        """
        ...

    def join(self, said: Mapping[str, Any]) -> AbstractContextManager[Reader]:
        """Lend a reader that shows a snapshot which another process has `exported`, and sees to it that it is that one.

        A snapshot that is closed, or of another server, is `SourceUnavailable`.
        """
        ...

    def login(self) -> str:
        """Return a URL by which another process of this machine connects as this one does, passwords and all.

        It says also what this process's environment adds to the project's URL.
        """
        ...

    def read_seen(self, said: Mapping[str, Any]) -> Seen:
        """Return what a reader of this source has `written` of what it saw."""
        ...

    def distance(self, earlier: Position, later: Position) -> Distance:
        """Say how much of the log lies between two positions of one history. Asks nobody."""
        ...

    def index_hint(self, relation: Relation, columns: Sequence[str]) -> str | None:
        """Return what the owner runs so that probes by these columns find their rows. None where nothing helps."""
        ...

    def measure(self, relations: Sequence[Relation]) -> SourceMeasure:
        """Say how large relations are, and how long it takes to ask. Changes nothing."""
        ...

    def teardown(self, slot: str | None, held_to: Positions) -> TornDown:
        """Drop what `prepare` made for a slot, unless the source has forgotten more than `held_to` for it.

        Such a slot was used by somebody else. What all warehouses of the project share goes with the last slot.
        """
        ...


def shown_positions(source: Source, relations: Sequence[RelationName]) -> Positions:
    """Return positions up to which a source shows everything now, in the logs of some relations."""
    with source.snapshot(relations) as snapshot, snapshot.reader() as reader:
        return reader.positions
