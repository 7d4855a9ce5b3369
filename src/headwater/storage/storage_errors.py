"""What went wrong with a stored file, in words: which file, why, and the way out.

Delta, Arrow, Spark and the operating system each have their own exceptions, and few of them name the file. This is the
one place that knows them. A block that reads or writes stored files stands in `stored`. Code that answers a user
stands in it once more, for what Spark reads.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError, SchemaMismatchError

from headwater.errors import HeadwaterError, WarehouseRefused

Parsed = TypeVar("Parsed")

_DAMAGE = re.compile(r"parquet|thrift|decompress|corrupt|magic bytes|FAILED_READ_FILE|Kernel error", re.IGNORECASE)
_PATH = re.compile(r"(?:file:/*(?=/)|(?<=['\"\s(])|^)(/[^\s'\",()]+)")
_LONGEST = 240
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NOTHING_LOST = (
    "nothing is lost: views can be read as of the last commit, and the next `headwater run` goes on from there"
)
_TEXTS = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
    "Permission denied": errno.EACCES,
    "FILE_NOT_EXIST": errno.ENOENT,
    "No such file or directory": errno.ENOENT,
    "FileNotFoundException": errno.ENOENT,
}
"""What stands for the operating system's number where an exception has only words."""


@contextmanager
def stored(*paths: str) -> Iterator[None]:
    """Tell what goes wrong in a block that reads or writes files, or a table's folder, as an error that names one."""
    try:
        yield
    except HeadwaterError:
        raise
    except Exception as error:  # Delta, Arrow, Spark and the system share no class: what is not storage is raised again
        told = storage_error(error, *paths)
        if told is None:
            raise
        raise told from error


def storage_error(error: BaseException, *paths: str) -> HeadwaterError | None:
    """Return what an exception says of one of these files or folders. None: it is not about storage.

    >>> error = storage_error(OSError(28, "No space left on device"), "/nowhere/w/changelog")
    >>> print(error.summary, error.code, error.detail)
    there is no space left to write "/nowhere/w/changelog" HW-434 No space left on device
    """
    text = str(error)
    number = _number(error, text)
    is_damage, is_delta = _DAMAGE.search(text) is not None, isinstance(error, DeltaError)
    if isinstance(error, SchemaMismatchError) or not (number is not None or is_damage or is_delta):
        return None
    said = os.strerror(number) if number in (*_FULL, *_FORBIDDEN) else _first_line(error, text)
    file = _named(error, text, paths)
    if number in _FULL:
        return WarehouseRefused(
            f'there is no space left to write "{file}"',
            code="HW-434",
            detail=said + _free(file),
            hint=f"free some space on that disk, or shorten [warehouse] retention, then run it again; {_NOTHING_LOST}",
        )
    if number in _FORBIDDEN:
        return WarehouseRefused(
            f'"{file}" cannot be used by this account',
            code="HW-435",
            detail=said,
            hint="let the account that runs Headwater read and write there; `query` and `status` need to read only; "
            + _NOTHING_LOST,
        )
    if number == errno.ENOENT:
        return WarehouseRefused(
            f'"{file}" is missing',
            code="HW-433",
            detail=said,
            hint=f"try again: a running maintainer may just have tidied up. If it is still missing, {_way_out(file)}",
        )
    if not is_damage:
        return WarehouseRefused(
            f'"{file}" cannot be used',
            code="HW-436",
            detail=said,
            hint="check the path, the disk and its file system, then run it again",
        )
    return damaged(_culprit(file, paths), said)


def damaged(file: str, why: str) -> WarehouseRefused:
    """Return the error of a file that does not hold what it should."""
    return WarehouseRefused(f'"{file}" is damaged', code="HW-432", detail=why, hint=_way_out(file))


def parse_stored(file: str, text: str, parse: Callable[[Any], Parsed]) -> Parsed:
    """Return what the JSON text of a stored file means. One that means nothing is damaged.

    >>> parse_stored("w/note.json", '{"upto": 3}', lambda said: said["upto"])
    3
    """
    try:
        return parse(json.loads(text))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        why = "it is empty" if not text.strip() else f"it does not say what it should: {error!r}"
        raise damaged(file, why) from error


def refuse_empty(files: Sequence[str]) -> None:
    """Refuse data files of no bytes: Spark takes them for files of no rows."""
    for file in files:
        if "://" not in file:
            with stored(file):
                if Path(file).stat().st_size == 0:
                    raise damaged(file, "it is empty")


