"""The states in which a place was polled: the log of a polled source, which the warehouse itself keeps.

    poll 7 ──► state 7 (all rows)  ── compared with state 6 ──►  changes 7  ──► a transaction, if there are any

A state has a number, a random proof, and a file for each relation with all its rows, and one with what changed since
the state before. A relation that did not change has the files of the state before. The note that names them all is
written last, and only if no other has its number: a poll is there as a whole, or not at all. What a poll read is never
read again, so the changes of a state are the same whenever they are asked for.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain

import pyarrow as pa

from headwater.model.relation import COUNT, Relation, RelationName, arrow_type
from headwater.sources.net_changes import NetChanges
from headwater.sources.polled.place import Moment
from headwater.sources.source import StateFiles

_DIGITS = 12
_KEPT = 16
"""States that are acknowledged and kept for other processes, which may be reading them."""

Columns = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledRelation:
    """A relation in a state: its columns then, and its files."""

    columns: Columns
    rows: str
    changes: str | None
    """What changed since the state before. None: nothing, or it was not there."""
    is_new: bool

    def schema(self) -> pa.Schema:
        """Return the columns as Arrow."""
        return pa.schema([pa.field(name, arrow_type(kind)) for name, kind, _ in self.columns])


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledState:
    """A state: what the note of it says."""

    number: int
    history: str
    proof: str
    polled_at: float
    relations: Mapping[str, PolledRelation]
    missing: tuple[str, ...] = ()
    """Relations that were there in the state before, and are no more."""

    def written(self) -> str:
        """Return the state's note."""
        relations = {name: [one.columns, one.rows, one.changes, one.is_new] for name, one in self.relations.items()}
        said = [self.number, self.history, self.proof, self.polled_at, relations, self.missing]
        return json.dumps(said)

    @classmethod
    def read(cls, text: str) -> PolledState:
        """Return what a note says."""
        number, history, proof, polled_at, relations, missing = json.loads(text)
        return cls(
            number=number,
            history=history,
            proof=proof,
            polled_at=polled_at,
            relations={
                name: PolledRelation(columns=tuple(map(tuple, columns)), rows=rows, changes=changes, is_new=is_new)
                for name, (columns, rows, changes, is_new) in relations.items()
            },
            missing=tuple(missing),
        )

    @property
    def at(self) -> datetime:
        """When it was polled."""
        return datetime.fromtimestamp(self.polled_at, UTC)


