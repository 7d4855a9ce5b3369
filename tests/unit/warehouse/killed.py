"""A maintainer in small, to be killed: a view that is a copy of one relation, and a source that repeats itself.

python killed.py WAREHOUSE TARGET     accept and commit until tick TARGET, whatever an earlier run left behind
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from headwater.deltas.on_arrow import ArrowBag
from headwater.model.position import Position, Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import Capture, Transaction
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.chores import Policy
from headwater.warehouse.commit_record import CommitKind, CommitRecord
from headwater.warehouse.folders import view_folder
from headwater.warehouse.housekeeping import Housekeeper
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse

SALES = RelationName(source="shop", name="sales")
START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.int64())])
POLICY = Policy(
    fold_commits=2, journal_files=4, files_per_tier=2, entries_per_clean=5, vacuum_every=timedelta(), keep_ticks=3
)


def capture(first: int, last: int) -> Capture:
    offsets = range(first, last + 1)
    transactions = tuple(
        Transaction(
            position=Position(source="shop", history="1:1", offset=offset),
            identity=offset,
            committed_at=START + timedelta(seconds=offset),
        )
        for offset in offsets
    )
    rows = pa.table(
        {
            "id": pa.array(offsets, pa.int64()),
            "_ordinal": pa.array(range(len(offsets)), pa.int32()),
            "_count": pa.array([1] * len(offsets), pa.int64()),
        }
    )
    return Capture(transactions=transactions, rows={SALES: rows})


def run(path: str, target: int) -> None:
    warehouse = Warehouse.create(path)
    epoch = warehouse.commits.take_lease("here:1")
    warehouse.log.take_over(epoch)
    table = KeptTable.create(view_folder(path, "v", 1), warehouse.commits.journal, SCHEMA, Tick(0))
    table.checkpoint.write(SCHEMA.empty_table(), Tick(0))
    if not warehouse.catalog().views:
        view = ViewEntry(
            name="v", generation=1, sql="…", birth=Tick(0), guarantee="complete", schema=(("id", "bigint"),)
        )
        record = CommitRecord(frontiers={"v": Tick(0)})
        warehouse.commits.commit(CommitKind.CATALOG, Tick(0), record, epoch=epoch, catalog=Catalog(views={"v": view}))
    keeper = Housekeeper(Warehouse.open(path), POLICY, started_at=START)
    keeper.fold()
    warehouse.commits.journal.hold()
    while (lo := warehouse.head().tick) < target:
        # the source repeats what it is not sure we have, and cuts it differently after each restart
        warehouse.log.append([capture(max(1, lo - 2), min(target, lo + 2 + epoch % 4))])
        hi = warehouse.log.last_tick
        change = table.change(ArrowBag(warehouse.log.rows(SALES, ("id",), lo, hi)), hi)
        assert change is not None
        warehouse.commits.commit(CommitKind.BATCH, hi, CommitRecord(frontiers={"v": hi}), epoch=epoch, changes=[change])
        if hi > 6:
            table.checkpoint.write(pa.table({"id": pa.array(range(1, hi + 1), pa.int64())}), hi)
        list(keeper.run(datetime.now(UTC), lo))


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]))
