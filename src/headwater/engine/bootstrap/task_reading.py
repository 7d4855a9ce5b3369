"""Let tasks of Spark read the chunks of a relation, all in one snapshot that this process holds open.

A chunk is a Spark job of one task: a batch that comes meanwhile waits for one chunk at most, and each chunk that is
finished is noted at once. A task that dies is tried again by Spark. What tasks cannot do, this process does: where they
cannot log in or reach the source, it reads all that is left, and says why.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.deltas.on_spark import is_connect, to_arrow
from headwater.engine.bootstrap.chunk_task import ChunkRead, ChunkRequest, Joining, run_task
from headwater.model.project import Project
from headwater.observe.events import Listener, SourceWarning
from headwater.sources.source import Snapshot, Source
from headwater.spark.task_login import answered_logins
from headwater.spark.view_errors import said_by_spark


@dataclass(slots=True, kw_only=True)
class TaskReading:
    """Reads chunks of one snapshot by tasks, several at a time, until it turns out that they cannot."""

    spark: SparkSession
    source: Source
    joining: Joining
    listener: Listener
    room: threading.Semaphore
    _is_given_up: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, request: ChunkRequest) -> ChunkRead | None:
        """Return what a task has read. None if this process has to read the chunk."""
        with self.room:
            said = {} if self._is_given_up else self._outcome(request)
        if "kept out" in said:
            self._give_up(said["kept out"])
        return ChunkRead.read(self.source, said["read"]) if "read" in said else None

    def _outcome(self, request: ChunkRequest) -> Mapping[str, Any]:
        run = F.udf(partial(run_task, self.joining, request), "string", useArrow=False)  # `mapInArrow` wants pandas
        try:
            task = self.spark.range(0, 1, 1, 1).select(run.asNondeterministic()("id").alias("outcome"))
            [said] = to_arrow(task)["outcome"].to_pylist()
        except Exception as error:  # noqa: BLE001 - no Python there, no headwater, another version: this process can read
            return {"kept out": said_by_spark(error)}
        found: Mapping[str, Any] = json.loads(said)
        return found

    def _give_up(self, why: str) -> None:
        with self._lock:
            is_first, self._is_given_up = not self._is_given_up, True
        if is_first:
            sentence = f"tasks of Spark cannot read it, so this process does: {why}"
            self.listener(SourceWarning(source=self.source.name, sentence=sentence))


@contextmanager
def reading_by_tasks(
    spark: SparkSession, project: Project, source: Source, snapshot: Snapshot, listener: Listener, *, spared_cores: int
) -> Iterator[TaskReading | None]:
    """Give what reads chunks of a snapshot by tasks, None if other processes cannot join it.

    Some cores of Spark are spared for others, as long as one is left.
    """
    if not source.abilities.exports_snapshots:
        yield None
        return
    declared = project.source(source.name)
    at_once = min(project.settings.bootstrap.readers, declared.probe_connections)
    if not is_connect(spark):  # it does not say how many cores it has
        at_once = min(at_once, max(1, spark.sparkContext.defaultParallelism - spared_cores))
    with answered_logins(source.login) as place:
        joining = Joining(
            project=project.name,
            source=declared,
            exported=dict(snapshot.exported()),
            asked_at=place,
            options=project.storage.options,
        )
        yield TaskReading(
            spark=spark, source=source, joining=joining, listener=listener, room=threading.Semaphore(at_once)
        )
