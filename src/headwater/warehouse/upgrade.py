"""Make an older warehouse one of this format: only `run` does, and says so first.

Up to format 3 a batch was appended to every table, and a row in `commits` said so afterwards. Now the journal has both:

    format.json   says 4: no older version opens the warehouse from here on
    commits       a last lease, so that an older maintainer which is still at work can commit no more
    each table    loses what such a maintainer appended and did not commit, and takes nothing from it any more
    journal       gets all commits in one append; from then on it is what counts

Killed anywhere, the next `run` does what is left. Readers read the older layout until the last step; a reader that is
at work meanwhile goes on in it, and sees no new commits there.
"""

from __future__ import annotations

import pyarrow.dataset as ds

from headwater.errors import LeaseLost
from headwater.fail_points import reach
from headwater.model.position import Tick
from headwater.model.relation import TICK
from headwater.observe.events import Listener, WarehouseUpgraded
from headwater.storage.data_file import DataFile, place, write_rows
from headwater.storage.fenced_table import FencedTable
from headwater.storage.merge_files import merge_files
from headwater.storage.storage_errors import stored
from headwater.warehouse.catalog import Catalog
from headwater.warehouse.commit_record import CommitRecord, commit_text
from headwater.warehouse.commits import Commits
from headwater.warehouse.folders import journal_folder, older_commits_folder, segment_folder, view_folder
from headwater.warehouse.format import FORMAT, check_format, write_format
from headwater.warehouse.journal import FOLDED, SCHEMA
from headwater.warehouse.lease import own_name
from headwater.warehouse.query import has_journal

_WITHOUT_JOURNAL = 3
_APPENDED = "headwater"
"""The number by which older versions know how far a table was appended to."""
_ALL_TICKS = 1 << 60


def upgrade(warehouse: str, listener: Listener) -> None:
    """Make an older warehouse one of this format, before anything is written to it that the older one has not."""
    found = check_format(warehouse)
    if found == FORMAT and has_journal(warehouse):
        return
    listener(WarehouseUpgraded(warehouse=warehouse, before=min(found, _WITHOUT_JOURNAL), after=FORMAT))
    reach("before format upgrade")
    write_format(warehouse)
    reach("after format upgrade")
    if not has_journal(warehouse):
        _carry_over(warehouse)


def _carry_over(warehouse: str) -> None:
    older = Commits.open(older_commits_folder(warehouse))
    epoch = older.take_lease(own_name())
    head = older.head()
    for folder, frontier in _frontiers(warehouse, older.catalog(head), head.record).items():
        _take_back(f"{folder}/changes", frontier)
    if not Commits.exists(journal_folder(warehouse)):
        Commits.create(journal_folder(warehouse))
    journal = FencedTable.open(journal_folder(warehouse))
    copied = merge_files(journal.path, older.table.files(column="sequence"), SCHEMA)
    if older.head().epoch != epoch:
        raise LeaseLost(
            "another maintainer has taken this warehouse over",
            code="HW-421",
            detail="while it was being upgraded",
            hint="stop one of the two; only one maintainer can run on a warehouse",
        )
    reach("before journal upgrade")
    numbers = {"headwater": head.sequence, "headwater.epoch": head.epoch}
    if not journal.number("headwater"):
        journal.register([copied], numbers=numbers, mark=commit_text(head))  # False: another has just done it
    reach("after journal upgrade")


def _frontiers(warehouse: str, catalog: Catalog, record: CommitRecord) -> dict[str, Tick]:
    """Return the folders of views and auxiliary tables, each with the newest tick that a view of it has reached."""
    found: dict[str, Tick] = {}
    for view in catalog.views.values():
        frontier = record.frontiers.get(view.name, view.birth)
        tables = [view_folder(warehouse, view.name, view.generation)]
        tables += [segment_folder(warehouse, table) for table in view.segments]
        found |= {folder: max(frontier, found.get(folder, frontier)) for folder in tables}
    return found


def _take_back(path: str, frontier: Tick) -> None:
    """Take the rows after a tick out of a table, and let no older maintainer append any more: it finds all appended.

    Nobody has seen them: they were never committed. They are computed again.
    """
    table = FencedTable.open(path)
    while table.number(FOLDED) is None:
        appended = table.number(_APPENDED) or 0
        beyond = [entry for entry in table.entries() if entry.get(f"max.{TICK}", frontier + 1) > frontier]
        numbers = {FOLDED: min(appended, frontier), _APPENDED: _ALL_TICKS}
        left = [] if appended <= frontier else _rows_upto(table, [entry["path"] for entry in beyond], frontier)
        reach("before table upgrade")
        table.register(left, numbers=numbers, instead_of=beyond if appended > frontier else ())
        reach("after table upgrade")


def _rows_upto(table: FencedTable, paths: list[str], frontier: Tick) -> list[DataFile]:
    """Write the rows of data files up to a tick to a new one, if there are any."""
    system, base = place(table.path)
    with stored(*(f"{table.path}/{path}" for path in paths)):
        files = [f"{base}/{path}" for path in paths]
        held = ds.dataset(files, schema=table.schema(), format="parquet", filesystem=system)
        rows = held.to_table(filter=ds.field(TICK) <= frontier)
    return [write_rows(table.path, rows)] if rows.num_rows else []
