"""Programs that tests need and that Debian packages: found where they are, installed where this machine allows it."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

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
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *package.split()]):
        done = subprocess.run(["apt-get", *arguments], env=quiet, capture_output=True, timeout=_SECONDS, check=False)
        if done.returncode:
            return None
    return _find(command)


def _find(command: str) -> str | None:
    return shutil.which(command) or shutil.which(command, path=os.pathsep.join(_PLACES))
