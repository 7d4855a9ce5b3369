"""What went wrong with a stored file, in words: which file, why, and the way out.

Delta, Arrow, Spark, object stores and the operating system each have their own exceptions, and few of them name the
file. This is the one place that knows them. A block that reads or writes stored files stands in `stored`. Code that
answers a user stands in it once more, for what Spark reads. What a store says of a request is shortened to its first
line, without the query of a URL, which may hold a signature.
"""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import dropwhile
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError, SchemaMismatchError
from obstore.exceptions import BaseError

from headwater.errors import HeadwaterError, WarehouseRefused
from headwater.storage.local_folder import free_bytes
from headwater.storage.object_store import is_remote, spark_address, store_at
from headwater.storage.remote_objects import NO_BUCKET

Parsed = TypeVar("Parsed")

_DAMAGE = re.compile(r"parquet|thrift|decompress|corrupt|magic bytes|FAILED_READ_FILE|Kernel error", re.IGNORECASE)
_PATH = re.compile(r"(?:file:/*(?=/)|(?<=['\"\s(])|^)(/[^\s'\",()]+|[a-z]+[0-9]?://[^\s'\",()]+)")
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

_FROM_STORE = re.compile(r"Generic (S3|GCS|MicrosoftAzure|HTTP) error|Error performing |Server returned non-2xx")
"""What only an object store's library says."""
_NOT_THERE = re.compile(r"404 Not Found")
_NOT_ALLOWED = re.compile(r"40[13] (Forbidden|Unauthorized)|AccessDenied|169\.254\.16|metadata\.google|no credentials")
_ENCRYPTED_ONLY = re.compile(r"scheme is not allowed|BadScheme")
_BEFALLING_ALL = {"HW-434", "HW-435", "HW-436", "HW-440", "HW-441", "HW-442", "HW-443"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m|\s*↳")
_QUERY = re.compile(r"\?[^\s\"')]*")


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


def befalls_all(error: BaseException) -> bool:
    """Tell whether an error is of a disk or a store as a whole, and so gone once that is mended.

    >>> befalls_all(WarehouseRefused("there is no space left", code="HW-434"))
    True
    >>> befalls_all(damaged("w/part-1", "it is empty"))
    False
    """
    return isinstance(error, WarehouseRefused) and error.code in _BEFALLING_ALL


def storage_error(error: BaseException, *paths: str) -> HeadwaterError | None:
    """Return what an exception says of one of these files or folders. None: it is not about storage.

    >>> error = storage_error(OSError(28, "No space left on device"), "/nowhere/w/changelog")
    >>> print(error.summary, error.code, error.detail)
    there is no space left to write "/nowhere/w/changelog" HW-434 No space left on device
    """
    text = _after_frames(str(error))
    is_of_store = isinstance(error, BaseError) or _FROM_STORE.search(text) is not None
    return _store_error(error, text, paths) if is_of_store else _file_error(error, text, paths)


def _file_error(error: BaseException, text: str, paths: tuple[str, ...]) -> HeadwaterError | None:
    """Return what the operating system says of a file, or what is in it that should not be."""
    number = _number(error, text)
    is_damage, is_delta = _DAMAGE.search(text) is not None, isinstance(error, DeltaError)
    if isinstance(error, SchemaMismatchError) or not (number is not None or is_damage or is_delta):
        return None
    said = os.strerror(number) if number in (*_FULL, *_FORBIDDEN) else _first_line(error, text)
    file = _named(error, text, paths)
    if number in _FULL:
        file = tempfile.gettempdir() if is_remote(file) else file  # what goes to a store is gathered there
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
        return _missing(file, said)
    if not is_damage:
        return WarehouseRefused(
            f'"{file}" cannot be used',
            code="HW-436",
            detail=said,
            hint="check the path, the disk and its file system, then run it again",
        )
    return damaged(_culprit(file, paths), said)


def _store_error(error: BaseException, text: str, paths: tuple[str, ...]) -> HeadwaterError:
    """Return what an object store says."""
    plain = " ".join(_COLOUR.sub(" ", text.split("\n\nDebug source", maxsplit=1)[0]).split())
    said = textwrap.shorten(_QUERY.sub("", plain), _LONGEST, placeholder=" …")
    file = next((path for path in paths if is_remote(path)), "an object store")
    if NO_BUCKET.search(text):
        return WarehouseRefused(
            f'there is no bucket for "{file}"',
            code="HW-440",
            detail=said,
            hint="make the bucket, or correct [warehouse] path; Headwater makes none",
        )
    if isinstance(error, FileNotFoundError) or _NOT_THERE.search(text):
        return _missing(file, said)
    if _NOT_ALLOWED.search(text):
        return WarehouseRefused(
            f'"{file}" cannot be used with these credentials',
            code="HW-441",
            detail=said,
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or what the store takes) in the environment of this "
            f"process, or run it where the machine has a role; profiles in ~/.aws are not read. {_NOTHING_LOST}",
        )
    if _ENCRYPTED_ONLY.search(text):
        return WarehouseRefused(
            f'"{file}" is not reached over http without encryption',
            code="HW-442",
            detail=said,
            hint='name an https:// endpoint, or set allow_http = "true" in [warehouse.storage]',
        )
    return WarehouseRefused(
        f'the object store of "{file}" does not do what it should',
        code="HW-443",
        detail=said,
        hint="can this machine reach it, by the endpoint and region of [warehouse.storage] or the environment? Then "
        f"start again; {_NOTHING_LOST}",
    )


