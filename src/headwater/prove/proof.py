"""Run a proof: start Spark as short-lived processes need it, then a campaign, or one trial from a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from headwater.demo.spark_aside import SHORT_LIVED, spark_started_aside
from headwater.errors import HeadwaterError
from headwater.prove.campaign import Campaign
from headwater.prove.result import ProveResult
from headwater.prove.trial import Trial

_INTERPRETED = "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN pyspark-shell"
"""Every query runs a few times over a few rows: compiling code for it takes longer than interpreting it."""

_LONG_LIVED = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m"
_LONG_SECONDS = 600
"""After so long, the best machine code has paid for its compiling: queries then take half of the time."""


def prove(
    *,
    seconds: float,
    view_limit: int | None,
    seed: int,
    replay: Path | None,
    to: Path,
    record: Path | None,
    report: Callable[[ProveResult], None],
) -> ProveResult:
    """Prove for a number of seconds, or play one trial, and return what was found."""
    if find_spec("duckdb") is None:
        raise HeadwaterError(
            "`headwater prove` needs DuckDB, which is not installed",
            code="HW-719",
            detail="it computes views a second time, independently of Spark",
            hint=f"{sys.executable} -m pip install duckdb",
        )
    trial = None if replay is None else _read(replay)
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", _INTERPRETED)
    if "SPARK_REMOTE" not in os.environ:
        os.environ.setdefault("SPARK_MASTER", "local[1]")
    with spark_started_aside(SHORT_LIVED if seconds < _LONG_SECONDS else _LONG_LIVED) as starting:
        spark = starting.result()
        spark.conf.set("spark.sql.shuffle.partitions", 1)
        campaign = Campaign(spark=spark, seed=seed, folder=to, report=report, file=record)
        if trial is not None:
            campaign.replay(trial)
            return campaign.result()
        return campaign.run(seconds=seconds, view_limit=view_limit)


def _read(file: Path) -> Trial:
    try:
        return Trial.read(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HeadwaterError(
            f"{file} is not a trial that can be played",
            code="HW-720",
            detail=str(error),
            hint="name a file that `headwater prove` has written",
        ) from None
