"""The demo as a person plays it: its own process, its own servers, nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from headwater.demo.servers import TABLES, example_folder
from headwater.demo.writers import ROLES
from headwater.project.file import load

DEMO = (sys.executable, "-c", "from headwater.cli import main; main()", "demo")


def started_by(pid: int) -> set[int]:
    """Return the processes that a process has started, and those that they have started."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(processes: set[int]) -> None:
    deadline = time.monotonic() + 30
    while left := [pid for pid in processes if is_running(pid)]:
        assert time.monotonic() < deadline, f"left running: {left}"
        time.sleep(0.1)


def test_every_state_is_exact() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # as root the servers run under another account
        played = subprocess.run(
            [*DEMO, "--seconds", "4"],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            cwd=folder,
            env={**os.environ, "TMPDIR": folder},
        )
        assert played.returncode == 0, played.stdout + played.stderr
        assert not list(Path(folder).iterdir())
    found = re.findall(r"^\w+ +complete +complete +([\d,]+)", played.stdout, flags=re.MULTILINE)
    assert len(found) == 4
    assert re.search(r"[1-9][\d,]* states recomputed .* every one was exact", played.stdout)
    ticks = re.findall(r"^high_profit at tick (\d+)", played.stdout, flags=re.MULTILINE)
    assert len(set(ticks)) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_it_leaves_nothing_when_it_is_interrupted(number: signal.Signals) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        with subprocess.Popen(
            [*DEMO, "--seconds", "300"], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": folder}
        ) as demo:
            assert demo.stdout is not None
            assert any("understanding" in line for line in demo.stdout)
            started = started_by(demo.pid)
            assert started
            demo.send_signal(number)
            assert demo.wait(timeout=120) != 0
        wait_until_gone(started)
        assert not list(Path(folder).iterdir())


def test_the_example_is_a_project() -> None:
    project = load(example_folder())
    assert {source.name for source in project.sources} == set(TABLES) == {role.source for role in ROLES}
    assert len(project.views) == 4
