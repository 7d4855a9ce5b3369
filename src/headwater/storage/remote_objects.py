"""Objects in a bucket of an object store. See `object_store.ObjectStore` for what each method promises.

The library is `obstore`: it lets other threads of Python go on while it waits, needs one request for each operation,
and can make an object only if it is absent. Delta stands on the same library below, and takes the same options.

Arrow reads through it too (`_ObjectFiles`): a small object by one request, a large one range by range.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.fs as pafs
from obstore.exceptions import AlreadyExistsError
from obstore.store import ObjectStore as ConnectedStore
from obstore.store import from_url

READ_WHOLE_BYTES = 1 << 20
"""An object of at most this size is read by one request, whatever part of it is asked for."""
_HELD_BYTES = 8 << 20
"""What is written is held in memory up to this size, and beyond it in a temporary file, until all of it is there."""
_CLIENT = ("allow_http",)
"""Options of the connection; all others are of the store."""
NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist")
"""What stores say of a bucket that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A connection to a bucket, for us and for Arrow. Threads share it."""

    store: ConnectedStore
    files: pafs.FileSystem


def connect(address: str, options: Mapping[str, str]) -> Bucket:
    """Return the bucket at an address. Nothing is asked of it yet."""
    client: Any = {key: value == "true" for key, value in options.items() if key in _CLIENT}
    said: Any = {key: value for key, value in options.items() if key not in _CLIENT}
    store = from_url(address, config=said, client_options=client or None)
    return Bucket(store=store, files=pafs.PyFileSystem(_ObjectFiles(store)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteObjects:
    """The objects of a bucket whose keys begin with a prefix."""

    address: str
    bucket: Bucket
    prefix: str

    def get(self, name: str) -> bytes | None:
        """Return an object's bytes, or None if it is not there."""
        try:
            return bytes(obstore.get(self.bucket.store, self._key(name)).bytes())
        except FileNotFoundError as error:
            _require_bucket(error)
            return None

    def put(self, name: str, content: bytes, *, durable: bool = False) -> None:
        """Replace an object as a whole. It is durable when the store answers."""
        del durable
        obstore.put(self.bucket.store, self._key(name), content)

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Make an object unless it is there. After a lost answer False may be said of our own."""
        try:
            obstore.put(self.bucket.store, self._key(name), content, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def size(self, name: str) -> int | None:
        """Return how many bytes an object has, or None if it is not there."""
        try:
            return int(obstore.head(self.bucket.store, self._key(name))["size"])
        except FileNotFoundError as error:
            _require_bucket(error)
            return None

    def names(self, folder: str = "") -> list[str]:
        """Return the names of what is right below a folder."""
        found = obstore.list_with_delimiter(self.bucket.store, self._key(folder) or None)
        below = [*found["common_prefixes"], *(one["path"] for one in found["objects"])]
        return sorted({path.rstrip("/").rpartition("/")[2] for path in below})

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return the sizes of all objects below a folder, by their names."""
        start = len(self.prefix) + 1 if self.prefix else 0
        pages = obstore.list(self.bucket.store, self._key(folder) or None)
        return {one["path"][start:]: one["size"] for page in pages for one in page}

    def delete(self, name: str = "") -> None:
        """Delete an object, or all objects below a folder."""
        keys = [self._key(one) for one in self.sizes(name)]
        if name:
            keys.append(self._key(name))
        if keys:
            obstore.delete(self.bucket.store, keys)

    def move_in(self, address: str, name: str) -> None:
        """Copy an object within the bucket, and delete the other."""
        other = address.partition("://")[2].partition("/")[2]
        obstore.copy(self.bucket.store, other, self._key(name))
        obstore.delete(self.bucket.store, other)

    @contextmanager
    def writing(self, name: str) -> Iterator[pa.NativeFile]:
        """Return a sink on this machine, whose content becomes the object at the end of the block."""
        with tempfile.SpooledTemporaryFile(_HELD_BYTES) as spool:
            sink = pa.PythonFile(spool, mode="w")
            yield sink
            sink.flush()
            spool.seek(0)
            obstore.put(self.bucket.store, self._key(name), spool)

    def sync(self, *names: str) -> None:
        """Do nothing: what the store has answered is durable."""

    def files(self) -> tuple[pafs.FileSystem, str]:
        """Return Arrow's view of the bucket, for reading, and the path of this address there."""
        return self.bucket.files, self.prefix

    def _key(self, name: str) -> str:
        return "/".join(part for part in (self.prefix, name) if part)


def _require_bucket(error: FileNotFoundError) -> None:
    """Raise an error again that is of the whole bucket: an object that is not there is another thing."""
    if NO_BUCKET.search(str(error)):
        raise error


class _RemoteFile(io.RawIOBase):
    """A large object, read range by range."""

    def __init__(self, store: ConnectedStore, key: str, size: int) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        length = left if size < 0 else min(size, left)
        if not length:
            return b""
        found = obstore.get_range(self._store, self._key, start=self._at, length=length)
        self._at += length
        return bytes(found)


class _ObjectFiles(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """Objects as files for Arrow to read. Nothing is written this way."""

    def __init__(self, store: ConnectedStore) -> None:
        super().__init__()
        self._store = store

    def get_type_name(self) -> str:
        return "headwater"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[pafs.FileInfo]:
        return [self._info(path) for path in paths]

    def open_input_file(self, path: str) -> pa.NativeFile:
        found = obstore.get(self._store, path)
        size = int(found.meta["size"])
        if size <= READ_WHOLE_BYTES:
            return pa.BufferReader(pa.py_buffer(found.bytes()))
        return pa.PythonFile(_RemoteFile(self._store, path, size), mode="r")

    open_input_stream = open_input_file

    def _info(self, path: str) -> pafs.FileInfo:
        try:
            size = obstore.head(self._store, path)["size"]
        except FileNotFoundError:
            return pafs.FileInfo(path, pafs.FileType.NotFound)
        return pafs.FileInfo(path, pafs.FileType.File, size=size)

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        raise NotImplementedError(selector)

    def create_dir(self, path: str, recursive: bool) -> None:
        raise NotImplementedError(path, recursive)

    def delete_dir(self, path: str) -> None:
        raise NotImplementedError(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool) -> None:
        raise NotImplementedError(path, missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        raise NotImplementedError(path)

    def move(self, source: str, target: str) -> None:
        raise NotImplementedError(source, target)

    def copy_file(self, source: str, target: str) -> None:
        raise NotImplementedError(source, target)

    def open_output_stream(self, path: str, metadata: object) -> pa.NativeFile:
        raise NotImplementedError(path, metadata)

    def open_append_stream(self, path: str, metadata: object) -> pa.NativeFile:
        raise NotImplementedError(path, metadata)
