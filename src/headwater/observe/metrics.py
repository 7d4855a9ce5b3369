"""What a metrics server may ask of a maintainer: counts and times from the stream of events, and levels from `status`.

`METRICS` lists all of them; docs/reference/metrics.md is made from it. Nothing is measured twice: an event reports what
happened once, and this is one more listener. Levels (lags, memory, frontiers) are read when a server asks for them.
"""

from __future__ import annotations

import importlib.util
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError
from headwater.observe.events import (
    BatchCommitted,
    Event,
    ProbeAnswered,
    PublishFailed,
    SourceDisconnected,
    TransactionsAccepted,
    ViewComputed,
    ViewPublished,
    ViewStopped,
)
from headwater.observe.status import SourceState, StatusResult

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
_MOST_WAITING = 100_000


class Kind(Enum):
    """How a metric behaves."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricKind:
    """One metric: its name, what tells its series apart, and its meaning."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str


def _counter(name: str, meaning: str, *labels: str) -> MetricKind:
    return MetricKind(name=f"headwater_{name}_total", kind=Kind.COUNTER, labels=labels, meaning=meaning)


def _histogram(name: str, meaning: str, *labels: str) -> MetricKind:
    return MetricKind(name=f"headwater_{name}_seconds", kind=Kind.HISTOGRAM, labels=labels, meaning=meaning)


def _gauge(name: str, meaning: str, *labels: str) -> MetricKind:
    return MetricKind(name=f"headwater_{name}", kind=Kind.GAUGE, labels=labels, meaning=meaning)


METRICS = (
    _counter("transactions_accepted", "transactions that are durable in the change log", "source"),
    _counter("rows_accepted", "changed rows of these transactions", "source"),
    _counter("source_disconnects", "how often a source did not answer and is tried again", "source"),
    _histogram("freshness", "from the commit at the source, by its clock, until views show it", "source"),
    _counter("batches", "batches that were committed"),
    _histogram("batch_part", "where the time of a batch went: snapshot, probe, spark, compute, gather, commit", "part"),
    _counter("rows_changed", "rows of views that came or went"),
    _counter("view_changed_rows", "changed source rows that a view needed", "view"),
    _counter("view_read_rows", "old rows that were read for a view", "view"),
    _counter("probes", "questions to a source", "source", "view"),
    _counter("probe_keys", "keys that were sent in them", "source", "view"),
    _counter("probe_rows", "rows that came as answers", "source", "view"),
    _counter("probe_bytes", "their bytes", "source", "view"),
    _counter("corrected_rows", "rows by which answers were brought to the tick that was needed", "source", "view"),
    _histogram("probe", "how long a source took to answer the questions of a batch", "source"),
    _counter("view_stops", "how often a view could not go on", "view"),
    _counter("publications", "how often a published table was brought forward", "view"),
    _counter("publish_failures", "how often that failed, to be tried again", "view"),
    _gauge("source_up", "1 if the source is followed or read for the first time, else 0", "source"),
    _gauge("source_lost", "1 if what is needed of the source is lost for good: a person has to act", "source"),
    _gauge("source_lag_seconds", "how far the change log is behind the source", "source"),
    _gauge("source_lag_bytes", "how much log the source has to keep that is not in the change log", "source"),
    _gauge("view_frontier_tick", "the newest tick at which the view can be read", "view"),
    _gauge("view_lag_ticks", "accepted transactions that the view does not show yet", "view"),
    _gauge("view_lag_seconds", "the age of the oldest of them, 0 if there are none", "view"),
    _gauge("view_stopped", "1 if the view does not go on", "view"),
    _gauge("log_first_tick", "the oldest tick that the change log keeps"),
    _gauge("log_last_tick", "the newest tick that was accepted"),
    _gauge("last_commit_tick", "the tick of the newest commit"),
    _gauge("last_commit_timestamp_seconds", "when that was, in seconds since 1970"),
    _gauge("maintainer_alive", "1 if a maintainer holds the warehouse and says so"),
    _gauge("memory_used_bytes", "what the maintainer's process holds of rows"),
    _gauge("memory_limit_bytes", "what it may hold: [maintenance] memory"),
    _gauge(
        "memory_part_bytes", "its parts: captures, tail, journal, rows, batch; mapped takes page cache only", "part"
    ),
    _gauge("waiting_parts", "global transactions that are incomplete"),
    _gauge("waiting_part_age_seconds", "the age of the oldest of them, 0 if there are none"),
)
"""All metrics, in the order of the reference."""

_PARTS = ("captures", "tail", "journal", "rows", "batch", "mapped")


