"""What the project file sets reaches the code that a maintainer runs."""

from __future__ import annotations

from scripted_world import SOLD, TOTALS, ScriptedWorld

SETTINGS = """
[maintenance]
memory = "1 MB"
[settings.batch]
lookup_rows = 7
[settings.upkeep]
interval = "1 h"
[settings.service]
status_interval = "7 s"
"""


def test_a_maintainer_has_the_settings_of_its_project(world: ScriptedWorld) -> None:
    limits = set()
    for settings in ("", SETTINGS):
        world.write_project({"sold": SOLD, "totals": TOTALS}, settings)
        maintainer = world.start()
        try:
            said = maintainer.resolved.project.settings
            budget = maintainer.budget
            limits.add(budget.limit_bytes)
            tables = [table for view in maintainer.views.values() for table in view.segments.values()]
            assert tables
            assert {table.settings for table in tables} == {said.batch}
            folders = [reader.rows.folder for reader in maintainer.replicas.values()]
            assert {id(folder.share) for folder in folders if folder is not None} == {id(budget.rows)}
            assert all(table.budget is budget for table in tables)
            assert maintainer.log.tail.most_bytes == budget.tail_bytes
            assert maintainer.upkeep._settings == said.upkeep
            assert maintainer._signs._status_seconds == said.service.status_interval_seconds
            assert maintainer.acceptor._settings == maintainer.acceptor.holding._settings == said.capture
            assert said.capture.reconnect_first_seconds == 0.01
        finally:
            maintainer.close()
            maintainer.release()
        assert (budget.rows.held_bytes, budget.rows.mapped_bytes) == (0, 0), "all that was taken is given back"
    assert limits == {2 * 10**9, 10**6}


def test_views_are_exact_with_the_smallest_settings(world: ScriptedWorld) -> None:
    smallest = """
[maintenance]
memory = "1 MB"
[settings.bootstrap]
chunk_rows = 1
readers = 1
views_at_once = 1
small_rows = 1
[settings.batch]
held_rows = 1
lookup_rows = 1
replica_behind_rows = 1
recomputed_ticks = 1
"""
    views = {"sold": SOLD, "totals": TOTALS, "totals_again": TOTALS.replace("COUNT(*)", "COUNT(1)")}
    world.write_project(views, smallest)
    world.run()
    world.sell(*range(16, 22))
    world.price(2, 7)
    world.run()
    assert world.assert_exact(*views) > 7