def refuse_empty_entries(table: str) -> None:
    """Refuse a Delta table one of whose log entries is empty: Delta takes it for a commit that changed nothing."""
    if "://" in table:
        return
    for entry in sorted(Path(table, "_delta_log").glob("*.json")):
        if entry.stat().st_size == 0:
            raise damaged(str(entry), "the entry of a commit is empty")


def _number(error: BaseException, text: str) -> int | None:
    """Return the operating system's number for what went wrong. None: it is none of its errors."""
    if isinstance(error, ConnectionError | TimeoutError):
        return None  # a server's, not a file's
    if isinstance(error, FileNotFoundError):
        return errno.ENOENT
    for words, number in _TEXTS.items():
        if words in text:
            return number
    return error.errno if isinstance(error, OSError) else None


def _first_line(error: BaseException, text: str) -> str:
    if isinstance(error, OSError) and error.strerror and error.errno is not None:
        return error.strerror.split(". Detail:", maxsplit=1)[0]
    line = next(iter(text.splitlines()), "")
    return textwrap.shorten(line, _LONGEST, placeholder=" …") or type(error).__name__


def _named(error: BaseException, text: str, paths: tuple[str, ...]) -> str:
    """Return the file that an error names: itself, or in its text one of ours. Else the one that it must be about."""
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return error.filename
    roots = tuple(str(Path(path).absolute()) for path in paths)
    found = [path.rstrip(".:") for path in _PATH.findall(text)]
    ours = [path for path in found if not roots or path.startswith(roots)]
    return ours[0] if ours else paths[0] if paths else next(iter(found), "a file")


def _culprit(file: str, paths: tuple[str, ...]) -> str:
    """Return the first file that cannot be read, of a table's log or of several data files. Else what is known."""
    log = Path(file, "_delta_log")
    if log.is_dir():
        return next((str(one) for one in sorted(log.iterdir()) if not _is_entry(one)), file)
    if len(paths) > 1 and file == paths[0]:
        return next((path for path in paths if not _is_parquet(Path(path))), file)
    return file


def _is_entry(file: Path) -> bool:
    """Tell whether a file of a table's log can be read."""
    if file.suffix == ".parquet":
        return _is_parquet(file)
    if file.suffix == ".json" or file.name == "_last_checkpoint":
        try:
            return bool([json.loads(line) for line in file.read_text().splitlines()])
        except (ValueError, OSError):
            return False
    return True


def _is_parquet(file: Path) -> bool:
    try:
        pq.read_table(file)
    except (pa.ArrowException, OSError):
        return False
    return True


def _free(file: str) -> str:
    """Return how much space is left where a file is, where that can be known."""
    for folder in Path(file).parents:
        if folder != Path("/") and folder.is_dir():
            return f"; {shutil.disk_usage(folder).free // 1_000_000} MB are free there"
    return ""


def _way_out(file: str) -> str:
    """Return what to do about a file that is lost, by what it was for.

    >>> _way_out("/w/replicas/shop.sales/1/checkpoint/part-1.parquet")
    'run `headwater teardown --source shop`, then `headwater run`: it reads the source again'
    """
    for place, way in _WAYS_OUT:
        if found := re.search(place, file):
            return way.format(*found.groups(), file=file)
    return (
        "restore the whole warehouse from a backup; if there is none, run `headwater teardown`, remove the warehouse's "
        "folder, and `headwater run` fills a new one from the sources"
    )


_WAYS_OUT = (
    (
        r"/views/([^/]+)/[0-9]+/",
        "run `headwater run --rebuild {}` to compute the view again, or restore the whole warehouse from a backup",
    ),
    (
        r"/segments/([^/]+)/[0-9]+/",
        "compute the views again that have {} in `headwater explain VIEW --full`: run `headwater run --rebuild VIEW`",
    ),
    (
        r"/replicas/([^/.]+)\.[^/]+/[0-9]+/",
        "run `headwater teardown --source {}`, then `headwater run`: it reads the source again",
    ),
    (
        r"/sources/([^/]+)\.json$",
        "run `headwater teardown --source {}`, then `headwater run`: it reads the source again",
    ),
    (r"^(.*/staging)/", 'remove "{}" and run it again: the sources are read again'),
    (
        r"/(lease\.json|status\.json|(awaited|traces|refreshes|released)/[^/]+)$",
        'remove "{file}" if no maintainer is running, then try again; no rows are in it',
    ),
    (r"/(format|project)\.json$", "restore this file from a backup of the warehouse"),
)
"""Where a file lies in a warehouse (`warehouse/folders`), and what to do if it is lost."""
