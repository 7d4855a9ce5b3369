"""A MariaDB server of our own for tests: a Debian package's binaries, a data directory, a free port of this machine."""

from __future__ import annotations

import contextlib
import getpass
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pymysql
import pytest
from tests.debian_packages import installed

_START_SECONDS = 60.0
SETTINGS: Mapping[str, str] = {
    "log-bin": "mariadb-bin",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "sync-binlog": "0",
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "32M",
    "server-id": "7",
    "character-set-server": "utf8mb4",
    "binlog-expire-logs-seconds": "604800",
    "performance-schema": "OFF",
}


class MariadbServer:
    """One server in one directory. `stop`, `kill` and `start` again as often as a test likes."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.settings = {**SETTINGS, **(settings or {})}
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = installed("mariadbd", "mariadb-server")
        install = installed("mariadb-install-db", "mariadb-server")
        assert program is not None
        assert install is not None
        data = self.directory / "data"
        if not data.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                [
                    install,
                    "--no-defaults",
                    f"--datadir={data}",
                    f"--user={getpass.getuser()}",
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                ],
                check=True,
                capture_output=True,
            )
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    program,
                    "--no-defaults",
                    f"--user={getpass.getuser()}",
                    f"--datadir={data}",
                    f"--socket={self.directory / 's'}",
                    f"--pid-file={self.directory / 'pid'}",
                    "--bind-address=127.0.0.1",
                    f"--port={self.port}",
                    *(f"--{name}={value}" for name, value in self.settings.items()),
                ],
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.connect().close()
            except pymysql.MySQLError:
                assert self._process.poll() is None, (self.directory / "log").read_text()[-3000:]
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, sign: signal.Signals) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, sign)
            process.wait(60)

    def connect(self, database: str | None = None, **options: Any) -> pymysql.Connection[Any]:
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", database=database, charset="utf8mb4", **options
        )

    def execute(self, statement: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run a statement, and commit."""
        with contextlib.closing(self.connect(database, autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def url(self, database: str = "shop", user: str = "root", scheme: str = "mariadb") -> str:
        return f"{scheme}://{user}@127.0.0.1:{self.port}/{database}"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextlib.contextmanager
def mariadb_server(directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[MariadbServer]:
    """Yield a server that runs, or skip the test with the reason."""
    if installed("mariadbd", "mariadb-server") is None:
        pytest.skip("not run: mariadbd is not installed, and HEADWATER_INSTALL_PACKAGES is not 1")
    server = MariadbServer(directory, settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()
