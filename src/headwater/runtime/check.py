"""Check a live warehouse: read whole relations, roll them back to a tick, run the original SQL, compare.

It stops nothing. One snapshot per source is read; the change log brings each relation from what its snapshot saw back
to the view's frontier. What the sources hold and what the view holds meet only in the comparison.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from headwater.errors import SourceUnavailable
from headwater.guarantee import Guarantee
from headwater.judge.compare_frames import compare_frames
from headwater.judge.grade import Verdict
from headwater.position import Position, Tick
from headwater.relation import RelationName
from headwater.results import CheckResult, ViewCheck
from headwater.runtime.events import CheckProgress, Listener, unheard
from headwater.runtime.live_status import read_sources
from headwater.runtime.recompute import recompute, rows_at
from headwater.runtime.staging import StagedRelation, stage_relation
from headwater.runtime.start import start_maintainer
from headwater.runtime.truncation import truncations
from headwater.runtime.understand import Understood
from headwater.warehouse.lease import maintainer_is_alive
from headwater.warehouse.query import Warehouse

_FOLLOW_SECONDS = 120.0
_LOOK_SECONDS = 0.2
_STATES = 4


def check_views(spark: SparkSession, understood: Understood, view: str | None, listener: Listener) -> CheckResult:
    """Check one view or all; where no maintainer runs, the warehouse is first brought up to date."""
    path = str(understood.project.warehouse)
    names = [view] if view is not None else list(understood.views)
    if not maintainer_is_alive(path):
        start_maintainer(spark, understood, listener).run(until_idle=True, ticks=None)
    warehouse = Warehouse.open(path)
    with tempfile.TemporaryDirectory(prefix="headwater-check-") as folder:
        staged = _stage(spark, understood, names, Path(folder), warehouse)
        warehouse = Warehouse.open(path)
        checks = []
        for done, name in enumerate(names, 1):
            checks.append(_check_view(spark, understood, name, warehouse, staged))
            listener(CheckProgress(view=name, states_checked=done, states_expected=len(names)))
    return CheckResult(views=tuple(checks))


def _stage(
    spark: SparkSession, understood: Understood, names: list[str], folder: Path, warehouse: Warehouse
) -> dict[RelationName, StagedRelation]:
    """Read every relation whole, one snapshot per source, and wait until the change log knows all that was seen."""
    needed: dict[RelationName, set[str]] = {}
    for name in names:
        for relation, columns in understood.views[name].view.relations.items():
            needed.setdefault(relation, set()).update(columns)
    staged = {}
    for source in sorted({relation.source for relation in needed}):
        with understood.sources[source].snapshot() as snapshot:
            for relation in (name for name in needed if name.source == source):
                described = understood.relations[relation]
                wanted = tuple(column for column in described.column_names if column in needed[relation])
                staged[relation] = stage_relation(folder, snapshot, described, wanted, unheard)
            _wait_until_followed(spark, understood, warehouse, snapshot.position)
            if not snapshot.is_valid():
                raise SourceUnavailable(
                    f'source "{source}" restarted during the check', code="HW-533", hint="run the check again"
                )
    return staged


def _wait_until_followed(spark: SparkSession, understood: Understood, warehouse: Warehouse, position: Position) -> None:
    deadline = time.monotonic() + _FOLLOW_SECONDS
    while time.monotonic() < deadline:
        said = {status.name: status.position for status in read_sources(understood.project, warehouse)}
        reached = said[position.source]
        if reached is not None and position <= reached:
            return
        if not maintainer_is_alive(warehouse.path):
            start_maintainer(spark, understood, unheard).run(until_idle=True, ticks=None)
        time.sleep(_LOOK_SECONDS)
    raise SourceUnavailable(
        f'the log of source "{position.source}" was not followed to what the check saw',
        code="HW-534",
        detail=f"waited {_FOLLOW_SECONDS:.0f} s for {position}",
        hint="see `headwater status`, then run the check again",
    )


def _check_view(
    spark: SparkSession,
    understood: Understood,
    name: str,
    warehouse: Warehouse,
    staged: Mapping[RelationName, StagedRelation],
) -> ViewCheck:
    """Compare a view with recomputation at its frontier and at earlier ticks that can still be read."""
    view, entry = understood.views[name].view, warehouse.view(name)
    frontier = warehouse.frontier(name)
    oldest = max(entry.birth, warehouse.kept_table(name).horizon(), warehouse.log.horizon())
    for relation in view.relations:  # what a TRUNCATE removed cannot be brought back
        oldest = max([oldest, *truncations(warehouse.log, relation, oldest, warehouse.log.last_tick)])
    ticks = _ticks(oldest, frontier) if oldest <= frontier else []
    if Guarantee(entry.guarantee) is not Guarantee.COMPLETE:
        ticks = ticks[-1:]
    first_bad, found = None, None
    for tick in ticks:
        plain = {relation: rows_at(spark, staged[relation], warehouse.log, tick) for relation in view.relations}
        differs = compare_frames(recompute(spark, view, plain), warehouse.view_dataframe(spark, name, tick))
        if differs:
            first_bad, found = tick, differs
            break
    verdict = Verdict(
        guarantee=Guarantee(entry.guarantee) if found is None else Guarantee.NONE,
        states_checked=len(ticks),
        first_bad_tick=first_bad,
        difference=found,
    )
    return ViewCheck(view=name, promised=Guarantee(entry.guarantee), tick=frontier, verdict=verdict)


def _ticks(oldest: Tick, newest: Tick) -> list[Tick]:
    """Return a few ticks spread over what can be read, oldest first.

    >>> _ticks(Tick(10), Tick(110)), _ticks(Tick(3), Tick(3))
    ([10, 43, 76, 110], [3])
    """
    parts = _STATES - 1
    return sorted({Tick(oldest + (newest - oldest) * part // parts) for part in range(parts + 1)})
