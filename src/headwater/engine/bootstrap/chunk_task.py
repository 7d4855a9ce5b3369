"""Read a chunk of a relation into a file: in this process, or as a task of Spark in another one.

A task joins the snapshot that the driver holds open. It gets everything but how to log in (`spark.task_login`).
Rows stream from the source into the file; no more than a table of them is held.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.deltas.extent import Remainder
from headwater.deltas.on_arrow import remaining
from headwater.errors import HeadwaterError
from headwater.model.project import SourceDeclaration
from headwater.model.relation import COUNT, Relation
from headwater.model.transaction import Seen
from headwater.sources.registry import connect
from headwater.sources.source import Chunk, Reader, Source, SourceSettings
from headwater.spark.task_login import ask_login
from headwater.storage.object_store import reach, store_at
from headwater.storage.storage_errors import stored as naming

_ROWS_PER_GROUP = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRequest:
    """A chunk of a relation, the columns and rows that are wanted of it, and the folder that they are written to."""

    relation: Relation
    wanted: tuple[str, ...]
    rows: Remainder
    chunk: Chunk
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRead:
    """That a chunk was read: the file in the folder that it is in, what was seen then, and how many rows were read."""

    file: str
    seen: Seen
    row_count: int

    def written(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"file": self.file, "seen": self.seen.written(), "row_count": self.row_count}

    @classmethod
    def read(cls, source: Source, said: Mapping[str, Any]) -> Self:
        """Return what was written of a chunk of a source."""
        return cls(file=said["file"], seen=source.read_seen(said["seen"]), row_count=int(said["row_count"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """How a task comes to see what the driver's snapshot shows: the project's own words, and no secrets."""

    project: str
    source: SourceDeclaration
    exported: Mapping[str, Any]
    asked_at: str
    """Where a task on the driver's machine asks for the login."""
    options: Mapping[str, str]
    """How the warehouse's object store is reached."""

    def login(self) -> str:
        """Return the source's URL: from the driver, or else as this executor's own environment completes it."""
        told = ask_login(self.asked_at)
        return self.source.url(os.environ) if told is None else told


def write_chunk(reader: Reader, request: ChunkRequest, tell: Callable[[int], None]) -> ChunkRead:
    """Write a chunk's rows to a file of a new name. `tell` hears of rows as they come.

    A task that was given up may still be writing, and then has a file of its own. The file is as a replica stores rows,
    with `_count`, so that it can become a part of one.
    """
    schema = request.relation.arrow_schema(request.wanted)
    stored = pa.schema([*schema, pa.field(COUNT, pa.int64())])
    file = f"chunk-{request.chunk.number}-{uuid.uuid4()}.parquet"
    row_count = 0
    with (
        naming(f"{request.folder}/{file}"),
        store_at(request.folder).writing(file) as sink,
        pq.ParquetWriter(sink, stored, compression="zstd") as writer,
    ):
        for table in reader.read(request.relation, request.wanted, request.chunk, request.rows):
            rows = remaining(table.select(list(request.wanted)).cast(schema), request.rows)
            counts = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
            writer.write_table(rows.append_column(stored.field(COUNT), counts), row_group_size=_ROWS_PER_GROUP)
            row_count += table.num_rows
            tell(table.num_rows)
    return ChunkRead(file=file, seen=reader.seen, row_count=row_count)


def run_task(joining: Joining, request: ChunkRequest, _: int) -> str:
    """Write a chunk in a task of Spark, and return what became of it, as JSON."""
    reach(request.folder, joining.options)
    return json.dumps(_outcome(joining, request))


def _outcome(joining: Joining, request: ChunkRequest) -> dict[str, Any]:
    """Return what was read, or why the task was kept out of the snapshot, or what it met in there.

    What refuses a connection says so without the login. Of any other error before it only the kind is reported.
    """
    settings = SourceSettings(
        name=joining.source.name,
        url=joining.login,
        project=joining.project,
        connection_limit=1,
        declared_in=joining.source.declared_in,
        options=joining.source.options,
    )
    is_inside = False
    try:
        with connect(settings).join(joining.exported) as reader:
            is_inside = True
            return {"read": write_chunk(reader, request, lambda _: None).written()}
    except HeadwaterError as error:
        why = f"{error.summary}{f' ({error.detail})' if error.detail else ''} [{error.code}]"
        return {"met" if is_inside else "kept out": why}
    except Exception as error:  # noqa: BLE001 - the driver reads the chunk itself, and meets it again if it is no mishap
        return {"kept out": f"{type(error).__name__}{f': {error}' if is_inside else ''}"}
