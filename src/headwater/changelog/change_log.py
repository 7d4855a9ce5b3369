"""The change log: every accepted transaction once, in the order it was accepted, durably.

    acceptor:     append(captures) ──► one Delta commit ──► ticks ──► only now may the sources forget
    maintenance:  parts(relation, (lo, hi])  from the data files of those ticks, and the newest from the tail

Invariants
1. A tick, once returned, is never given to another transaction; nothing ever restores the log to an earlier state.
2. Ticks have no gaps; one source's transactions have ticks in the order of their positions. Only the parts of a global
   transaction share a tick (see `global_parts`).
3. A transaction at or before its source's newest position in the log was accepted already and is dropped.
4. A source's position in the log is durable before we let the source forget up to there, whether or not there
   was anything for us (`note`). So a source that has forgotten more than that was followed by another warehouse.
5. Only the process that called `take_over` last can append. Every other one gets `LeaseLost`.

Guarantee: nothing lost, nothing twice, with `kill -9` anywhere: an append is one commit, and the commit carries the
positions that decide what a restarted acceptor must drop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from types import MappingProxyType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog import layout
from headwater.changelog.mark import LogMark, LogSlot
from headwater.changelog.read import count_rows, read_parts, read_records
from headwater.changelog.tail import Tail
from headwater.errors import LeaseLost, NotReadable
from headwater.fail_points import reach
from headwater.model.position import Notation, Position, Positions, Tick, split_log_name
from headwater.model.relation import COUNT, TICK, Relation, RelationName
from headwater.model.transaction import ORDINAL, Capture, Transaction
from headwater.storage.data_file import write_parts
from headwater.storage.fenced_table import FencedTable
from headwater.storage.merge_files import fitted

HORIZON = "headwater.horizon"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedSpan:
    """What one append accepted: the transactions with ticks in (after, upto], in order."""

    after: Tick
    upto: Tick
    transactions: tuple[tuple[Tick, Transaction], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accepted:
    """Transactions with their ticks, and the log's mark after them. Their rows are stamped when they are asked for."""

    span: AcceptedSpan
    mark: LogMark
    stamped: Sequence[tuple[Capture, Sequence[Tick | None]]]

    def relations(self) -> tuple[RelationName, ...]:
        """Return the relations that rows are of."""
        return tuple(dict.fromkeys(name for capture, _ in self.stamped for name in capture.rows))

    def parts(self, relation: RelationName) -> Iterator[pa.Table]:
        """Yield a relation's rows with their ticks, in tick order, in tables of bounded size."""
        for capture, ticks in self.stamped:
            if relation in capture.rows:
                yield from layout.stamped_parts(capture.rows[relation], ticks)

    def columns(self, relation: RelationName) -> pa.Schema:
        """Return the columns that a relation's rows have."""
        schemas = [capture.rows[relation].schema for capture, _ in self.stamped if relation in capture.rows]
        every = pa.unify_schemas(schemas, promote_options="default")
        return pa.schema([field for field in every if field.name not in (ORDINAL, COUNT)])


