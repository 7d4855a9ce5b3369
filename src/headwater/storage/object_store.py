"""Where stored objects are: a folder of this machine or an object store, found by the address alone.

| address | what it is |
|---|---|
| `/srv/shop/warehouse` | a folder of this machine |
| `s3://bucket/shop` | Amazon S3, and what speaks its protocol |
| `gs://bucket/shop` | Google Cloud Storage |
| `az://container/shop` | Azure Blob Storage |

An object has a name below an address, and bytes that are replaced as a whole. Folders are there as long as something is
in them. This is all that the warehouse asks of a store, besides Delta's own log; Delta reaches the same objects by
`delta_address`, and Arrow by `files`. Code outside of `storage` joins addresses with "/", and takes none for a path.

How a store is reached (its endpoint, its region, an account) is a property of the address, like a mounted disk:
`reach` notes what the project file says, and what it does not say is read from the environment, by the names that the
store's own tools use (`AWS_ACCESS_KEY_ID`). An option may name variables, `${NAME}`. They are filled in only when a
store is opened: secrets are in no value that is sent to a task or shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as pafs

from headwater.model.project import filled
from headwater.storage.local_folder import LocalFolder
from headwater.storage.remote_objects import Bucket, RemoteObjects, connect


class ObjectStore(Protocol):
    """The objects below an address. Names are relative to it, with "/" between folders. An empty name is all of it."""

    def get(self, name: str) -> bytes | None:
        """Return an object's bytes, or None if it is not there."""
        ...

    def put(self, name: str, content: bytes, *, durable: bool = False) -> None:
        """Replace an object as a whole: a reader sees the old bytes or the new ones. A durable one survives a crash."""
        ...

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Make an object, durably, unless it is there. At most one of several callers gets True."""
        ...

    def size(self, name: str) -> int | None:
        """Return how many bytes an object has, or None if it is not there."""
        ...

    def names(self, folder: str = "") -> list[str]:
        """Return the names of what is right below a folder, objects and folders, in order."""
        ...

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return the sizes of all objects below a folder, by their names."""
        ...

    def delete(self, name: str = "") -> None:
        """Delete an object, or a folder with everything in it. What is not there is fine."""
        ...

    def move_in(self, address: str, name: str) -> None:
        """Give an object from another address of the same store a new name here, durably."""
        ...

    def writing(self, name: str) -> AbstractContextManager[pa.NativeFile]:
        """Return a sink for a large object, which is there, durably, once the block has ended.

        Of a block that raises nothing is left; of a process that dies perhaps a part, so the name must be new.
        """
        ...

    def sync(self, *names: str) -> None:
        """Force objects that others wrote to disk. An object store has done so before it answered."""
        ...

    def files(self) -> tuple[pafs.FileSystem, str]:
        """Return Arrow's view of the store, for reading, and the path of this address there."""
        ...


def is_remote(address: str) -> bool:
    """Tell whether an address is that of an object store.

    >>> is_remote("s3://bucket/shop"), is_remote("/srv/shop")
    (True, False)
    """
    return "://" in address


def look_seconds(address: str, here: float, remote: float) -> float:
    """Return how often to look for something new at an address: seldom where each look is a request.

    >>> look_seconds("/srv/shop", 0.1, 2.0), look_seconds("s3://bucket/shop", 0.1, 2.0)
    (0.1, 2.0)
    """
    return max(here, remote) if is_remote(address) else here


def store_at(address: str) -> ObjectStore:
    """Return the objects below an address."""
    if not is_remote(address):
        return LocalFolder(Path(address))
    bucket, _, prefix = address.removesuffix("/").partition("://")[2].partition("/")
    scheme = address.partition("://")[0]
    options = tuple(sorted(options_of(address).items()))
    return RemoteObjects(address=address, bucket=_bucket(f"{scheme}://{bucket}", options), prefix=prefix)


def reach(address: str, options: Mapping[str, str]) -> None:
    """Note how the store at an address and everything below it is reached. Secrets are named, `${NAME}`."""
    if is_remote(address):
        _options[address.removesuffix("/")] = dict(options)


def options_of(address: str) -> Mapping[str, str]:
    """Return what was noted of how an address is reached, with variables as they are written."""
    parts = address.removesuffix("/")
    while parts not in _options and "/" in parts:
        parts = parts.rpartition("/")[0]
    return _options.get(parts, {})


def spark_address(address: str) -> str | None:
    """Return an object's address as Spark itself reads it, or None if its tasks have to read through Arrow.

    >>> reach("s3://bucket/shop", {"spark_scheme": "s3a"})
    >>> spark_address("s3://bucket/shop/views/v/1/part.parquet")
    's3a://bucket/shop/views/v/1/part.parquet'
    >>> reach("s3://bucket/shop", {})
    """
    scheme = options_of(address).get(SPARK_SCHEME)
    return None if scheme is None else f"{scheme}://{address.partition('://')[2]}"


def delta_address(address: str) -> tuple[str, dict[str, str] | None]:
    """Return an address as Delta takes it, and how it reaches the store there.

    >>> delta_address("s3://bucket/replicas/shop.my table")[0]
    's3://bucket/replicas/shop.my%20table'
    """
    if not is_remote(address):
        return address, None
    scheme, _, path = address.partition("://")
    return f"{scheme}://{quote(path)}", _filled(options_of(address))


SPARK_SCHEME = "spark_scheme"
"""The option that names the scheme by which the Spark in use reads a store by itself. All others are of the store."""
_options: dict[str, Mapping[str, str]] = {}
"""How stores are reached, by address. A process may hold several projects open."""


@cache
def _bucket(address: str, options: tuple[tuple[str, str], ...]) -> Bucket:
    return connect(address, _filled(dict(options)))


def _filled(options: Mapping[str, str]) -> dict[str, str]:
    """Return options with their variables filled in."""
    said = {key: text for key, text in options.items() if key != SPARK_SCHEME}
    return {key: filled(text, os.environ, f'"{key}" in [warehouse.storage] needs it') for key, text in said.items()}
