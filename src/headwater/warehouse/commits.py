"""The one commit point of the kept tables: one append to the journal, which carries what the commit adds to them.

Law: what readers see is a function of the newest commit alone.

Invariants
1. Sequences are 1, 2, 3 …, epochs never fall; a commit lands right after the one its maintainer saw last, or nowhere.
2. Only the maintainer that took the lease last can commit; every other gets `LeaseLost`, whatever its clock says.
3. The newest commit is also in the Delta commit's own metadata, so reading it opens one small file however many
   commits there are.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import LeaseLost
from headwater.fail_points import reach
from headwater.model.position import Tick
from headwater.storage.data_file import DataFile
from headwater.storage.fenced_table import FencedTable
from headwater.warehouse.catalog import Catalog, catalog_text, parse_catalog
from headwater.warehouse.commit_record import Commit, CommitKind, CommitRecord, commit_text, parse_commit
from headwater.warehouse.journal import Journal, TableChange

REFERRED = "headwater.referred"
"""The number of the newest commit that names files which are not part of their table yet."""


class Commits:
    """The warehouse's commits, oldest first. One thread commits. A reader opens its own."""

    def __init__(self, journal: Journal) -> None:
        """Wrap an open journal. Use `create` or `open`."""
        self.journal = journal
        self.table = journal.table
        self._seen, self._head = self.table.version, parse_commit(self.table.mark())
        self._catalog: tuple[int, Catalog] = (0, Catalog())

    @classmethod
    def create(cls, path: str) -> Self:
        """Create the journal. Commit 0 stands for the empty warehouse and has no row."""
        nothing = Commit(
            sequence=0,
            epoch=0,
            kind=CommitKind.LEASE,
            tick=Tick(0),
            committed_at=datetime.now(UTC),
            catalog_sequence=0,
            record=CommitRecord(),
        )
        return cls(Journal.create(path, numbers=_numbers(nothing), mark=commit_text(nothing)))

    @classmethod
    def open(cls, path: str) -> Self:
        """Open the journal at its newest commit."""
        return cls(Journal.open(path))

    @staticmethod
    def exists(path: str) -> bool:
        """Tell whether there is such a table."""
        return FencedTable.exists(path)

    def head(self) -> Commit:
        """Return the newest commit of any maintainer."""
        with self.table.lock:
            self.table.reload()
            if self.table.version != self._seen:
                self._seen, self._head = self.table.version, parse_commit(self.table.mark())
            return self._head

    def catalog(self, commit: Commit) -> Catalog:
        """Return the views and replicas as a commit knows them."""
        sequence = commit.catalog_sequence
        if sequence != self._catalog[0]:
            rows = self.journal.records(sequence - 1, sequence, ["catalog"])
            self._catalog = sequence, parse_catalog(rows["catalog"][0].as_py())
        return self._catalog[1]

    def take_lease(self, holder: str) -> int:
        """Become the only committer, and return the new epoch. `holder` is for people to read."""
        while True:
            head = self.head()
            lease = _following(
                head, CommitKind.LEASE, head.tick, replace(head.record, statistics=None, holder=holder), head.epoch + 1
            )
            if self._append(lease, self._write(lease), ()):
                return lease.epoch

    def commit(
        self,
        kind: CommitKind,
        tick: Tick,
        record: CommitRecord,
        *,
        epoch: int,
        catalog: Catalog | None = None,
        changes: Collection[TableChange] = (),
    ) -> Commit:
        """Move the warehouse one step, with what that adds to kept tables.

        With `catalog`, the views and replicas are these from now on.
        """
        head = self._head
        new = _following(head, kind, tick, record, epoch)
        if catalog is not None:
            new = replace(new, catalog_sequence=new.sequence)
        assert all(change.upto <= tick for change in changes), "what a commit carries ends where a view stands"
        written = self._write(new, catalog, changes)
        reach("before commit")
        while self._head == head and head.epoch == epoch:
            if self._append(new, written, changes) or self.head() == new:
                self.journal.note(changes)
                reach("after commit")
                return new
        raise LeaseLost(
            "another maintainer has taken this warehouse over",
            code="HW-421",
            detail=f"this one holds epoch {epoch}; the newest commit is number {self._head.sequence} "
            f"of epoch {self._head.epoch}",
            hint="stop this one; only one maintainer can run on a warehouse",
        )

    def read(self, after: int = 0, upto: int | None = None) -> list[Commit]:
        """Return the commits with after < sequence <= upto, oldest first."""
        self.table.reload()
        rows = self.journal.records(after, upto, ["record"])
        return [parse_commit(text) for text in rows["record"].to_pylist()]

    def at(self, moment: datetime) -> Commit | None:
        """Return the newest commit that readers could see at a moment."""
        self.table.reload()
        seen = self.journal.records(0, None, ["committed_at"])
        then = seen.filter(pc.less_equal(seen["committed_at"], pa.scalar(moment, seen["committed_at"].type)))
        newest = pc.max(then["sequence"]).as_py()
        return None if newest is None else self.read(newest - 1, newest)[0]

    def _write(self, new: Commit, catalog: Catalog | None = None, changes: Collection[TableChange] = ()) -> DataFile:
        row = {
            "sequence": new.sequence,
            "epoch": new.epoch,
            "kind": new.kind.value,
            "tick": new.tick,
            "committed_at": new.committed_at,
            "record": commit_text(new),
            "catalog": None if catalog is None else catalog_text(catalog),
        }
        return self.journal.write(row, changes)

    def _append(self, new: Commit, written: DataFile, changes: Collection[TableChange]) -> bool:
        """Append a commit's data file. Return False if the version was taken, or may have been.

        The version is the one after the newest commit that is known here, whatever else the handle has seen since.
        """
        if self.table.version != self._seen:
            return False
        numbers = _numbers(new)
        if any(change.files for change in changes):
            numbers[REFERRED] = new.sequence
        appended = self.journal.append(written, numbers=numbers, mark=commit_text(new))
        if appended:
            self._seen, self._head = self.table.version, new
        return appended


def _numbers(commit: Commit) -> dict[str, int]:
    return {"headwater": commit.sequence, "headwater.epoch": commit.epoch}


def _following(head: Commit, kind: CommitKind, tick: Tick, record: CommitRecord, epoch: int) -> Commit:
    return Commit(
        sequence=head.sequence + 1,
        epoch=epoch,
        kind=kind,
        tick=tick,
        committed_at=max(datetime.now(UTC), head.committed_at),  # a clock set back must not reorder history
        catalog_sequence=head.catalog_sequence,
        record=record,
    )
