"""Start Spark's virtual machine: without the secrets in our environment, and without its greetings.

PySpark hands a new virtual machine our whole environment, and with it the passwords of sources. Code that runs there
could print them, `/proc/PID/environ` shows them, and Python workers inherit them. Nothing there needs them: tasks that
read a source ask this process (`task_login`). So these variables are taken out of the environment that it gets:

- those that the project's sources are declared with,
- `PG…`, which PostgreSQL's own library reads,
- every variable that holds a URL with a password.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import threading
from collections.abc import Collection, Mapping
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

_URL_WITH_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/@:]*:[^\s@]+@", re.IGNORECASE)
_PASSWORD = re.compile(r"\bpassword\s*=", re.IGNORECASE)
_MASTER = "spark.master"
_MASTER_LINE = re.compile(r"\s*spark\.master(?:\s*[=:]\s*|\s+)(\S+)\s*$")
_MEMORY = "3g"
"""What Spark's driver may use, unless the project, SPARK_DRIVER_MEMORY or spark.driver.memory says otherwise."""
_OPTIONS = "SPARK_SUBMIT_OPTS"
_LOGGING = "log4j2.configurationFile"
_GREETING = b"WARNING: Using incubator modules:"
"""What Java itself says of a module that Spark asks for; no option turns it off."""


def without_secrets(environment: Mapping[str, str], secret: Collection[str] = ()) -> dict[str, str]:
    """Return an environment without the variables named, and without what else may hold a source's password.

    >>> without_secrets({"HOME": "/root", "PW": "x", "PGPASSWORD": "y", "URL": "postgresql://me:z@db/shop"}, ["PW"])
    {'HOME': '/root'}
    """
    return {
        name: value
        for name, value in environment.items()
        if name not in secret
        and not name.startswith("PG")
        and not _URL_WITH_PASSWORD.search(value)
        and not _PASSWORD.search(value)
    }


def said_master(environment: Mapping[str, str]) -> str | None:
    """Return the master that the user's options or `spark-defaults.conf` name."""
    options = shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    for name, value in reversed([*pairwise(options)]):
        if name == "--master":
            return value
        if name == "--conf" and value.startswith(f"{_MASTER}="):
            return value.removeprefix(f"{_MASTER}=")
    file = Path(environment.get("SPARK_CONF_DIR") or f"{_find_spark_home()}/conf") / "spark-defaults.conf"
    for line in reversed(file.read_text().splitlines() if file.exists() else []):
        if found := _MASTER_LINE.match(line):
            return found[1]
    return None


def start_gateway(conf: SparkConf, secret: Collection[str], wanted: Mapping[str, str]) -> None:
    """Start the virtual machine of this process, unless there is one. `wanted` are variables for it, unless set."""
    if SparkContext._gateway is not None:  # noqa: SLF001 - PySpark has no other way to say it
        return
    gateway = launch_gateway(conf, _Start(secret, {"SPARK_DRIVER_MEMORY": _MEMORY, **wanted}))  # type: ignore[no-untyped-call]  # PySpark does not type it
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)  # noqa: SLF001 - as `SparkContext` does itself
    process = gateway.proc
    if process is not None and process.stderr is not None:
        threading.Thread(target=_pass_on, args=(process.stderr,), name="what Spark says", daemon=True).start()


class _Start(dict[str, Any]):
    """How the process is started: PySpark puts our environment in here, and less of it comes out."""

    def __init__(self, secret: Collection[str], wanted: Mapping[str, str]) -> None:
        super().__init__(stderr=subprocess.PIPE)
        self._secret = secret
        self._wanted = wanted

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "env":
            value = _with_logging({**self._wanted, **without_secrets(value, self._secret)})
        super().__setitem__(name, value)


def _with_logging(environment: dict[str, str]) -> dict[str, str]:
    """Let the virtual machine log as our own file says, unless the user said how."""
    options = environment.get(_OPTIONS, "")
    settings = environment.get("SPARK_CONF_DIR") or f"{environment.get('SPARK_HOME', '')}/conf"
    if _LOGGING in options or (Path(settings) / "log4j2.properties").exists():
        return environment
    file = Path(__file__).with_name("log4j2.properties").as_uri()
    return environment | {_OPTIONS: f'{options} "-D{_LOGGING}={file}"'.strip()}


def _pass_on(lines: IO[bytes]) -> None:
    """Write what the virtual machine says to our standard error, as it would itself."""
    for line in lines:
        if not line.startswith(_GREETING):
            os.write(2, line)
