"""Play the department store: start, fill, write and maintain at once, come to rest, recompute every state, leave.

Everything is in one temporary folder and in children of this process; both are gone afterwards, however it ends.
"""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from headwater.api.session import Headwater
from headwater.console.serve import serving
from headwater.demo.maintained import Maintained, maintained
from headwater.demo.pulse import Pulses
from headwater.demo.recompute import recompute
from headwater.demo.scenes import ConsoleOpened, DemoListener, Replayed, Scene
from headwater.demo.servers import fill, project_for, read_history, running_servers
from headwater.demo.spark_aside import spark_started_aside
from headwater.demo.writers import Writer, writing
from headwater.judge.result import DemoResult, Sample
from headwater.model.position import Tick
from headwater.observe.events import BatchCommitted, Event, ProbeAnswered, fan_out, ignore_event
from headwater.project.resolve import resolve_project
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

_LOOK_SECONDS = 0.25
_SAMPLE_VIEW = "high_profit"
_SAMPLE_ROWS = 4
_SAMPLE_PARTS = 4


def play(*, seconds: int, listener: DemoListener, watch: Callable[[], None] | None = None) -> DemoResult:
    """Play the demo, with writers that write for `seconds`, and return what the judge found.

    With `watch` the console shows it live, and everything stays as it is until `watch` returns.
    """
    started = time.perf_counter()
    listener(Scene.STARTING)
    with _ending_when_terminated(), _temporary_folder() as folder, spark_started_aside() as spark:
        with running_servers(folder) as servers, ExitStack() as console:
            listener(Scene.FILLING)
            for name, server in servers.items():
                fill(name, server)
            before = {(change.source, change.identity) for change in read_history(servers)}
            project = project_for(servers, folder / "project")
            spark.result()
            listener(Scene.PLANNING)
            resolved = resolve_project(project, spark.result())
            if watch is not None:
                shown = Headwater(project, ignore_event, spark.result())
                listener(ConsoleOpened(address=console.enter_context(serving(shown))))
            tally = _Tally()
            with maintained(spark.result(), resolved, fan_out(listener, tally)) as maintainer:
                maintainer.wait_until_followed()
                _write(servers, maintainer, seconds, listener)
            listener(Scene.RECOMPUTING)
            history = read_history(servers)
            if watch is not None:
                watch()
        warehouse = Warehouse.open(resolved.project.warehouse)
        last = warehouse.log.last_tick
        check = recompute(
            spark=spark.result(),
            warehouse=warehouse,
            relations=tuple(resolved.relations.values()),
            history=history,
            before=before,
            progress=lambda tick: listener(Replayed(tick=tick, through=last)),
        )
        samples = _two_samples(spark.result(), warehouse)
        listener(Scene.LEAVING)
    return DemoResult(
        transaction_count=last,
        source_count=len(servers),
        commit_count=tally.commit_count,
        answer_count=tally.answer_count,
        corrected_answer_count=tally.corrected_answer_count,
        check=check,
        samples=samples,
        seconds=time.perf_counter() - started,
    )


def _write(servers: Mapping[str, EmbeddedServer], maintainer: Maintained, seconds: int, listener: DemoListener) -> None:
    """Let the writers write, slowly until the views are born and then for a while. Wait until the views have it all."""
    urls = {name: server.url() for name, server in servers.items()}
    with Pulses(urls, maintainer, listener) as pulses:
        with writing(urls) as writers:
            listener(Scene.BIRTH)
            while not maintainer.are_views_born:
                _look(maintainer, writers, pulses, 0.0)
            listener(Scene.WRITING)
            for writer in writers:
                writer.hurry()
            began = time.perf_counter()
            while (now := time.perf_counter() - began) < seconds:
                _look(maintainer, writers, pulses, now / seconds)
        listener(Scene.SETTLING)
        maintainer.come_to_rest(lambda: pulses.tell(writers, 1.0))


def _look(maintainer: Maintained, writers: Sequence[Writer], pulses: Pulses, part: float) -> None:
    maintainer.require_alive()
    for writer in writers:
        writer.require_alive()
    pulses.tell(writers, part)
    time.sleep(_LOOK_SECONDS)  # how often a person sees the picture change


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        yield Path(folder)


@contextmanager
def _ending_when_terminated() -> Iterator[None]:
    """Let SIGTERM unwind like Ctrl-C, so that nothing is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Tally:
    """A listener that counts commits, and the answers of sources that had to be corrected by rebasing."""

    def __init__(self) -> None:
        self.commit_count = 0
        self.answer_count = 0
        self.corrected_answer_count = 0

    def __call__(self, event: Event) -> None:
        match event:
            case BatchCommitted():
                self.commit_count += 1
            case ProbeAnswered(corrected_row_count=corrected_row_count):
                self.answer_count += 1
                self.corrected_answer_count += corrected_row_count > 0
            case _:
                pass


def _two_samples(spark: SparkSession, warehouse: Warehouse) -> tuple[Sample, ...]:
    """Return the first rows of a view at its newest tick, and at an earlier tick at which they were others."""
    birth, newest = warehouse.view(_SAMPLE_VIEW).birth, warehouse.frontier(_SAMPLE_VIEW)
    last = _sample(spark, warehouse, newest)
    for part in range(_SAMPLE_PARTS - 1, -1, -1):
        earlier = _sample(spark, warehouse, Tick(birth + (newest - birth) * part // _SAMPLE_PARTS))
        if earlier.rows != last.rows:
            return earlier, last
    return (last,)


def _sample(spark: SparkSession, warehouse: Warehouse, tick: Tick) -> Sample:
    rows = warehouse.view_dataframe(spark, _SAMPLE_VIEW, tick)
    first = rows.orderBy(F.desc("surplus"), "store_id").limit(_SAMPLE_ROWS).toArrow()
    values = tuple(zip(*(column.to_pylist() for column in first.columns), strict=True))
    return Sample(view=_SAMPLE_VIEW, tick=tick, columns=tuple(first.column_names), rows=values)
