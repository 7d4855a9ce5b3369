"""Programs from Debian packages for tests: there already, or installed where `HEADWATER_INSTALL_PACKAGES` is 1."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


@functools.cache
def installed(command: str, package: str) -> str | None:
    """Return the path of a command, after installing its package if that is allowed. None if it is not there."""
    found = shutil.which(command, path=_PATH)
    if found is not None or os.environ.get("HEADWATER_INSTALL_PACKAGES") != "1" or os.geteuid() != 0:
        return found
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": _PATH}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        subprocess.run(["apt-get", *arguments], env=environment, check=False, capture_output=True)
    return shutil.which(command, path=_PATH)
