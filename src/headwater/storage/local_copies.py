"""A folder of this machine for copies of what is at an address: files that are mapped into memory.

A warehouse that is a folder has them in itself. One on an object store has them in a cache folder of this machine, one
for each process, and so has any other whose project names such a folder. Nothing is lost with them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

from headwater.storage.object_store import is_remote

_caches: dict[str, Path] = {}
"""The cache folders that projects name, by the address of their warehouse. A process may hold several projects open."""


def use_cache(warehouse: str, folder: Path | None) -> None:
    """Note which folder of this machine has the copies of a warehouse. None: the one that it has by itself."""
    if folder is not None:
        _caches[warehouse] = folder
    elif is_remote(warehouse):
        _caches[warehouse] = _default_cache()
    else:
        _caches.pop(warehouse, None)


def copies_folder(address: str) -> Path:
    """Return where this process has copies of what is at an address."""
    warehouse = address
    while warehouse not in _caches and "/" in warehouse:
        warehouse = warehouse.rpartition("/")[0]
    if warehouse not in _caches:
        return _default_cache() / _own_name(address) if is_remote(address) else Path(address)
    return _caches[warehouse] / _own_name(warehouse) / address.removeprefix(warehouse).strip("/")


def clear_copies(warehouse: str) -> None:
    """Delete what ended processes of this machine left in a warehouse's cache folder, and what this one has there."""
    if warehouse not in _caches:
        return
    shutil.rmtree(copies_folder(warehouse), ignore_errors=True)
    for folder in _caches[warehouse].glob(f"*/{socket.gethostname()}-*"):
        host, _, process = folder.name.rpartition("-")
        if host == socket.gethostname() and not is_running(process):  # the cache may be on a disk that hosts share
            shutil.rmtree(folder, ignore_errors=True)


def _default_cache() -> Path:
    said = os.environ.get("XDG_CACHE_HOME")
    base = Path(said) if said else Path.home() / ".cache"
    with suppress(OSError):
        base.mkdir(parents=True, exist_ok=True)
    return (base if os.access(base, os.W_OK) else Path(tempfile.gettempdir())) / "headwater"


def _own_name(warehouse: str) -> str:
    """Return a warehouse's name in a cache folder, and below it that of this process."""
    told_apart = hashlib.sha256(warehouse.encode()).hexdigest()[:12]
    return f"{warehouse.rpartition('/')[2]}-{told_apart}/{socket.gethostname()}-{os.getpid()}"


def is_running(process: str) -> bool:
    """Tell whether a process of this machine, by its number, has not ended."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
