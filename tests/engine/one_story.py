"""One project through births, batches, queries and `check`, on the Spark that the environment names; a program.

    python one_story.py FOLDER

Prints one line of JSON: what was found, and where it ran.
"""

from __future__ import annotations

import atexit
import json
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from scripted_world import SOLD, TOTALS, ScriptedWorld

import headwater
from headwater.api.session import Headwater
from headwater.deltas.on_spark import is_connect

SETTINGS = """
[maintenance]
batch_ticks = 20
memory = "1 MB"
[settings.service]
executor_wait = "5 min"
[settings.bootstrap]
small_rows = 1
[settings.batch]
held_rows = 1
lookup_rows = 1
[settings.reading]
local_rows = 1
handed_rows = 1
[views.sold]
maintenance = "probe"
[views.totals_again]
maintenance = "recompute-self"
guarantee = "complete"
"""
"""The smallest settings: what would be read and held in this process is read, held and written by executors."""
SHOWN = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.optimizer.excludedRules",
    "spark.sql.shuffle.partitions",
    "spark.sql.parquet.outputTimestampType",
)
JOINED = "SELECT t.store, t.paid, SUM(s.price) AS again FROM totals t JOIN sold s ON s.store = t.store GROUP BY ALL"
BROKEN = "SELECT 1 / (paid - paid) AS x FROM totals"


def play(folder: Path) -> dict[str, Any]:
    """Maintain a project on Spark, compare every tick with Python's own computation, and let `check` recompute it.

    Its views are born on the session that Headwater takes itself, and go on beside one that is given.
    """
    world = ScriptedWorld(None, folder)  # type: ignore[arg-type]  # it is opened by its folder, not by a session
    world.write_project({"sold": SOLD, "totals": TOTALS, "totals_again": TOTALS}, SETTINGS)
    for product in range(3):
        world.price(product, 10 * product)
    world.sell(*range(1, 21))
    with headwater.open(folder) as project:
        project.run(until_idle=True)
        given = project.spark.newSession()
    if is_connect(given):
        atexit.register(given.client.close)  # PySpark closes it after its threads are gone, and may hang
    given.conf.set("spark.sql.ansi.enabled", "false")
    with headwater.open(folder, spark=given) as project:
        for number in range(21, 28):
            world.sell(number)
            world.price(number % 4, number)
        result = project.run(until_idle=True)
        last = world.assert_exact(*world.warehouse.catalog().views)
        checked = project.check(ticks=2, steps=True)
        rows = project.query(JOINED).table.to_pylist()
        past = project.sql(JOINED, at=last - 5).toArrow().to_pylist()
        traced = project.trace("totals", where="store = 1").relations
        spark = project.spark
        return {
            "views": sorted(world.warehouse.catalog().views),
            "last": last,
            "commits": result.commit_count,
            "wrong": [one.view for one in checked.views if not one.kept],
            "judged by Spark": sum(one.judged_by.get("Spark", 0) for one in checked.views),
            "rows": len(rows),
            "equal": all(row["paid"] == row["again"] for row in [*rows, *past]),
            "traced": sum(one.rows.num_rows for one in traced),
            "refused": _refusal(project),
            "jobs": [one.spark_job_count for one in project.history("sold").commits][-1],
            "connect": is_connect(spark),
            "started a virtual machine": SparkContext._gateway is not None,
            "given": given.conf.get("spark.sql.ansi.enabled"),
            "settings": {key: spark.conf.get(key) for key in SHOWN},
            "master": None if is_connect(spark) else spark.sparkContext.master,
        }


def _refusal(project: Headwater) -> str:
    try:
        project.query(BROKEN)
    except headwater.HeadwaterError as error:
        return error.code
    return ""


if __name__ == "__main__":
    sys.stdout.write(json.dumps(play(Path(sys.argv[1]))) + "\n")
