"""A project whose executors are killed while they write; prints how often, and the last tick, as JSON.

python killed_executors_story.py FOLDER
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import one_story
from pyspark import SparkContext
from scripted_world import SOLD, TOTALS, ScriptedWorld

import headwater
from headwater.engine.state import runner

EXECUTOR = "CoarseGrainedExecutorBackend"
KILLS = 3


def executors() -> list[int]:
    """Return the process ids of the executors that this process's Spark has started."""
    running = [one for one in Path("/proc").iterdir() if one.name.isdecimal() and EXECUTOR in _said(one / "cmdline")]
    return [pid for pid in (int(one.name) for one in running) if os.getpid() in _ancestors(pid)]


def kill_at_work(written: threading.Event, killed: list[list[int]]) -> None:
    """Kill all executors while tasks of the job that writes are running, and note it. The job ends if none was seen."""
    tracker = SparkContext.getOrCreate().statusTracker()
    while not written.is_set():
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(stage is not None and stage.numActiveTasks for stage in stages):
            found = executors()
            for pid in found:
                os.kill(pid, signal.SIGKILL)
            killed.append(found)
            return


def _said(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""  # it has ended


def _ancestors(pid: int) -> list[int]:
    found = []
    while pid > 1:
        stat = _said(Path(f"/proc/{pid}/stat"))
        if not stat:
            break
        pid = int(stat.rpartition(")")[2].split()[1])
        found.append(pid)
    return found


def main(folder: Path) -> None:
    """Maintain large batches, kill an executor in each of the first while it writes, and compare every tick."""
    world = ScriptedWorld(None, folder)  # type: ignore[arg-type]  # it is opened by its folder, not by a session
    world.write_project({"sold": SOLD, "totals": TOTALS}, one_story.SETTINGS.split("[views.sold]")[0])
    for product in range(3):
        world.price(product, 10 * product)
    world.sell(*range(1, 9))
    killed: list[list[int]] = []
    write = runner.write_bag

    def killing(*given: object) -> object:
        """Write, and kill all executors as soon as one of their tasks runs."""
        if len(killed) > (world.warehouse.frontier("sold") - first) // 2:  # once in each batch
            return write(*given)  # type: ignore[arg-type]
        written = threading.Event()
        thread = threading.Thread(target=kill_at_work, args=(written, killed))
        thread.start()
        try:
            return write(*given)  # type: ignore[arg-type]
        finally:
            written.set()
            thread.join()

    with headwater.open(folder) as project:
        project.run(until_idle=True)
        first = world.warehouse.frontier("sold")
        runner.write_bag = killing  # type: ignore[assignment]
        for number in range(9, 9 + 8 * KILLS):
            world.sell(number)
            world.price(number % 3, 100 + number)
            project.run(until_idle=True)
            if len(killed) == KILLS:
                break
        last = world.assert_exact("sold", "totals")
    sys.stdout.write(json.dumps({"killed": killed, "last": last}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
