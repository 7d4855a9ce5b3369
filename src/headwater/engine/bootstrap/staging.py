"""Read relations, or some of their rows, into staging files, chunk by chunk, so that a bootstrap can be resumed.

A chunk of a relation is an answer like any other: rows, and the set of transactions that were seen when they were read.
Where other processes can join a snapshot, tasks of Spark read the chunks (`task_reading`), else threads do.
Where a source's readers do not share what they see, each chunk has seen something else. After a crash the finished
chunks stay; the others are read in a new snapshot, and each chunk is rebased by what *it* saw. That needs a chunk to
mean the same rows in every snapshot: a key range whose order we can repeat. Where a relation has no such key, all of it
is read at one moment, and starts over. So does everything when the server was restarted: a crash may take back
transactions that a chunk shows, and the log will never tell.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.deltas.extent import Remainder
from headwater.deltas.on_arrow import remaining
from headwater.engine.bootstrap.chunk_task import ChunkRead, ChunkRequest, write_chunk
from headwater.engine.bootstrap.task_reading import TaskReading
from headwater.fail_points import reach
from headwater.model.position import Positions
from headwater.model.relation import Relation, arrow_type
from headwater.model.settings import BootstrapSettings
from headwater.model.transaction import Seen
from headwater.observe.events import BootstrapProgress, Listener
from headwater.sources.source import Chunk, LogView, Reader, Snapshot, Source
from headwater.storage.data_file import place
from headwater.storage.notes import read_text, write_text
from headwater.storage.object_store import store_at
from headwater.warehouse.folders import staging_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedChunk:
    """A chunk's file, and what was seen when it was read."""

    chunk: Chunk
    path: str
    seen: Seen
    row_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRelation:
    """A relation's wanted columns of the rows of a remainder, in chunks."""

    relation: Relation
    wanted: tuple[str, ...]
    rows: Remainder
    chunks: tuple[StagedChunk, ...]

    @property
    def row_count(self) -> int:
        """How many rows were read."""
        return sum(chunk.row_count for chunk in self.chunks)

    @property
    def sights(self) -> tuple[Seen, ...]:
        """The different snapshots that the chunks were read in."""
        return tuple(dict.fromkeys(chunk.seen for chunk in self.chunks))

    @property
    def is_of_one_sight(self) -> bool:
        """Whether all chunks were read in one snapshot, so that nothing depends on the keys of rows."""
        return len(self.sights) == 1

    def ranges(self, seen: Seen) -> tuple[Chunk, ...]:
        """Return the key ranges of the chunks that were read in a snapshot. Those that touch are one."""
        found: list[Chunk] = []
        for one in (staged.chunk for staged in self.chunks if staged.seen == seen):
            if found and found[-1].high is not None and found[-1].high == one.low:
                found[-1] = replace(found[-1], high=one.high)
            else:
                found.append(one)
        return tuple(found)

    def within(self, rows: pa.Table, ranges: Iterable[Chunk]) -> pa.Table:
        """Return those of the log's rows that are in the remainder, and in key ranges unless all saw the same."""
        rows = remaining(rows, self.rows)
        if self.is_of_one_sight:
            return rows
        mask = pa.repeat(pa.scalar(False), rows.num_rows)
        for chunk in ranges:
            mask = pc.or_(mask, _within_chunk(rows, chunk, self.relation))
        return rows.filter(mask)

    @property
    def is_in_ranges(self) -> bool:
        """Whether a row's key says which chunk it is in."""
        return _are_ranges([one.chunk for one in self.chunks], self.relation, self.wanted)

    def in_chunk(self, rows: pa.Table, chunk: Chunk) -> pa.Table:
        """Return those of some rows that are in a chunk's range."""
        return rows.filter(_within_chunk(rows, chunk, self.relation))


def _within_chunk(rows: pa.Table, chunk: Chunk, relation: Relation) -> pa.Array:
    assert chunk.column is not None, "only key ranges are read in several snapshots"
    values = rows[chunk.column]
    kind = arrow_type(relation.column(chunk.column).type)
    inside = pa.chunked_array([pa.repeat(pa.scalar(True), rows.num_rows)])
    if chunk.low is not None:
        inside = pc.and_(inside, pc.greater(values, pa.scalar(chunk.low).cast(kind)))
    if chunk.high is not None:
        inside = pc.and_(inside, pc.less_equal(values, pa.scalar(chunk.high).cast(kind)))
    return pc.fill_null(inside, chunk.low is None).combine_chunks()


