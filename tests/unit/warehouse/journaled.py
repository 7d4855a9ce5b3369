"""Kept tables outside a warehouse, and changes that are told of them as commits do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.deltas.on_arrow import ArrowBag
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.storage.data_file import place
from headwater.warehouse.commit_record import CommitKind, CommitRecord
from headwater.warehouse.commits import Commits
from headwater.warehouse.journal import Journal
from headwater.warehouse.kept_table import KeptTable


def journal_in(folder: str) -> Journal:
    """Return the journal of a folder, made if there is none."""
    path = f"{folder}/journal"
    return (Commits.open(path) if Commits.exists(path) else Commits.create(path)).journal


def tell(table: KeptTable, rows: pa.Table, upto: int) -> bool:
    """Commit what changes of a table are new; False if none are."""
    change = table.change(ArrowBag(rows), Tick(upto))
    if change is None:
        return False
    commits = Commits(table.journal)
    commits.commit(CommitKind.BATCH, Tick(upto), CommitRecord(), epoch=commits.head().epoch, changes=[change])
    return True


def fold(table: KeptTable) -> None:
    """Fold what was committed of a table."""
    table.changes.reload()
    table.journal.fold(lambda name: table.changes if name == table.name else None)


def rows_at(table: KeptTable, tick: int) -> Counter[tuple[Any, ...]]:
    """Return a table's rows at a tick, each as often as it stands, without Spark; none stands fewer than zero times."""
    snapshot = table.checkpoint.snapshot()
    counted: Counter[tuple[Any, ...]] = Counter()
    for file in snapshot.files:
        system, path = place(file)
        rows = pq.read_table(path, filesystem=system).select(table.schema.names)
        counted.update(tuple(row.values()) for row in rows.to_pylist())
    changes = table.few_changes(Tick(min(tick, snapshot.tick)), Tick(max(tick, snapshot.tick)), 1_000_000)
    assert changes is not None
    for row in changes.drop_columns(TICK).to_pylist():
        count = row.pop(COUNT)
        counted[tuple(row.values())] += count if tick > snapshot.tick else -count
    assert min(counted.values(), default=0) >= 0
    return +counted


def append(table: KeptTable, rows: pa.Table, upto: int) -> bool:
    """Commit changes of a table and fold them."""
    told = tell(table, rows, upto)
    fold(table)
    return told
