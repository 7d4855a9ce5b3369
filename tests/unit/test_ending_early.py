"""A run that is told to end while it only starts ends at once, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import sys, time
from headwater.cli.entry import main
from headwater.engine.service import project_run
from headwater.api.session import Headwater

def start(*arguments, **named):
    print("starting", flush=True)
    time.sleep(600)

if sys.argv[2] == "Spark":
    Headwater.spark = property(start)
else:
    Headwater.spark = None
    project_run.resolve_project = start
sys.argv = ["headwater", "run", "-p", sys.argv[1]]
main()
"""


@pytest.mark.parametrize(
    ("what", "number", "code"),
    [("Spark", signal.SIGTERM, -15), ("the project", signal.SIGTERM, 143), ("the project", signal.SIGINT, 130)],
)
def test_a_signal_while_starting(tmp_path: Path, what: str, number: signal.Signals, code: int) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "a.sql").write_text("SELECT s.no FROM shop.sales s")
    (tmp_path / "headwater.toml").write_text('[project]\nname = "a"\n[sources.shop]\nurl = "${NOWHERE}"\n')
    arguments = [sys.executable, "-c", CHILD, str(tmp_path), what]
    environment = {**os.environ, "NOWHERE": "postgresql://nobody@localhost:1/nothing"}
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "starting\n"
            child.send_signal(number)
            _, said = child.communicate(timeout=120)
        finally:
            child.kill()
    assert (child.returncode, "Traceback" in said, "HW-999" in said) == (code, False, False), said
    assert sorted(one.name for one in tmp_path.iterdir()) == ["headwater.toml", "views"]
