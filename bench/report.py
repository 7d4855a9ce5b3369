"""What a bench has to say: printed as it is measured, and kept in a file."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

RESULTS = Path(__file__).parent / "results"


class Report:
    """Prints every line, and writes all of them to a file of bench/results."""

    def __init__(self, file: str) -> None:
        self._file = RESULTS / file
        self._lines: list[str] = []

    def say(self, line: str = "") -> None:
        print(line, flush=True)
        self._lines.append(line)

    def begin(self, title: str, spark: SparkSession, about: str) -> None:
        """Say what is measured, when, and on what machine."""
        self.say(f"# {title}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
        self.say()
        self.say(
            f"{os.cpu_count()} cores, Python {platform.python_version()}, Spark {spark.version}; load before: "
            f"{os.getloadavg()[0]:.1f}. {about}"
        )

    def table(self, *columns: str) -> None:
        """Begin a table."""
        self.say()
        self.row(*columns)
        self.say("|---" * len(columns) + "|")

    def row(self, *cells: str) -> None:
        self.say(f"| {' | '.join(cells)} |")

    def write(self) -> None:
        RESULTS.mkdir(exist_ok=True)
        self._file.write_text("\n".join(self._lines) + "\n")
