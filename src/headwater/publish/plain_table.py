"""A plain Delta table of a view's current state, which other engines read without knowing Headwater.

    checkpoint at tick C ─► data files ─► + changes (C, T] ─┐
    the table at tick t  ─► its files  ─► + changes (t, T] ─┴─► one Delta commit: the state at tick T

What came is a new file. Of what went, the files that hold it are written again without it (copy on write), so that a
reader needs no deletion vectors. What a file cannot hold is known by its bounds.

Invariants
1. Every version of the table is the view's exact state at one tick. Its commit says which, in `headwater` of the
   commit's metadata: project, view, tick, the position of each source's log, and the kept table it was made from.
2. Rows and tick change in one commit. A process that dies before leaves files that no version names; they are removed
   a day later.
3. If the newest change of the table is not ours, or is of an earlier generation of the view, or the changes since are
   not kept any more, the table is written again as a whole, again in one commit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, Schema
from deltalake.transaction import create_table_with_add_actions

from headwater.deltas.on_arrow import ArrowBag, unfolded
from headwater.errors import NotReadable
from headwater.fail_points import reach
from headwater.model.position import Positions, Tick, by_log
from headwater.model.relation import COUNT
from headwater.storage.data_file import DataFile, write_parts, write_rows
from headwater.storage.fenced_table import FencedTable
from headwater.storage.few_rows import read_few, read_in_parts
from headwater.storage.object_store import delta_address, store_at
from headwater.storage.sought_values import is_bounded
from headwater.storage.storage_errors import stored
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse

_ROWS_PER_FILE = 1_000_000
_ROWS_AT_ONCE = 500_000
"""Changed rows that are applied in one commit; more ticks follow in the next."""
_BOUNDED_COLUMNS = 8
_FILES_TO_MERGE = 32
_MERGED_BYTES = 64 * 2**20
_GRACE_HOURS = 24
_NO_LIMIT = 1 << 62
_MARK = "headwater"
_LOOK_BACK = 100
_TICKS_PER_LOOK = 10_000
_ATTEMPTS = 5
_CONFIGURATION: Mapping[str, str | None] = {
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishResult:
    """What publishing did: the table is at a tick now, and which rows came and went for that."""

    view: str
    path: str
    tick: Tick
    version: int
    rows_added: int
    rows_removed: int
    is_whole: bool
    """Whether all rows were written, rather than what changed."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """What a commit says of the table's state."""

    project: str
    view: str
    tick: Tick
    positions: Mapping[str, str]
    table: str

    @property
    def text(self) -> str:
        said = {"project": self.project, "view": self.view, "tick": self.tick}
        return json.dumps({**said, "positions": self.positions, "table": self.table})


@dataclass(slots=True, kw_only=True)
class _Draft:
    """The next version of the table: what it takes out, what it puts in, and how many rows that is."""

    added: list[DataFile]
    removed: list[Mapping[str, Any]]
    rows_added: int = 0
    rows_removed: int = 0