@dataclass(frozen=True, slots=True)
class _OneReader:
    """A snapshot of which every thread gets the same reader, one after the other."""

    snapshot: Snapshot
    one: Reader
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def token(self) -> str:
        return self.snapshot.token

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        with self.lock:
            yield self.one

    def chunks(self, relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
        return self.snapshot.chunks(relation, rows_per_chunk)

    def exported(self) -> Mapping[str, Any]:
        return self.snapshot.exported()

    def is_valid(self, log: LogView) -> bool:
        return self.snapshot.is_valid(log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave the snapshot open. The code that opened it closes it."""


def forget_staged(warehouse: str) -> None:
    """Delete all that was staged, as far as no task that was given up is writing there still."""
    with suppress(OSError):
        store_at(staging_folder(warehouse)).delete()


@contextmanager
def one_moment(source: Source, snapshot: Snapshot) -> Iterator[Snapshot]:
    """Return a snapshot whose readers all see the same: the snapshot itself, or a single reader of it."""
    if source.abilities.shares_snapshots:
        yield snapshot
        return
    with snapshot.reader() as one:
        yield _OneReader(snapshot, one)


def stage_relation(
    folder: str,
    source: Source,
    snapshot: Snapshot,
    relation: Relation,
    wanted: tuple[str, ...],
    rows: Remainder,
    listener: Listener,
    settings: BootstrapSettings,
    tasks: TaskReading | None = None,
) -> StagedRelation:
    """Read rows of a relation into files, several chunks at a time. Chunks that an earlier attempt finished are kept.

    The columns of the remainder are among the wanted ones. A single chunk is not worth a task.
    """
    with snapshot.reader() as reader:
        name = _folder_name(relation, wanted, rows, reader.positions, snapshot.token)
        home = f"{folder}/{name}"
    plan = _remembered_chunks(home)
    if plan is None:
        store_at(home).delete()
        plan = snapshot.chunks(relation, settings.chunk_rows)
        write_text(home, "chunks.json", json.dumps([asdict(chunk) for chunk in plan]))
    is_resumable = _are_ranges(plan, relation, wanted)
    finished = _finished_chunks(home, plan, source) if is_resumable else []
    progress = _Progress(relation, sum(staged.row_count for staged in finished), listener)
    done = {staged.chunk.number for staged in finished}
    requests = [
        ChunkRequest(relation=relation, wanted=wanted, rows=rows, chunk=chunk, folder=home)
        for chunk in plan
        if chunk.number not in done
    ]
    reading = tasks if len(requests) > 1 else None
    with ExitStack() as stack:
        if not is_resumable:
            snapshot = stack.enter_context(one_moment(source, snapshot))
        pool = stack.enter_context(ThreadPoolExecutor(settings.readers, thread_name_prefix=f"read {relation.name}"))
        read = pool.map(lambda request: _stage_chunk(snapshot, reading, request, progress), requests)
        staged = sorted([*finished, *read], key=lambda one: one.chunk.number)
    progress.finish()
    return StagedRelation(relation=relation, wanted=wanted, rows=rows, chunks=tuple(staged))


def _folder_name(relation: Relation, wanted: tuple[str, ...], rows: Remainder, positions: Positions, token: str) -> str:
    """Name what chunks have in common: a server that restarted may have lost what its earlier chunks show."""
    server = (" ".join(positions[log].history for log in sorted(positions)), token)
    columns = [(column.name, column.type, column.native) for column in relation.columns]
    content = json.dumps([str(relation.name), wanted, repr(rows), columns, server])
    return f"{relation.name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def _are_ranges(plan: Sequence[Chunk], relation: Relation, wanted: tuple[str, ...]) -> bool:
    """Tell whether we can repeat the chunks' order: that of numbers and dates, not of texts (collations differ)."""
    column = plan[0].column
    if column is None or column not in wanted:
        return False
    kind = arrow_type(relation.column(column).type)
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _stage_chunk(
    snapshot: Snapshot, tasks: TaskReading | None, request: ChunkRequest, progress: _Progress
) -> StagedChunk:
    """Read a chunk, by a task if there are tasks and they can, and note that it is read."""
    read = None if tasks is None else tasks.read(request)
    if read is None:
        with snapshot.reader() as reader:
            read = write_chunk(reader, request, progress.add)
    else:
        progress.add(read.row_count)
    write_text(request.folder, _note(request.chunk), json.dumps(read.written()))
    reach("chunk staged")
    return _staged(request.folder, request.chunk, read)


def _staged(home: str, chunk: Chunk, read: ChunkRead) -> StagedChunk:
    return StagedChunk(chunk=chunk, path=f"{home}/{read.file}", seen=read.seen, row_count=read.row_count)


def _note(chunk: Chunk) -> str:
    return f"chunk-{chunk.number}.json"


def _remembered_chunks(home: str) -> tuple[Chunk, ...] | None:
    try:
        return tuple(Chunk(**chunk) for chunk in json.loads(read_text(home, "chunks.json") or ""))
    except (ValueError, TypeError):  # not there, or of no use: all is read again
        return None


def _finished_chunks(home: str, plan: Sequence[Chunk], source: Source) -> list[StagedChunk]:
    finished = []
    for chunk in plan:
        try:
            staged = _staged(home, chunk, ChunkRead.read(source, json.loads(read_text(home, _note(chunk)) or "")))
            system, path = place(staged.path)
            pq.read_metadata(path, filesystem=system)
        except (FileNotFoundError, ValueError, LookupError, TypeError):  # not there, or of no use: it is read again
            continue
        finished.append(staged)
    return finished


class _Progress:
    """Counts rows over the readers of one relation. `rows_read` of them were read before."""

    def __init__(self, relation: Relation, rows_read: int, listener: Listener) -> None:
        self._relation = relation
        self._rows = self._rows_before = rows_read
        self._began = time.monotonic()
        self._listener = listener
        self._lock = threading.Lock()

    def add(self, row_count: int) -> None:
        with self._lock:
            self._rows += row_count
            self._tell(finished=False)

    def finish(self) -> None:
        self._tell(finished=True)

    def _tell(self, *, finished: bool) -> None:
        self._listener(
            BootstrapProgress(
                relation=self._relation.name,
                rows_read=self._rows,
                rows_estimated=self._rows if finished else max(self._relation.row_estimate, self._rows),
                rows_per_second=(self._rows - self._rows_before) / max(time.monotonic() - self._began, 0.001),
                finished=finished,
            )
        )
