"""What it means when a warehouse cannot be written: a full disk, missing rights, a file system that fails.

Nothing is lost by any of it. Readers go on with the last commit, and a source is told to forget only what is durable in
the change log: after the cause is removed, the next run goes on where the last commit is.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from headwater.errors import HeadwaterError, WarehouseRefused

_FULL = {errno.ENOSPC: "No space left on device", errno.EDQUOT: "Disk quota exceeded"}
_DENIED = {
    errno.EACCES: "Permission denied",
    errno.EPERM: "Operation not permitted",
    errno.EROFS: "Read-only file system",
}
_LONGEST_TEXT = 300
_NOTHING_LOST = (
    "nothing is lost: views can be read as of the last commit, and the next `headwater run` goes on from there"
)


@contextmanager
def explained_storage(warehouse: str) -> Iterator[None]:
    """Turn what file systems, delta-rs and Spark raise when they cannot write into an error that says what to do."""
    try:
        yield
    except (OSError, DeltaError, PySparkException) as error:
        explained = storage_error(error, warehouse)
        if explained is None:
            raise
        raise explained from error


def storage_error(error: BaseException, warehouse: str) -> HeadwaterError | None:
    """Return what an exception means to the warehouse; None: it is not about storage.

    >>> full = storage_error(OSError(28, "Error writing bytes to file"), "/data/shop")
    >>> full.code, full.summary
    ('HW-426', 'the disk is full')
    >>> storage_error(DeltaError("Generic error: Permission denied (os error 13)"), "/data/shop").code
    'HW-427'
    >>> storage_error(DeltaError("Corrupt page"), "/data/shop").code
    'HW-428'
    >>> [storage_error(error, "/data/shop") for error in (PySparkException("division by zero"), ConnectionResetError())]
    [None, None]
    """
    text = " ".join(str(error).split())[:_LONGEST_TEXT]
    if _is_one_of(error, _FULL):
        return WarehouseRefused(
            "the disk is full",
            code="HW-426",
            detail=f"{text}; {_free_space(warehouse)}",
            hint='free space on that disk, or shorten "retention" in headwater.toml, then run again; ' + _NOTHING_LOST,
        )
    if _is_one_of(error, _DENIED):
        return WarehouseRefused(
            f'the warehouse "{warehouse}" may not be written',
            code="HW-427",
            detail=text,
            hint=f"let this account write in that folder, then run again; {_NOTHING_LOST}",
        )
    if isinstance(error, OSError | DeltaError) and not isinstance(error, ConnectionError | TimeoutError):
        return WarehouseRefused(
            f'the warehouse "{warehouse}" could not be written or read',
            code="HW-428",
            detail=f"{type(error).__name__}: {text}",
            hint=f"look at the disk and at the file that is named, then run again; {_NOTHING_LOST}",
        )
    return None


def _is_one_of(error: BaseException, known: dict[int, str]) -> bool:
    """Tell by the number, or by the text: delta-rs and Spark pass the text of the operating system on."""
    if isinstance(error, OSError) and error.errno in known:
        return True
    return any(text in str(error) for text in known.values())


def _free_space(warehouse: str) -> str:
    """Return how much is free where we write: in the warehouse, and in the folder for temporary files."""
    folders = {"the warehouse": Path(warehouse), "temporary files": Path(tempfile.gettempdir())}
    found = []
    for what, folder in folders.items():
        there = next((one for one in (folder, *folder.parents) if one.exists()), None)
        if there is not None:
            found.append(f'{shutil.disk_usage(there).free / 1e6:,.1f} MB are free for {what} in "{folder}"')
    return ", ".join(found)
