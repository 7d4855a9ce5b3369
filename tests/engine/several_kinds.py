"""A project over sources of several kinds, and what its views should show: computed from what was written there.

Every table is followed by a function that returns its rows as of an offset into its log. The state of a view at a tick
is computed in Python from the tables as of the offsets that the change log's transactions have come to at that tick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from scripted_world import bag_of

from headwater.engine.service.start import start_maintainer
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.observe.events import Event
from headwater.project.file import load
from headwater.project.plan import Consent
from headwater.project.plan_result import RunResult
from headwater.project.resolve import resolve_project
from headwater.warehouse.query import Warehouse

Bag = Counter[tuple[Any, ...]]


@dataclass
class MixedWorld:
    """The project's folder, and the histories of its tables."""

    spark: SparkSession
    folder: Path
    urls: Mapping[str, str]
    views: Mapping[str, str]
    also: str
    expected: Callable[[str, dict[str, Bag]], Bag]
    options: Mapping[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    _states: dict[str, Callable[[int], Bag]] = field(default_factory=dict)
    _logs: dict[str, str] = field(default_factory=dict)
    _starts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "views").mkdir(parents=True, exist_ok=True)
        for name, sql in self.views.items():
            (self.folder / "views" / f"{name}.sql").write_text(sql)
        sources = "\n".join(
            f'[sources.{name}]\nurl = "{url}"\n{self.options.get(name, "")}' for name, url in self.urls.items()
        )
        (self.folder / "headwater.toml").write_text(
            f'[project]\nname = "mixed"\n\n[warehouse]\npath = "warehouse"\n\n{sources}\n{self.also}\n'
            '[settings.capture]\nreconnect_first = "10 ms"\n'
        )

    def follow(self, relation: str, state: Callable[[int], Bag], log: str = "") -> None:
        """Say how the rows of a table were as of an offset into its log, which is named like it if not otherwise."""
        self._states[relation] = state
        self._logs[relation] = log or relation

    def run(self, consent: Consent | None = None) -> RunResult:
        """Maintain until everything is committed that the sources have."""
        resolved = resolve_project(load(self.folder), self.spark)
        maintainer = start_maintainer(self.spark, resolved, self.events.append, consent=consent or Consent())
        try:
            result = maintainer.run(until_idle=True, ticks=None)
        finally:
            maintainer.release()
        for relation, log in self._logs.items():
            if relation not in self._starts:
                told = self.warehouse.log.transactions(None, Tick(0), self.warehouse.log.last_tick)
                assert not told, "the first run takes over what is there"
                self._starts[relation] = self.warehouse.log.positions()[log].offset
        return result

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse.open(str(self.folder / "warehouse"))

    def assert_exact(self) -> int:
        """Compare every state of every view with what its tables were. Return the newest tick."""
        warehouse = self.warehouse
        last = warehouse.log.last_tick
        told = warehouse.log.transactions(None, Tick(0), last)
        assert [tick for tick, _ in told] == list(range(1, last + 1)), "every tick once"
        for view in self.views:
            entry = warehouse.view(view)
            assert warehouse.frontier(view) == last, f"{view} is not at the end"
            shown = bag_of(warehouse.few_rows(view, entry.birth, [name for name, _ in entry.schema]))
            changes = warehouse.few_changes(view, entry.birth, last)
            assert changes is not None
            by_tick: dict[int, Bag] = {}
            for row in changes.to_pylist():
                tick, count = row.pop(TICK), row.pop(COUNT)
                by_tick.setdefault(tick, Counter())[tuple(row.values())] += count
            offsets = dict(self._starts)
            for tick in range(last + 1):
                for at, one in told:
                    for relation, log in self._logs.items():
                        if at == tick and one.position.log_name == log:
                            offsets[relation] = one.position.offset
                if tick < entry.birth:
                    continue
                shown.update(by_tick.get(tick, {}) if tick > entry.birth else {})
                rows = {relation: state(offsets[relation]) for relation, state in self._states.items()}
                assert {row: n for row, n in shown.items() if n} == self.expected(view, rows), f"{view} at {tick}"
        return int(last)