class ChangeLog:
    """The durable, ordered, append-only record of accepted transactions. One thread appends. Any may read."""

    def __init__(self, table: FencedTable) -> None:
        """Wrap an open table. Use `create` or `open`."""
        self._table = table
        self._reader = FencedTable.open(table.path)
        self._mark = LogMark.parse(table.mark())
        self._ahead: LogMark | None = None
        self.tail = Tail(self._mark.tick)

    @classmethod
    def create(cls, path: str) -> Self:
        """Create an empty log."""
        mark = LogMark(tick=Tick(0), epoch=0, positions={})
        FencedTable.create(path, layout.RECORDS, numbers=mark.numbers(), mark=mark.text(), indexed=len(layout.RECORDS))
        return cls.open(path)

    @classmethod
    def open(cls, path: str) -> Self:
        """Open the log where it ends. Its newest commit tells the last tick and every source's position."""
        return cls(FencedTable.open(path))

    @staticmethod
    def exists(path: str) -> bool:
        """Tell whether there is a log."""
        return FencedTable.exists(path)

    @property
    def last_tick(self) -> Tick:
        """The tick of the newest transaction, accepted or looked ahead to. It is 0 if there is none."""
        return self._newest_mark.tick

    @property
    def durable_tick(self) -> Tick:
        """The tick of the newest accepted transaction. It is 0 if there is none."""
        return self._mark.tick

    @property
    def _newest_mark(self) -> LogMark:
        return self._mark if self._ahead is None else self._ahead

    @property
    def epoch(self) -> int:
        """The epoch this handle writes with."""
        return self._mark.epoch

    def positions(self) -> Positions:
        """Return, for each log of a source, the position up to which this log holds all that was committed."""
        return dict(self._newest_mark.positions)

    def slots(self) -> Mapping[str, LogSlot]:
        """Return, per source, the slot by which this log follows it."""
        return dict(self._mark.slots)

    def since(self, source: str) -> Tick:
        """Return the tick after which the transactions of a source come from the log that is followed now."""
        slot = self._mark.slots.get(source)
        return Tick(0) if slot is None else slot.since

    def claim(self, source: str, slot: str) -> None:
        """Follow a source by this slot from now on and by no other. Said before the slot is made."""
        self._say(replace(self._mark, slots={**self._mark.slots, source: LogSlot(name=slot, has_begun=False)}))

    def begin(self, source: str, positions: Positions) -> None:
        """Note where logs of a source begin for us: this log will hold everything from there on.

        That may be before what was held of a log under the same name: what was read of the source is read again.
        """
        for log in positions.keys() & self._mark.positions.keys():
            self._mark.positions[log].require_comparable(positions[log])
        slot = self._mark.slots[source]
        begun = slot if slot.has_begun else replace(slot, has_begun=True, since=self._mark.tick)
        slots, held = {**self._mark.slots, source: begun}, {**self._mark.positions, **positions}
        self._say(replace(self._mark, slots=slots, positions=held))

    def adopt(self, source: str, slot: str, positions: Positions) -> None:
        """Follow a source by a slot that was there before slots were noted, and has forgotten its logs up to here."""
        slots = {**self._mark.slots, source: LogSlot(name=slot, has_begun=True)}
        self._say(replace(self._mark, slots=slots).following(positions))

    def note(self, followed_to: Positions) -> None:
        """Note that nothing for us is left up to these positions. Only then may the sources forget their logs."""
        self._say(self._mark.following(followed_to))

    def horizon(self) -> Tick:
        """Return the tick up to which retention has dropped rows. Reading at or before it is refused."""
        self._reader.reload()
        return Tick(self._reader.number(HORIZON) or 0)

    def take_over(self, epoch: int, tail_bytes: int | None = None) -> None:
        """Make this handle the only writer: every handle of an older epoch is refused from now on.

        With a bound, no more of the newest rows is held than that.
        """
        while True:
            self._table.reload()
            current = LogMark.parse(self._table.mark())
            if current.epoch > epoch:
                raise _lost(epoch, current.epoch)
            mark = replace(current, epoch=epoch)
            if self._table.register([], numbers=mark.numbers(), mark=mark.text()):
                self._mark = mark
                self.tail = Tail(mark.tick, tail_bytes)
                return

    def refresh(self) -> None:
        """See what the maintainer appended since. For readers, who never append themselves.

        A log that was looked ahead of stays as it is: the ticks that it gave itself are not those of the maintainer.
        """
        if self._ahead is not None:
            return
        self._table.reload()
        mark = LogMark.parse(self._table.mark())
        if mark != self._mark:
            self.tail = Tail(mark.tick)
            self._mark = mark

    def has_moved(self) -> bool:
        """Tell whether somebody has appended to the log since this handle last looked."""
        self._table.reload()
        return LogMark.parse(self._table.mark()) != self._mark

    def declare(self, relations: Sequence[Relation]) -> None:
        """Give relations their place in the log before their first rows come, so that they can be read at once."""
        for relation in relations:
            self._place(relation.name, relation.arrow_schema())

    def append(self, captures: Sequence[Capture], followed_to: Positions = MappingProxyType({})) -> AcceptedSpan:
        """Accept transactions in the order given, one atomic step for all. Those accepted before are dropped.

        Each gets a tick of its own, but for the transactions of a joint capture, which share one. The same step notes
        how far sources were followed with these transactions.
        """
        accepted = self._accepted(captures)
        if accepted.span.transactions:
            self._write(accepted, accepted.mark.following(followed_to))
        return accepted.span

    def look_ahead(self, captures: Sequence[Capture]) -> None:
        """Go on in memory with transactions that nobody has accepted yet. For readers.

        What a snapshot shows may be newer than the log. These transactions bring its rows back to a tick of the log;
        their own ticks mean nothing to anybody else.
        """
        accepted, rows = self._accepted(captures), self.tail.new_rows()
        for relation in accepted.relations():
            for part in accepted.parts(relation):
                rows.add(relation, part)
        self.tail.append(layout.records(accepted.span.transactions, datetime.now(UTC)), rows, accepted.span.upto)
        self._ahead = accepted.mark

    def _accepted(self, captures: Sequence[Capture]) -> _Accepted:
        """Give transactions their ticks. Those that were accepted before get none."""
        before = self._newest_mark
        positions = dict(before.positions)
        transactions: list[tuple[Tick, Transaction]] = []
        stamped: list[tuple[Capture, list[Tick | None]]] = []
        last = before.tick
        for capture in captures:
            assert not capture.altered, "a relation that was altered stops its source before this"
            ticks: list[Tick | None] = []
            joint = Tick(last + 1)
            for transaction in capture.transactions:
                log = transaction.position.log_name
                known = positions.get(log)
                if known is not None and transaction.position <= known:
                    ticks.append(None)
                    continue
                positions[log] = transaction.position
                last = joint if capture.joint else Tick(last + 1)
                ticks.append(last)
                transactions.append((last, transaction))
            if any(tick is not None for tick in ticks):
                stamped.append((capture, ticks))
        span = AcceptedSpan(after=before.tick, upto=last, transactions=tuple(transactions))
        return _Accepted(span=span, mark=replace(before, tick=span.upto, positions=positions), stamped=stamped)

    def rows(self, relation: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> pa.Table:
        """Return a relation's signed rows with after < tick <= upto: the columns, `_tick`, `_count`, in tick order."""
        log = self._table.schema()
        wanted = _wanted(log, relation, columns)
        nothing = layout.stamped_schema(wanted).empty_table()
        return pa.concat_tables([nothing, *self._parts(log, relation, wanted, after, upto)]).combine_chunks()

    def parts(self, relation: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> Iterator[pa.Table]:
        """Yield the same rows in tables of bounded size. Without columns only `_tick` and `_count` are read."""
        log = self._table.schema()
        return self._parts(log, relation, _wanted(log, relation, columns), after, upto)

    def _parts(
        self, log: pa.Schema, relation: RelationName, wanted: pa.Schema, after: Tick, upto: Tick
    ) -> Iterator[pa.Table]:
        since, recent = self.tail.parts(relation, wanted, after, upto)
        if after < (end := min(since, upto)):
            yield from read_parts(self.files(after, end), log, relation, wanted, after=after, upto=end)
        yield from recent

    def row_count(self, relation: RelationName, after: Tick, upto: Tick) -> int:
        """Return how many signed rows of a relation have after < tick <= upto. The rows are not read."""
        since, recent = self.tail.row_count(relation, after, upto)
        end = min(since, upto)
        return recent + (count_rows(self.files(after, end), relation, after=after, upto=end) if after < end else 0)

    def files(self, after: Tick, upto: Tick) -> list[str]:
        """Return the data files that may hold rows with after < tick <= upto, lowest ticks first."""
        if after < (horizon := self.horizon()):
            raise NotReadable(
                f"the change log no longer holds ticks {after + 1} to {horizon}",
                code="HW-411",
                detail="retention has dropped them",
                hint="ask for a later tick, or keep more history: raise the project's retention",
            )
        return self._reader.files(after=after, upto=upto)

    def most_rows(self, after: Tick, upto: Tick) -> int:
        """Return how many rows of all relations the data files with these ticks hold. Nothing of them is read."""
        held = set(self.files(after, upto))
        return sum(
            entry["num_records"] for entry in self._reader.entries() if f"{self._reader.path}/{entry['path']}" in held
        )

    def transactions(self, source: str | None, after: Tick, upto: Tick) -> list[tuple[Tick, Transaction]]:
        """Return the transactions with after < tick <= upto, of one source or of all, in tick order."""
        found = layout.read_records(self._records(after, upto), self._notations())
        return [(tick, one) for tick, one in found if source is None or one.source == source]

    def identities(self, source: str, after: Tick, upto: Tick) -> list[tuple[Tick, int, str]]:
        """Return the ticks in (after, upto] of a source, in order, with what readers know their transactions by.

        That is an identity, and the log of the source that it is an identity in. What was accepted before the source's
        slot began is left out: all that is read of the source since includes it, and identities may be other ones now.
        """
        after = max(after, self.since(source))
        if after >= upto:
            return []
        records = self._records(after, upto)
        names = records["_source"]
        own = records.filter(pc.or_(pc.equal(names, source), pc.starts_with(names, f"{source}.")))
        ticks = (Tick(tick) for tick in own[TICK].to_pylist())
        logs = (split_log_name(name)[1] for name in own["_source"].to_pylist())
        return list(zip(ticks, own["_identity"].to_pylist(), logs, strict=True))

    def tick_at(self, position: Position) -> Tick | None:
        """Return the tick of a log's newest transaction at or before a position. None if there is none here."""
        return self._newest(lambda one: one.position.log_name == position.log_name and one.position <= position)

    def relations(self) -> tuple[RelationName, ...]:
        """Return the relations whose rows the log can hold."""
        return layout.relations(self._table.schema())

    def relation_schema(self, relation: RelationName) -> pa.Schema:
        """Return the columns of a declared relation, as the log holds them now."""
        return layout.row_schema(self._table.schema(), relation)

    def schema(self) -> pa.Schema:
        """Return the columns of the log's table."""
        return self._table.schema()

    def _write(self, accepted: _Accepted, mark: LogMark) -> None:
        records, rows = layout.records(accepted.span.transactions, datetime.now(UTC)), self.tail.new_rows()
        columns = {relation: accepted.columns(relation) for relation in accepted.relations()}
        places = {relation: self._place(relation, schema) for relation, schema in columns.items()}
        structs = [pa.field(places[relation], pa.struct(list(schema))) for relation, schema in columns.items()]
        written = pa.schema([*records.schema, *structs])

        def packed() -> Iterator[pa.Table]:
            yield fitted(records, written)
            for relation, place in places.items():
                for part in accepted.parts(relation):
                    rows.add(relation, part)
                    yield fitted(layout.pack(relation, place, part), written)

        reach("before log append")
        file = write_parts(self._table.path, written, packed())
        while not self._table.register([file], numbers=mark.numbers(), mark=mark.text()):
            if self._holds(mark):
                break
        reach("after log append")
        self.tail.append(records, rows, accepted.span.upto)
        self._mark = mark

    def _say(self, mark: LogMark) -> None:
        """Make a mark durable that tells nothing new of transactions."""
        if mark == self._mark:
            return
        reach("before log mark")
        while not self._table.register([], numbers=mark.numbers(), mark=mark.text()):
            if self._holds(mark):
                break
        reach("after log mark")
        self._mark = mark

    def _records(self, after: Tick, upto: Tick) -> pa.Table:
        """Return the transactions' own rows with after < tick <= upto, in tick order."""
        since, recent = self.tail.parts(None, layout.RECORDS, after, upto)
        end = min(since, upto)
        stored = read_records(self.files(after, end), after, end) if after < end else ()
        return pa.concat_tables([layout.RECORDS.empty_table(), *stored, *recent])

    def _notations(self) -> dict[str, Notation]:
        """Return how the positions of each log are written."""
        return {log: position.notation for log, position in self._mark.positions.items()}

    def _place(self, relation: RelationName, columns: pa.Schema) -> str:
        while True:
            place, new = layout.place_for(self._table.schema(), relation, columns)
            if not new:
                return place
            schema = pa.schema([*layout.RECORDS, pa.field(place, pa.struct(list(columns)))])
            if not self._table.widen(schema, numbers=self._mark.numbers(), mark=self._mark.text()):
                self._holds(self._mark)

    def _holds(self, mark: LogMark) -> bool:
        """Tell whether the log is where the mark says. Anything else than there or where we were is another writer."""
        current = LogMark.parse(self._table.mark())
        if current not in (mark, self._mark):
            raise _lost(self._mark.epoch, current.epoch)
        return current == mark

    def _newest(self, accept: Callable[[Transaction], bool]) -> Tick | None:
        since, last = self.tail.since, self.last_tick
        _, recent = self.tail.parts(None, layout.RECORDS, since, last)
        for records in chain(recent[::-1], self._older_records(since)):
            found = [tick for tick, one in layout.read_records(records, self._notations()) if accept(one)]
            if found:
                return max(found)
        return None

    def _older_records(self, upto: Tick) -> Iterator[pa.Table]:
        """Yield the transactions' own rows from the data files, newest first, no further than the caller goes on."""
        horizon = self.horizon()
        yield from read_records(self.files(horizon, upto)[::-1], horizon, upto)


def _wanted(log: pa.Schema, relation: RelationName, columns: tuple[str, ...]) -> pa.Schema:
    every = layout.row_schema(log, relation)
    return pa.schema([every.field(name) for name in columns])


def _lost(ours: int, theirs: int) -> LeaseLost:
    return LeaseLost(
        "another maintainer has taken over the change log",
        code="HW-420",
        detail=f"this one writes with epoch {ours}, the log was last written with epoch {theirs}",
        hint="stop this one; only one maintainer can run on a warehouse",
    )
