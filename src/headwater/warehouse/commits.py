"""The one commit point of the kept tables: a row in the `commits` table.

Law: what readers see is a function of the newest commit alone. Kept tables may hold rows beyond it; they are not seen.

Invariants
1. Sequences are 1, 2, 3 …, epochs never fall; a commit lands right after the one its maintainer saw last, or nowhere.
2. Only the maintainer that took the lease last can commit; every other gets `LeaseLost`, whatever its clock says.
3. The newest commit is also in the Delta commit's own metadata, so reading it opens one small file however many
   commits there are.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from headwater.errors import LeaseLost
from headwater.fail_points import reach
from headwater.model.position import Tick
from headwater.storage.data_file import place
from headwater.storage.fenced_table import FencedTable
from headwater.storage.storage_errors import stored
from headwater.warehouse.catalog import Catalog, catalog_text, parse_catalog
from headwater.warehouse.commit_record import Commit, CommitKind, CommitRecord, commit_text, parse_commit

SCHEMA = pa.schema(
    [
        ("sequence", pa.int64()),
        ("epoch", pa.int64()),
        ("kind", pa.string()),
        ("tick", pa.int64()),
        ("committed_at", pa.timestamp("us", tz="UTC")),
        ("record", pa.string()),
        ("catalog", pa.string()),
    ]
)


class Commits:
    """The warehouse's commits, oldest first. One thread commits. A reader opens its own."""

    def __init__(self, table: FencedTable) -> None:
        """Wrap an open table. Use `create` or `open`."""
        self.table = table
        self._seen, self._head = table.version, parse_commit(table.mark())
        self._catalog: tuple[int, Catalog] = (0, Catalog())

    @classmethod
    def create(cls, path: str) -> Self:
        """Create the table. Commit 0 stands for the empty warehouse and has no row."""
        nothing = Commit(
            sequence=0,
            epoch=0,
            kind=CommitKind.LEASE,
            tick=Tick(0),
            committed_at=datetime.now(UTC),
            catalog_sequence=0,
            record=CommitRecord(),
        )
        FencedTable.create(path, SCHEMA, numbers=_numbers(nothing), mark=commit_text(nothing), indexed=5)
        return cls.open(path)

    @classmethod
    def open(cls, path: str) -> Self:
        """Open the table at its newest commit."""
        return cls(FencedTable.open(path))

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
            rows = self._rows(sequence - 1, sequence, ["catalog"])
            self._catalog = sequence, parse_catalog(rows["catalog"][0].as_py())
        return self._catalog[1]

    def take_lease(self, holder: str) -> int:
        """Become the only committer, and return the new epoch. `holder` is for people to read."""
        while True:
            head = self.head()
            lease = _following(
                head, CommitKind.LEASE, head.tick, replace(head.record, statistics=None, holder=holder), head.epoch + 1
            )
            if self._write(lease, None):
                return lease.epoch

    def commit(
        self,
        kind: CommitKind,
        tick: Tick,
        record: CommitRecord,
        *,
        epoch: int,
        catalog: Catalog | None = None,
    ) -> Commit:
        """Move the warehouse one step. With `catalog`, the views and replicas are these from now on."""
        head = self._head
        new = _following(head, kind, tick, record, epoch)
        if catalog is not None:
            new = replace(new, catalog_sequence=new.sequence)
        text = None if catalog is None else catalog_text(catalog)
        reach("before commit")
        while self._head == head and head.epoch == epoch:
            if self._write(new, text):
                reach("after commit")
                return new
            if self.head() == new:
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
        rows = self._rows(after, upto, ["record"])
        return [parse_commit(text) for text in rows["record"].to_pylist()]

    def at(self, moment: datetime) -> Commit | None:
        """Return the newest commit that readers could see at a moment."""
        self.table.reload()
        files = self.table.files(column="sequence")
        with stored(*files):
            table = self._dataset(files).to_table(
                columns=["sequence"],
                filter=ds.field("committed_at") <= pa.scalar(moment, SCHEMA.field("committed_at").type),
            )
        newest = pc.max(table["sequence"]).as_py()
        return None if newest is None else self.read(newest - 1, newest)[0]

    def _rows(self, after: int, upto: int | None, columns: list[str]) -> pa.Table:
        files = self.table.files(after=after, upto=upto, column="sequence")
        wanted = ds.field("sequence") > after
        if upto is not None:
            wanted &= ds.field("sequence") <= upto
        with stored(*files):
            return self._dataset(files).to_table(columns=["sequence", *columns], filter=wanted).sort_by("sequence")

    def _dataset(self, files: list[str]) -> ds.Dataset:
        system, _ = place(self.table.path)
        return ds.dataset([place(file)[1] for file in files], schema=SCHEMA, format="parquet", filesystem=system)

    def _write(self, new: Commit, catalog: str | None) -> bool:
        row = {
            "sequence": new.sequence,
            "epoch": new.epoch,
            "kind": new.kind.value,
            "tick": new.tick,
            "committed_at": new.committed_at,
            "record": commit_text(new),
            "catalog": catalog,
        }
        written = self.table.append(
            pa.Table.from_pylist([row], schema=SCHEMA), numbers=_numbers(new), mark=commit_text(new)
        )
        if written:
            self._seen, self._head = self.table.version, new
        return written


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
