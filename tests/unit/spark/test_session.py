"""Which Spark is taken, by what the environment says; nothing is started here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwater.spark.executors import within
from headwater.spark.gateway import said_master

CHILD = """
from headwater.errors import HeadwaterError
from headwater.spark.session import spark_session
try:
    spark_session(wait_seconds=2)
except HeadwaterError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("options", "defaults", "expected"),
    [
        ("", "", None),
        ("", "# spark.master no\nspark.master   spark://one:7077\n", "spark://one:7077"),
        ("", "spark.master=spark://two:7077", "spark://two:7077"),
        ("--master yarn pyspark-shell", "spark.master spark://one:7077", "yarn"),
        ("--conf spark.master=local[3] --conf a=b pyspark-shell", "", "local[3]"),
        ("--conf spark.masterful=x pyspark-shell", "spark.masters spark://one:7077", None),
    ],
)
def test_the_users_master_is_found(options: str, defaults: str, expected: str | None, tmp_path: Path) -> None:
    if defaults:
        (tmp_path / "spark-defaults.conf").write_text(defaults)
    assert said_master({"PYSPARK_SUBMIT_ARGS": options, "SPARK_CONF_DIR": str(tmp_path)}) == expected


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"SPARK_REMOTE": "local[*]"}, "HW-605"),
        ({"SPARK_REMOTE": "sc://127.0.0.1:1", "SPARK_MASTER": "local"}, "HW-611"),
        ({"SPARK_REMOTE": "sc://127.0.0.1:1/;token=kanarienvogel7"}, "HW-607"),
    ],
)
def test_a_remote_spark_that_cannot_be_used_is_refused_without_its_token(said: dict[str, str], code: str) -> None:
    without = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    child = subprocess.run(
        [sys.executable, "-c", CHILD], env=without | said, capture_output=True, text=True, timeout=120, check=False
    )
    assert child.returncode == 0, child.stderr
    assert f"[{code}]" in child.stdout
    assert "kanarienvogel7" not in child.stdout + child.stderr


def test_what_takes_too_long_is_not_waited_for() -> None:
    with pytest.raises(TimeoutError):
        within(0.01, lambda: time.sleep(2))
    assert within(60, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: 1 // 0)
