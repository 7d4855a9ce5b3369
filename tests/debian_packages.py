"""Programs that tests need and that Debian packages: found where they are, installed where this machine allows it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

_PLACES = ("/usr/bin", "/usr/sbin", "/usr/local/bin")
_SECONDS = 600


@cache
def installed(command: str, package: str) -> str | None:
    """Return where a command is. With HEADWATER_INSTALL_PACKAGES=1 its package is installed first. None: it is missing.

    Several packages are named with spaces between them.
    """
    if (found := _find(command)) is not None or os.environ.get("HEADWATER_INSTALL_PACKAGES") != "1":
        return found
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return None
    with (Path(tempfile.gettempdir()) / "headwater-tests-install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in two processes, and one of them installs at a time
        if _find(command) is None:
            _install(package.split())
    return _find(command)


def _install(packages: list[str]) -> None:
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wait = ["-o", "DPkg::Lock::Timeout=300"]
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        subprocess.run(["apt-get", *wait, *arguments], env=quiet, capture_output=True, timeout=_SECONDS, check=False)


def _find(command: str) -> str | None:
    return shutil.which(command) or shutil.which(command, path=os.pathsep.join(_PLACES))