@dataclass
class States:
    """The states of one source, in the files of its warehouse."""

    files: StateFiles
    _newest: PolledState | None = None
    _known: dict[int, PolledState] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def numbers(self) -> list[int]:
        """Return the numbers of the states that are there, in order."""
        return sorted(int(name.removesuffix(".json")) for name in self.files.names() if name.endswith(".json"))

    def state(self, number: int) -> PolledState | None:
        """Return a state, or None if it is not there."""
        with self._lock:
            if number not in self._known:
                text = self.files.text(_note(number))
                if text is None:
                    return None
                self._known[number] = PolledState.read(text)
            return self._known[number]

    def newest(self) -> PolledState | None:
        """Return the newest state. Files are listed once: those that came since have the next numbers."""
        with self._lock:
            if self._newest is None:
                numbers = self.numbers()
                self._newest = self.state(numbers[-1]) if numbers else None
            while self._newest is not None and (after := self.state(self._newest.number + 1)) is not None:
                self._newest = after
            return self._newest

    def table(self, name: str) -> pa.Table:
        """Return the rows of a file."""
        return self.files.table(name)

    def poll(self, moment: Moment, relations: Sequence[Relation], missing: Iterable[RelationName]) -> PolledState:
        """Read relations at a moment, and return the newest state: another one, if they are otherwise than before."""
        with self._lock:
            before = self.newest()
            number = 1 if before is None else before.number + 1
            token = secrets.token_hex(8)
            made: list[str] = []
            found: dict[str, PolledRelation] = {}
            for place, relation in enumerate(relations):
                last = None if before is None else before.relations.get(str(relation.name))
                names = (f"{number:0{_DIGITS}}-{token}-{place}-rows", f"{number:0{_DIGITS}}-{token}-{place}-changes")
                found[str(relation.name)] = one = self._compared(moment, relation, last, names)
                made += [name for name in (one.rows, one.changes) if name in names and name is not None]
            moment.require_same()
            gone = tuple(sorted({str(name) for name in missing} & (set() if before is None else {*before.relations})))
            if before is not None and not gone and found.keys() <= before.relations.keys() and not made:
                return before
            kept = {name: _unchanged(one) for name, one in (before.relations if before else {}).items()}
            state = PolledState(
                number=number,
                history=secrets.token_hex(8) if before is None else before.history,
                proof=token,
                polled_at=datetime.now(UTC).timestamp(),
                relations={name: one for name, one in {**kept, **found}.items() if name not in gone},
                missing=gone,
            )
            if self.files.write_new_text(_note(number), state.written()):
                return state
            for name in made:
                self.files.delete(name)
            return self.poll(moment, relations, missing)

    def _compared(
        self, moment: Moment, relation: Relation, last: PolledRelation | None, names: tuple[str, str]
    ) -> PolledRelation:
        """Write the rows of a relation, and what changed in them. Return the last files if nothing did."""
        columns = tuple((one.name, one.type, one.native) for one in relation.columns)
        schema = relation.arrow_schema()
        if last is None:
            self.files.write_table(names[0], schema, moment.rows(relation))
            return PolledRelation(columns=columns, rows=names[0], changes=None, is_new=True)
        shared = [name for name, kind, _ in columns if (name, kind) in {one[:2] for one in last.columns}]
        if not shared:
            return self._counted(moment, relation, last, names)
        net = NetChanges(relation.arrow_schema(tuple(shared)))

        def counted() -> Iterator[pa.Table]:
            for rows in moment.rows(relation):
                net.add(rows.select(shared), 1)
                yield rows

        self.files.write_table(names[0], schema, counted())
        for batch in self.table(last.rows).select(shared).to_batches():
            net.add(pa.Table.from_batches([batch]), -1)
        changes = net.result()
        first = next(changes, None)
        if first is None and columns == last.columns:
            self.files.delete(names[0])
            return _unchanged(last)
        if first is None:
            return PolledRelation(columns=columns, rows=names[0], changes=None, is_new=False)
        self.files.write_table(names[1], first.schema, chain([first], changes))
        return PolledRelation(columns=columns, rows=names[0], changes=names[1], is_new=False)

    def _counted(
        self, moment: Moment, relation: Relation, last: PolledRelation, names: tuple[str, str]
    ) -> PolledRelation:
        """Write the rows of a relation that kept no column, and by how many rows it grew: views may count them."""
        self.files.write_table(names[0], relation.arrow_schema(), moment.rows(relation))
        more = self.table(names[0]).num_rows - self.table(last.rows).num_rows
        changes = pa.table({COUNT: pa.array([1 if more > 0 else -1] * abs(more), pa.int64())})
        self.files.write_table(names[1], changes.schema, iter([changes]))
        columns = tuple((one.name, one.type, one.native) for one in relation.columns)
        return PolledRelation(columns=columns, rows=names[0], changes=names[1] if more else None, is_new=False)

    def forget_before(self, number: int) -> None:
        """Delete the states before one, but for some that other processes may be reading."""
        with self._lock:
            old = [one for one in self.numbers() if one < number - _KEPT]
            if not old:
                return
            for one in old:
                self.files.delete(_note(one))
                self._known.pop(one, None)
            needed: set[str | None] = set()
            for one in self.numbers():
                state = self.state(one)
                for relation in state.relations.values() if state else ():
                    needed |= {relation.rows, relation.changes}
            first = f"{number:0{_DIGITS}}"
            for name in self.files.names():
                if not name.endswith(".json") and name not in needed and name < first:
                    self.files.delete(name)

    def forget_all(self) -> None:
        """Delete everything, the notes first."""
        with self._lock:
            self._known.clear()
            self._newest = None
            for name in sorted(self.files.names(), key=lambda name: not name.endswith(".json")):
                self.files.delete(name)


def _unchanged(one: PolledRelation) -> PolledRelation:
    return PolledRelation(columns=one.columns, rows=one.rows, changes=None, is_new=False)


def _note(number: int) -> str:
    return f"{number:0{_DIGITS}}.json"
