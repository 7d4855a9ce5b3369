"""`headwater.open`: the way in for Python programs. Importing it is quick: Spark and the drivers come with the call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.api.session import Headwater
    from headwater.observe.events import Listener


def open(  # noqa: A001 - `headwater.open` reads well
    path: str | Path = ".", *, listener: Listener | None = None, spark: SparkSession | None = None
) -> Headwater:
    """Open the project in a folder. Nothing is connected or started yet.

    With a Spark session of your own, of any kind, everything runs on that Spark; without one, on the Spark that this
    process has, or that `SPARK_REMOTE`, `SPARK_MASTER` or `spark-defaults.conf` names, or on this machine.
    """
    from headwater.api.session import open_project  # noqa: PLC0415 - as above
    from headwater.observe.events import ignore_event  # noqa: PLC0415 - importing headwater must stay quick

    return open_project(path, listener=listener or ignore_event, spark=spark)