def require_metrics_package() -> None:
    """Refuse where the package that speaks to metrics servers is not installed."""
    if importlib.util.find_spec("prometheus_client") is None:
        raise HeadwaterError(
            "metrics are not installed",
            code="HW-184",
            detail="missing: prometheus_client",
            hint='pip install "headwater[metrics]"',
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """What is read when a server asks: the status, and the age of the oldest transaction that each view lacks."""

    status: StatusResult
    view_lag_seconds: Mapping[str, float]


class Metrics:
    """Counts what happens. A listener, which may be called on any thread."""

    def __init__(self, levels: Callable[[], Levels | None]) -> None:
        """Begin at zero. `levels` is called whenever a server asks. It returns None while there is no warehouse."""
        require_metrics_package()
        from prometheus_client import CollectorRegistry, Counter, Histogram  # noqa: PLC0415 - a package of an extra

        self.registry: CollectorRegistry = CollectorRegistry()
        self._known: dict[str, Any] = {}
        self._levels = levels
        for one in METRICS:
            match one.kind:
                case Kind.COUNTER:
                    self._known[one.name] = Counter(
                        one.name.removesuffix("_total"), one.meaning, one.labels, registry=self.registry
                    )
                case Kind.HISTOGRAM:
                    self._known[one.name] = Histogram(
                        one.name, one.meaning, one.labels, registry=self.registry, buckets=_BUCKETS
                    )
                case Kind.GAUGE:
                    pass
        self._waiting: deque[tuple[int, str, datetime]] = deque(maxlen=_MOST_WAITING)
        self._lock = threading.Lock()
        self.registry.register(self)

    def __call__(self, event: Event) -> None:
        """Count what happened."""
        match event:
            case TransactionsAccepted(source=source):
                self._add("transactions_accepted", event.transaction_count, source)
                self._add("rows_accepted", event.row_count, source)
                if event.committed_at is not None:
                    with self._lock:
                        self._waiting.append((event.last, source, event.committed_at))
            case SourceDisconnected(source=source):
                self._add("source_disconnects", 1, source)
            case BatchCommitted():
                self._batch(event)
            case ViewComputed(view=view):
                self._add("view_changed_rows", event.changed_rows, view)
                self._add("view_read_rows", sum(event.read_rows.values()), view)
            case ProbeAnswered():
                self._probe(event)
            case ViewStopped(view=view):
                self._add("view_stops", 1, view)
            case ViewPublished(view=view):
                self._add("publications", 1, view)
            case PublishFailed(view=view):
                self._add("publish_failures", 1, view)
            case _:
                pass

    def _batch(self, event: BatchCommitted) -> None:
        self._add("batches", 1)
        self._add("rows_changed", event.row_count)
        for part, seconds in event.seconds.items():
            self._known["headwater_batch_part_seconds"].labels(part).observe(seconds)
        now = datetime.now(UTC)
        with self._lock:
            done = [one for one in self._waiting if one[0] <= event.hi]
            self._waiting = deque((one for one in self._waiting if one[0] > event.hi), maxlen=_MOST_WAITING)
            for _, source, committed_at in done:
                age_seconds = max(0.0, (now - committed_at).total_seconds())
                self._known["headwater_freshness_seconds"].labels(source).observe(age_seconds)

    def _probe(self, event: ProbeAnswered) -> None:
        labels = (event.relation.source, event.view)
        self._add("probes", event.probe_count, *labels)
        self._add("probe_keys", event.key_count, *labels)
        self._add("probe_rows", event.row_count, *labels)
        self._add("probe_bytes", event.byte_count, *labels)
        self._add("corrected_rows", event.corrected_row_count, *labels)
        self._known["headwater_probe_seconds"].labels(event.relation.source).observe(event.seconds)

    def _add(self, name: str, count: float, *labels: str) -> None:
        counter = self._known[f"headwater_{name}_total"]
        (counter.labels(*labels) if labels else counter).inc(count)

    def collect(self) -> Iterator[Metric]:
        """Yield the levels, as they are now."""
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - as above

        found = self._levels()
        values = {} if found is None else levels_of(found)
        for one in METRICS:
            if one.kind is Kind.GAUGE:
                family = GaugeMetricFamily(one.name, one.meaning, labels=one.labels)
                for labels, value in values.get(one.name.removeprefix("headwater_"), {}).items():
                    family.add_metric(labels, value)
                yield family

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: the levels are not read while this is registered."""
        return iter(())


def levels_of(levels: Levels) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the value of each level, by its labels. What is not known is left out."""
    status, memory = levels.status, levels.status.memory
    views = [one for one in status.views if one.frontier is not None]
    last = status.log_last or 0
    single: dict[str, float | None] = {
        "log_first_tick": status.log_first,
        "log_last_tick": status.log_last,
        "last_commit_tick": None if status.last_commit is None else status.last_commit.tick,
        "last_commit_timestamp_seconds": None
        if status.last_commit is None
        else status.last_commit.committed_at.timestamp(),
        "maintainer_alive": status.maintainer is not None and status.maintainer.alive,
        "memory_used_bytes": None if memory is None else memory.used_bytes,
        "memory_limit_bytes": None if memory is None else memory.limit_bytes,
        "waiting_parts": len(status.waiting_parts),
        "waiting_part_age_seconds": max((one.age_seconds for one in status.waiting_parts), default=0.0),
    }
    parts = {} if memory is None else asdict(memory)
    up = (SourceState.FOLLOWING, SourceState.BOOTSTRAPPING)
    by_label: dict[str, dict[str, float | None]] = {
        "source_up": {one.name: one.state in up for one in status.sources},
        "source_lost": {one.name: one.state is SourceState.LOST for one in status.sources},
        "source_lag_seconds": {one.name: one.lag_seconds for one in status.sources},
        "source_lag_bytes": {one.name: one.lag_bytes for one in status.sources},
        "view_frontier_tick": {one.name: one.frontier for one in views},
        "view_lag_ticks": {one.name: max(0, last - (one.frontier or 0)) for one in views},
        "view_lag_seconds": {one.name: levels.view_lag_seconds.get(one.name) for one in views},
        "view_stopped": {one.name: one.stopped is not None for one in views},
        "memory_part_bytes": {part: parts.get(f"{part}_bytes") for part in _PARTS},
    }
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for name, value in single.items():
        found[name] = {} if value is None else {(): float(value)}
    for name, series in by_label.items():
        found[name] = {(label,): float(value) for label, value in series.items() if value is not None}
    return found
