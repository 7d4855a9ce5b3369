"""Sparks that are not in this process: a server of Spark Connect, a standalone cluster, and one on another host.

Another host is a network namespace, joined to ours by a pair of interfaces. Everything that is started is stopped in
the end, by its process id, and every namespace is deleted.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.find_spark_home import _find_spark_home

_numbers = itertools.count()

HERE = Path(__file__).parent
SHARED = (HERE, HERE.parent / "properties", HERE.parent / "stores")
"""Where programs find what tests share."""
HOME = Path(_find_spark_home())
_PATIENCE_SECONDS = 600.0
_OWN = ("SPARK_MASTER", "SPARK_REMOTE", "SPARK_LOCAL_IP", "PYSPARK_SUBMIT_ARGS", "SPARK_CONNECT_MODE_ENABLED")
_LESS = "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN"


def environment(said: Mapping[str, str]) -> dict[str, str]:
    """Return our environment with nothing of this process's own Spark, and what is said."""
    return {name: value for name, value in os.environ.items() if name not in _OWN} | dict(said)


def options(*settings: str) -> str:
    """Return options for a Spark that lives a minute: it interprets its queries."""
    return " ".join([_LESS, *(f"--conf {setting}" for setting in settings), "pyspark-shell"])


def play_aside(folder: Path, said: Mapping[str, str], program: str = "one_story.py", *arguments: str) -> dict[str, Any]:
    """Play a story in a process of its own, on the Spark that its environment names, and return what it found."""
    child = subprocess.run(
        [sys.executable, str(HERE / program), str(folder), *arguments],
        env=environment(said) | {"PYTHONPATH": os.pathsep.join(map(str, SHARED))},
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    found: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return found | {"standard error": child.stderr}


def free_port(address: str = "127.0.0.1") -> int:
    with socket.socket() as one:
        one.bind((address, 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def started(command: list[str], log: Path, ready: str, said: Mapping[str, str]) -> Iterator[int]:
    """Start a program, wait until its log says that it is ready, and end it afterwards; gives its process id."""
    with (
        log.open("wb") as written,
        subprocess.Popen(command, stdout=written, stderr=written, env=environment(said)) as process,
    ):
        try:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while ready not in (text := log.read_text(errors="replace")):
                assert process.poll() is None, text[-3000:]
                assert time.monotonic() < deadline, text[-3000:]
                time.sleep(0.1)
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)


def logging_to_console(folder: Path) -> dict[str, str]:
    """Return where Spark finds how to log: what these tests wait for is said at the level `info`."""
    folder.mkdir(exist_ok=True)
    lines = (
        "rootLogger.level = info",
        "rootLogger.appenderRef.stdout.ref = console",
        "appender.console.type = Console",
        "appender.console.name = console",
        "appender.console.layout.type = PatternLayout",
        "appender.console.layout.pattern = %p %c{1}: %m%n",
    )
    (folder / "log4j2.properties").write_text("\n".join(lines))
    return {"SPARK_CONF_DIR": str(folder)}


@contextmanager
def connect_server(folder: Path, *settings: str, before: tuple[str, ...] = ()) -> Iterator[str]:
    """Run a server of Spark Connect at this machine's own address; gives what SPARK_REMOTE is for it."""
    port = free_port()
    said = ("spark.connect.grpc.binding.address=127.0.0.1", f"spark.connect.grpc.binding.port={port}")
    own = ("spark.ui.enabled=false", "spark.driver.bindAddress=127.0.0.1", "spark.sql.codegen.wholeStage=false")
    command = [
        *before,
        *(str(HOME / "bin" / "spark-submit"), "--master", "local[2]"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *(part for setting in (*said, *own, *settings) for part in ("--conf", setting)),
        "spark-internal",
    ]
    with started(
        command,
        folder / "connect.log",
        "Spark Connect server started at",
        {**logging_to_console(folder / "conf"), "SPARK_LOCAL_IP": "127.0.0.1"},
    ):
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def master(folder: Path, address: str) -> Iterator[str]:
    """Run a standalone master; gives what SPARK_MASTER is for it."""
    port = free_port(address)
    command = [
        *(str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master"),
        *("--host", address, "--port", str(port), "--webui-port", str(free_port(address))),
    ]
    said = logging_to_console(folder / "conf")
    with started(command, folder / "master.log", "New state: ALIVE", {**said, "SPARK_LOCAL_IP": address}):
        yield f"spark://{address}:{port}"


@contextmanager
def worker(folder: Path, address: str, url: str, before: tuple[str, ...] = ()) -> Iterator[None]:
    """Run a standalone worker of one core, perhaps on another host."""
    command = [
        *before,
        *(str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy.worker.Worker"),
        *("--host", address, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"), url),
    ]
    said = logging_to_console(folder / "conf")
    with started(command, folder / "worker.log", "Successfully registered", {**said, "SPARK_LOCAL_IP": address}):
        yield


@contextmanager
def other_host() -> Iterator[tuple[str, str, str]]:
    """Make a network namespace joined to ours; gives its name, our address and its address."""
    number = f"{os.getpid()}{next(_numbers)}"
    name, ours, theirs = f"headwater-{number}", f"hw{number}a", f"hw{number}b"
    here, there = (f"10.231.{int(number) % 256}.{host}" for host in (1, 2))

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        ip("netns", "add", name)
        ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", name)
        ip("address", "add", f"{here}/30", "dev", ours)
        ip("link", "set", ours, "up")
        ip("-n", name, "address", "add", f"{there}/30", "dev", theirs)
        ip("-n", name, "link", "set", theirs, "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield name, here, there
    finally:
        for made in (["link", "delete", ours], ["netns", "delete", name]):
            subprocess.run(["ip", *made], check=False, capture_output=True)


def why_no_other_host() -> str:
    """Return why no network namespace can be made here; empty if one can."""
    if shutil.which("ip") is None:
        return "`ip` is not installed (Debian: apt install iproute2)"
    try:
        with other_host() as (name, _, _):
            command = ["ip", "netns", "exec", name, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
            subprocess.run(command, check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        return f"no network namespace can be made: {error.stderr.decode().strip()}"
    return ""