def _missing(file: str, said: str) -> HeadwaterError:
    return WarehouseRefused(
        f'"{file}" is missing',
        code="HW-433",
        detail=said,
        hint=f"try again: a running maintainer may just have tidied up. If it is still missing, {_way_out(file)}",
    )


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
        if not is_remote(file) or spark_address(file) is not None:
            folder, _, name = file.rpartition("/")
            size = store_at(folder).size(name)
            if size is None:
                raise _missing(file, os.strerror(errno.ENOENT))
            if size == 0:
                raise damaged(file, "it is empty")


def refuse_empty_entries(table: str) -> None:
    """Refuse a Delta table one of whose log entries is empty: Delta takes it for a commit that changed nothing.

    A power cut leaves such files. Object stores have an object whole or not at all, and are not asked.
    """
    if is_remote(table):
        return
    for name, size in store_at(table).sizes("_delta_log").items():
        if size == 0 and name.endswith(".json"):
            raise damaged(f"{table}/{name}", "the entry of a commit is empty")


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


def _after_frames(text: str) -> str:
    """Return what an error of a task says, without the code that it came through, whose words mean nothing here.

    >>> frames = ["Traceback (most recent call last):", '  File "a.py", line 1', "    pq.read()", "OSError: no"]
    >>> _after_frames(chr(10).join(frames))
    'OSError: no'
    """
    lines = text.splitlines()
    last = max((number for number, line in enumerate(lines) if line.lstrip().startswith('File "')), default=None)
    if last is None or "Traceback" not in text:
        return text
    return "\n".join(dropwhile(lambda line: line.startswith(" "), lines[last + 1 :]))


def _first_line(error: BaseException, text: str) -> str:
    if isinstance(error, OSError) and error.strerror and error.errno is not None:
        return error.strerror.split(". Detail:", maxsplit=1)[0]
    line = next(iter(text.splitlines()), "")
    return textwrap.shorten(line, _LONGEST, placeholder=" …") or type(error).__name__


def _named(error: BaseException, text: str, paths: tuple[str, ...]) -> str:
    """Return the file that an error names: itself, or in its text one of ours. Else the one that it must be about."""
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return error.filename
    roots = tuple(path if is_remote(path) else store_at(path).files()[1] for path in paths)
    found = [path.rstrip(".:") for path in _PATH.findall(text)]
    ours = [path for path in found if not roots or path.startswith(roots)]
    return ours[0] if ours else paths[0] if paths else next(iter(found), "a file")


def _culprit(file: str, paths: tuple[str, ...]) -> str:
    """Return the first file that cannot be read, of a table's log or of several data files. Else what is known."""
    log = f"{file}/_delta_log"
    if entries := store_at(log).names():
        return next((f"{log}/{name}" for name in entries if not _is_entry(log, name)), file)
    if len(paths) > 1 and file == paths[0]:
        return next((path for path in paths if not _is_parquet(path)), file)
    return file


def _is_entry(log: str, name: str) -> bool:
    """Tell whether an entry of a table's log can be read."""
    if name.endswith(".parquet"):
        return _is_parquet(f"{log}/{name}")
    if name.endswith(".json") or name == "_last_checkpoint":
        try:
            return bool([json.loads(line) for line in (store_at(log).get(name) or b"").splitlines()])
        except (ValueError, OSError):
            return False
    return True


def _is_parquet(file: str) -> bool:
    system, path = store_at(file).files()
    try:
        pq.read_table(path, filesystem=system)
    except (pa.ArrowException, OSError):
        return False
    return True


def _free(file: str) -> str:
    """Return how much space is left where a file is, where that can be known."""
    left = free_bytes(file)
    return "" if left is None else f"; {left // 1_000_000} MB are free there"


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
