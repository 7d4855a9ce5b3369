"""`python -m bench.executors`: a large transaction with one executor and with two, of one core each.

Each number of executors is a Spark of its own (`local-cluster`), in a process of its own, in turns. The servers are
quiet while a batch is computed: an UPDATE changes facts, the change log takes them, and then the batch is timed.
Writes bench/results/executors.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench import large
from bench.report import RESULTS
from bench.setting import setting

EXECUTORS = (1, 2)


def measure(facts: int, changes: int, repeats: int) -> list[float]:
    """Return the seconds of the batches of such transactions, after one that warms up."""
    from headwater.spark.session import spark_session  # noqa: PLC0415 - after the master is set

    with large.servers(facts) as urls, setting(spark_session(), urls, "replica", {"joined": large.VIEW}) as place:
        statement = f"UPDATE facts SET amount = amount + 1 WHERE id <= {changes}"
        seconds = [large.change(place, statement).batch_seconds for _ in range(repeats + 1)]
        large.require_exact(place)
    return seconds[1:]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.executors", description=__doc__)
    parser.add_argument("--facts", type=int, default=large.FACTS)
    parser.add_argument("--changes", type=int, default=large.FACTS)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--measure", action="store_true", help="measure with the Spark of the environment, and print JSON"
    )
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.facts, options.changes, options.repeats)))
        return
    found: dict[int, list[float]] = {count: [] for count in EXECUTORS}
    for _ in range(options.rounds):
        for count in EXECUTORS:
            master = f"local-cluster[{count},1,3072]"
            settings = {"SPARK_MASTER": master, "SPARK_DRIVER_MEMORY": "3g"}
            command = [sys.executable, "-m", "bench.executors", "--measure", "--facts", str(options.facts)]
            command += ["--changes", str(options.changes), "--repeats", str(options.repeats)]
            said = subprocess.run(command, env=os.environ | settings, check=True, capture_output=True, text=True).stdout
            found[count] += json.loads(said.splitlines()[-1])
            print(master, found[count], flush=True)
    one, two = (median(found[count]) for count in EXECUTORS)
    lines = [
        "# One executor and two",
        "",
        f"{os.cpu_count()} cores. {options.facts:,} facts, of which a transaction changes {options.changes:,}.",
        "",
        "| executors | batch s, median | all |",
        "|---|---|---|",
        *(f"| {n} | {median(all_):.1f} | {', '.join(f'{s:.1f}' for s in all_)} |" for n, all_ in found.items()),
        "",
        f"Two are {one / two:.2f} times as fast as one.",
    ]
    (RESULTS / "executors.md").write_text("\n".join(lines) + "\n")
    print(Path(RESULTS / "executors.md").read_text())


if __name__ == "__main__":
    main()
