"""Wait until the change log knows all that a snapshot saw, whoever maintains the warehouse."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import SparkSession

from headwater.errors import SourceUnavailable
from headwater.position import Position
from headwater.runtime.events import unheard
from headwater.runtime.live_status import read_sources
from headwater.runtime.start import start_maintainer
from headwater.runtime.understand import Understood, understand
from headwater.warehouse.awaited import note_awaited
from headwater.warehouse.lease import maintainer_is_alive
from headwater.warehouse.query import Warehouse

_FOLLOW_SECONDS = 120.0
_LOOK_SECONDS = 0.02


def wait_until_followed(spark: SparkSession, understood: Understood, warehouse: Warehouse, position: Position) -> None:
    """Wait until the log has come to a position; where no maintainer runs, bring all up to date."""
    note_awaited(warehouse.path, position)
    deadline = time.monotonic() + _FOLLOW_SECONDS
    while time.monotonic() < deadline:
        said = {status.name: status.position for status in read_sources(understood.project, warehouse)}
        reached = said[position.source]
        if reached is not None and position <= reached:
            return
        if not maintainer_is_alive(warehouse.path):
            whole = understand(understood.project, spark)  # perhaps only one view was understood
            start_maintainer(spark, whole, unheard).run(until_idle=True, ticks=None)
        time.sleep(_LOOK_SECONDS)  # the maintainer is another process: its signs of life are a file, which tells nobody
    raise SourceUnavailable(
        f'the log of source "{position.source}" was not followed to what was seen',
        code="HW-534",
        detail=f"waited {_FOLLOW_SECONDS:.0f} s for {position}",
        hint="see `headwater status`, then try again",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainersLog:
    """Waits for whoever maintains the warehouse: for snapshots that are opened beside a maintainer."""

    spark: SparkSession
    understood: Understood
    warehouse: Warehouse

    def wait_for(self, position: Position, timeout_seconds: float) -> bool:
        """Wait until the change log knows everything up to a position, for as long as that may take."""
        del timeout_seconds
        wait_until_followed(self.spark, self.understood, self.warehouse, position)
        return True
