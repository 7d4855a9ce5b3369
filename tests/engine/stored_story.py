"""One project whose warehouse is on an object store, on the Spark that the environment names; a program.

    python stored_story.py FOLDER ADDRESS OPTIONS LOGS     OPTIONS are those of the store, as JSON; Spark logs into LOGS

Prints one line of JSON: what was found, and all that Spark shows of it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from scripted_world import SOLD, TOTALS, ScriptedWorld
from test_object_store import MARK, SETTINGS, VIEWS

import headwater
from headwater.storage.object_store import reach, store_at


def play(folder: Path, address: str, options: dict[str, str], logs: Path) -> dict[str, Any]:
    """Maintain a project, compare every tick with Python's own computation, and gather what Spark shows."""
    world = ScriptedWorld(None, folder, address=address, options=options)  # type: ignore[arg-type]  # opened by its folder
    reach(address, options)
    world.write_project({"sold": SOLD, "totals": TOTALS, "totals_again": TOTALS}, SETTINGS)
    for product in range(4):
        world.price(product, 10 * product)
    world.sell(*range(1, 10))
    with headwater.open(folder) as project:
        project.run(until_idle=True)
        world.sell(*range(10, 14))
        project.run(until_idle=True)
        last = world.assert_exact(*VIEWS)
        checked = project.check("sold", ticks=1)
        frame = project.sql(f"SELECT store, '{MARK}' AS mark, COUNT(*) AS n FROM sold GROUP BY store")
        rows = frame.toArrow().num_rows
        context = project.spark.sparkContext
        jvm = context._jvm
        shown = {
            "settings": str(context.getConf().getAll()) + str(project.spark.sql("SET -v").toArrow().to_pylist()),
            "properties": str(jvm.java.lang.System.getProperties()),
            "command": Path(f"/proc/{SparkContext._gateway.proc.pid}/cmdline").read_text(),
            "plan": frame._jdf.queryExecution().toString(),
        }
        master = context.master
        project.spark.stop()
    stored = store_at(address)
    texts = b"".join(stored.get(name) or b"" for name in stored.sizes() if name.endswith(".json"))
    return {
        "last": last,
        "rows": rows,
        "kept": [one.kept for one in checked.views],
        "master": master,
        "shown": shown,
        "logs": "".join(file.read_text(errors="replace") for file in logs.rglob("*") if file.is_file()),
        "stored": texts.decode(errors="replace"),
        "left": sorted({name.partition("/")[0] for name in stored.sizes()}),
    }


if __name__ == "__main__":
    place, said = sys.argv[2], json.loads(sys.argv[3])
    sys.stdout.write(json.dumps(play(Path(sys.argv[1]), place, said, Path(sys.argv[4]))) + "\n")
