"""Publish a view of a warehouse that a test wrote, to be killed there: python publishing.py PROJECT VIEW TABLE TICK."""

from __future__ import annotations

import sys

import headwater
from headwater.model.position import Tick
from headwater.publish.plain_table import PublishResult, publish_view
from headwater.warehouse.query import Warehouse


class EarlierWarehouse(Warehouse):
    """A warehouse whose views have come to an earlier tick."""

    upto = Tick(0)

    def frontier(self, name: str) -> Tick:
        del name
        return self.upto


def publish_at(project: str, view: str, table: str, tick: int) -> PublishResult:
    warehouse = EarlierWarehouse.open(headwater.open(project).project.warehouse)
    warehouse.upto = Tick(tick)
    return publish_view(warehouse, "corner_shops", view, table)


if __name__ == "__main__":
    publish_at(*sys.argv[1:4], int(sys.argv[4]))