def publish_view(warehouse: Warehouse, project: str, view: str, path: str) -> PublishResult:
    """Bring a published table to the view's newest state, with as little writing as possible. Make it if need be."""
    started = time.monotonic()
    _require_place(warehouse.path, path)
    rows_added = rows_removed = 0
    is_whole = False
    with stored(path):
        for _ in range(_ATTEMPTS):
            source = _Source.of(warehouse, project, view)
            table = FencedTable.open(path) if FencedTable.exists(path) else None
            known = None if table is None else _note_of(table, project, view)
            while table is None or known is None or known.table != source.id or known.tick < source.tick:
                step = _step(source, table, known, path)
                if step is None:
                    break  # somebody else published meanwhile: look again
                known, draft, whole = step
                rows_added, rows_removed = rows_added + draft.rows_added, rows_removed + draft.rows_removed
                is_whole = is_whole or whole
                table = FencedTable.open(path)
            else:
                _tidy(table)
                return PublishResult(
                    view=view,
                    path=path,
                    tick=known.tick,
                    version=table.version,
                    rows_added=rows_added,
                    rows_removed=rows_removed,
                    is_whole=is_whole,
                    seconds=time.monotonic() - started,
                )
    raise NotReadable(
        f'the published table of view "{view}" is being changed by others',
        code="HW-183",
        detail=f'each commit to "{path}" was overtaken by another one',
        hint="let one program publish there, and others only read",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The view that is published, and the state to reach."""

    warehouse: Warehouse
    kept: KeptTable
    project: str
    view: str
    tick: Tick
    id: str

    @classmethod
    def of(cls, warehouse: Warehouse, project: str, view: str) -> _Source:
        tick = warehouse.frontier(view)
        kept = warehouse.kept_table(view)
        return cls(warehouse=warehouse, kept=kept, project=project, view=view, tick=tick, id=kept.changes.identity)

    def note(self, tick: Tick) -> _Note:
        """Return what the commit of a tick says."""
        positions = {log: str(position) for log, position in sorted(_positions_at(self.warehouse, tick).items())}
        return _Note(project=self.project, view=self.view, tick=tick, positions=positions, table=self.id)

    def changes(self, after: Tick) -> tuple[Tick, ArrowBag]:
        """Return the net changes after a tick, and up to which one: the newest, or an earlier one if they are many."""
        upto = self.tick
        while True:
            few = _ROWS_AT_ONCE if upto > after + 1 else _NO_LIMIT
            found = self.kept.few_changes(after, upto, few)
            if found is not None:
                return upto, ArrowBag(found).restamped(upto).net()
            upto = Tick(after + (upto - after) // 2)


def _step(
    source: _Source, table: FencedTable | None, known: _Note | None, path: str
) -> tuple[_Note, _Draft, bool] | None:
    """Commit the next state. Return what it says and which rows moved, or None if another commit was first."""
    if table is not None and known is not None and known.table == source.id:
        try:
            upto, changes = source.changes(known.tick)
        except NotReadable:  # retention has dropped them
            pass
        else:
            files = [f"{path}/{entry['path']}" for entry in table.entries()]
            draft = _applied(path, source.kept.schema, files, changes, table)
            if draft is not None:
                reach("before publish")
                note = source.note(upto)
                done = table.register(draft.added, numbers={}, mark=note.text, instead_of=draft.removed)
                reach("after publish")
                return (note, draft, False) if done else None
    return _whole(source, path)


def _whole(source: _Source, path: str) -> tuple[_Note, _Draft, bool]:
    """Write all rows, and put them in the place of what is there."""
    schema, parts = source.kept.schema, source.kept.checkpoint_parts()
    files = list(_written(path, schema, (part.select(schema.names) for part in parts.rows)))
    upto, changes = parts.tick, ArrowBag.of_plain(schema.empty_table(), parts.tick)
    if parts.tick < source.tick:
        upto, changes = source.changes(parts.tick)
    draft = _applied(path, schema, [f"{path}/{file.path}" for file in files], changes, None)
    assert draft is not None, "a checkpoint holds what goes after it"
    gone = {entry["path"] for entry in draft.removed}
    final = [*(file for file in files if file.path not in gone), *draft.added]
    note = source.note(upto)
    address, options = delta_address(path)
    reach("before publish")
    create_table_with_add_actions(
        address,
        Schema.from_arrow(schema),
        [file.add_action(data_change=True) for file in final],
        mode="overwrite",
        partition_by=[],
        name=source.view,
        configuration=dict(_CONFIGURATION),
        storage_options=options,
        commit_properties=CommitProperties(custom_metadata={_MARK: note.text}),
    )
    reach("after publish")
    row_count = sum(file.row_count for file in final)
    return note, _Draft(added=final, removed=[], rows_added=row_count), True


def _applied(
    path: str, schema: pa.Schema, files: list[str], changes: ArrowBag, table: FencedTable | None
) -> _Draft | None:
    """Write what changes make of files. None if a row that went is in none of them."""
    counts = changes.table[COUNT]
    came = ArrowBag(changes.table.filter(pc.greater(counts, 0)))
    went = ArrowBag(changes.table.filter(pc.less(counts, 0))).negated()
    draft = _Draft(added=[], removed=[], rows_added=_sum(came), rows_removed=_sum(went))
    if len(went):
        entries = {} if table is None else {f"{path}/{entry['path']}": entry for entry in table.entries()}
        may_hold = set(files if table is None else table.files_holding(_sought(went)))
        for file in files:
            if file not in may_hold or not len(went):
                continue
            here, went = _taken_from(file, schema, went)
            if not len(here):
                continue
            draft.removed.append(entries.get(file, {"path": file.removeprefix(f"{path}/")}))
            draft.added += _written(path, schema, _without(file, schema, here))
        if len(went):
            return None
    if len(came):
        draft.added += _written(path, schema, [unfolded(came).select(schema.names).cast(schema)])
    return draft


def _sought(rows: ArrowBag) -> pa.Table:
    """Return the columns by which rows are found: floating numbers are not, since NaN equals nothing."""
    kept = [
        name
        for name in rows.columns
        if not pa.types.is_floating(kind := rows.schema.field(name).type) and not pa.types.is_nested(kind)
    ]
    return rows.table.select(kept)


def _taken_from(file: str, schema: pa.Schema, went: ArrowBag) -> tuple[ArrowBag, ArrowBag]:
    """Return which of some rows a file holds, and which of them are left to be found in others."""
    sought = _sought(went)
    found = read_few([file], schema, sought if sought.num_columns else None, _NO_LIMIT)
    assert found is not None, "there is no limit"
    tick = went.ticks()[0]
    candidates = ArrowBag.of_plain(found, tick)
    left = went.plus(candidates.negated()).positive()  # what the file holds less often than is sought
    return went.plus(left.negated()).positive(), left


def _without(file: str, schema: pa.Schema, rows: ArrowBag) -> Iterator[pa.Table]:
    """Yield what a file holds beside some rows."""
    tick = rows.ticks()[0]
    for part in read_in_parts([file], schema):
        if not len(rows):
            yield part
            continue
        netted = ArrowBag.of_plain(part, tick).plus(rows.negated()).net()
        counts = netted.table[COUNT]
        yield unfolded(ArrowBag(netted.table.filter(pc.greater(counts, 0)))).select(schema.names).cast(schema)
        rows = ArrowBag(netted.table.filter(pc.less(counts, 0))).negated()
    assert not len(rows), "the file holds them"


def _written(path: str, schema: pa.Schema, parts: Iterable[pa.Table]) -> Iterator[DataFile]:
    """Write rows into data files of a limited size."""
    bounded = [field.name for field in schema if is_bounded(field.type)][:_BOUNDED_COLUMNS]
    waiting: list[pa.Table] = []
    for part in parts:
        if part.num_rows:
            waiting.append(part)
        if sum(one.num_rows for one in waiting) >= _ROWS_PER_FILE:
            yield write_parts(path, schema, waiting, bounded=bounded)
            waiting = []
    if waiting:
        yield write_rows(path, pa.concat_tables(waiting), bounded=bounded)


def _sum(rows: ArrowBag) -> int:
    return int(pc.sum(rows.table[COUNT]).as_py() or 0)


def _note_of(table: FencedTable, project: str, view: str) -> _Note | None:
    """Return what the table says of its state. None if something else has changed its rows since.

    A table that Headwater did not write, or wrote for another view, is refused.
    """
    said = _newest_note(table)
    if said is not None and (said.project, said.view) == (project, view):
        return said if _is_unchanged(table) else None
    raise NotReadable(
        f'"{table.path}" is not the published table of view "{view}"',
        code="HW-181",
        detail="none of its last commits is ours"
        if said is None
        else f'it is that of view "{said.view}" of project "{said.project}"',
        hint="name another folder, or remove that table first",
    )


def _newest_note(table: FencedTable) -> _Note | None:
    for entry in table.commit_infos(_LOOK_BACK):
        if (text := entry.get(_MARK)) is not None:
            found = json.loads(text)
            return _Note(**{**found, "tick": Tick(found["tick"])}) if "view" in found else None
    return None


def _is_unchanged(table: FencedTable) -> bool:
    """Tell whether nothing but tidying came after our newest commit."""
    newest = next(table.commit_infos(1), {})
    operation = str(newest.get("operation", ""))
    return _MARK in newest or operation.startswith("VACUUM")


def _positions_at(warehouse: Warehouse, tick: Tick) -> Positions:
    """Return the newest transaction of each source's log up to a tick, as far back as the change log goes."""
    log = warehouse.log
    log.refresh()
    wanted, horizon = set(log.positions()), log.horizon()
    found: dict[str, Any] = {}
    high = tick
    while high > horizon and not wanted <= found.keys():
        low = Tick(max(horizon, high - _TICKS_PER_LOOK))
        earlier = by_log(one.position for _, one in log.transactions(None, low, high))
        found = {**earlier, **found}
        high = low
    return found


def _require_place(warehouse: str, path: str) -> None:
    """Refuse a folder in which a table would be among other files."""
    is_inside = f"{path}/".startswith(f"{warehouse}/") and not path.startswith(f"{warehouse}/published/")
    foreign = [
        name
        for name in ([] if is_inside or FencedTable.exists(path) else store_at(path).names())
        if not (name.startswith("part-") and name.endswith(".parquet")) and name != "_delta_log"
    ]
    if is_inside or foreign:
        raise NotReadable(
            f'no table can be published in "{path}"',
            code="HW-182",
            detail="it is inside of the warehouse"
            if is_inside
            else f'it holds "{foreign[0]}", which is not of a table',
            hint="name a folder that is new or empty",
        )


def _tidy(table: FencedTable) -> None:
    """Merge small files, and remove what no version of the last day needs, once there are many."""
    if len(table.entries()) < _FILES_TO_MERGE and (table.version + 1) % (4 * _FILES_TO_MERGE):
        return
    table.compact(_MERGED_BYTES)
    table.vacuum(grace_hours=_GRACE_HOURS, strays=True)
    table.clean_log()
