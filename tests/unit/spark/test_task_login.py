"""Only this account is answered with a login, and only while somebody means to answer."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.spark import task_login
from headwater.spark.task_login import answered_logins, ask_login

SECRET = "postgresql:///?password=kanarienvogel7"  # noqa: S105 - a canary
ASK = "import sys; from headwater.spark.task_login import ask_login; print(ask_login(sys.argv[1]))"

STRANGER = """
import os, socket, sys
os.setgid(65534)
os.setuid(65534)
asking = socket.socket(socket.AF_UNIX)
asking.connect(sys.argv[1])
print(asking.recv(99))
"""


def test_another_process_of_this_account_is_answered() -> None:
    with answered_logins(lambda: SECRET) as place:
        for _ in range(2):
            asked = subprocess.run([sys.executable, "-c", ASK, place], capture_output=True, text=True, check=True)
            assert asked.stdout.strip() == SECRET
        assert stat.S_IMODE(Path(place).parent.stat().st_mode) == 0o700
        assert "kanarienvogel7" not in place
    assert not Path(place).parent.exists()
    assert ask_login(place) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_account_is_not_answered() -> None:
    with answered_logins(lambda: SECRET) as place:
        Path(place).parent.chmod(0o777)
        Path(place).chmod(0o777)
        asked = subprocess.run([sys.executable, "-c", STRANGER, place], capture_output=True, text=True, check=True)
        assert asked.stdout.strip() == "b''"


def test_another_account_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of somebody else that answers could lead a task to another database."""
    with answered_logins(lambda: SECRET) as place:
        monkeypatch.setattr(task_login.os, "geteuid", lambda: os.getuid() + 1)
        assert ask_login(place) is None


def test_nobody_answers(tmp_path: Path) -> None:
    assert ask_login("") is None
    assert ask_login(str(tmp_path / "login")) is None
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(tmp_path / "login"))
    assert ask_login(str(tmp_path / "login")) is None


def test_a_login_that_fails_is_no_answer() -> None:
    def fail() -> str:
        raise ValueError(SECRET)

    with answered_logins(fail) as place:
        assert ask_login(place) is None
        assert ask_login(place) is None, "it goes on"


def test_where_there_can_be_no_socket_tasks_go_by_their_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with answered_logins(lambda: SECRET) as place:
        assert place == ""
