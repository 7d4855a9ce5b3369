"""Objects in a folder of this machine. See `object_store.ObjectStore` for what each method promises."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """The files below a folder, which need not be there yet."""

    path: Path

    def get(self, name: str) -> bytes | None:
        """Return a file's bytes, or None if it is not there."""
        try:
            return Path(self.path, name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def put(self, name: str, content: bytes, *, durable: bool = False) -> None:
        """Replace a file as a whole, by a draft that is renamed."""
        draft = self._draft(name, content, durable=durable)
        draft.replace(Path(self.path, name))
        if durable:
            _sync(draft.parent)

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Make a file unless it is there, by a draft that gets a second name."""
        draft = self._draft(name, content, durable=True)
        try:
            Path(self.path, name).hardlink_to(draft)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
            _sync(draft.parent)
        return True

    def size(self, name: str) -> int | None:
        """Return how many bytes a file has, or None if it is not there."""
        file = Path(self.path, name)
        return file.stat().st_size if file.is_file() else None

    def names(self, folder: str = "") -> list[str]:
        """Return the names of what is right below a folder."""
        place = Path(self.path, folder)
        return sorted(one.name for one in place.iterdir()) if place.is_dir() else []

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return the sizes of all files below a folder, by their names."""
        files = sorted(one for one in Path(self.path, folder).rglob("*") if one.is_file())
        return {one.relative_to(self.path).as_posix(): one.stat().st_size for one in files}

    def delete(self, name: str = "") -> None:
        """Delete a file, or a folder with everything in it."""
        place = Path(self.path, name)
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)

    def move_in(self, address: str, name: str) -> None:
        """Rename a file from another folder."""
        file = Path(self.path, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        Path(address).rename(file)
        self.sync(name)

    @contextmanager
    def writing(self, name: str) -> Iterator[pa.NativeFile]:
        """Return a file to write to, which is synced at the end, or deleted if the block raises."""
        file = Path(self.path, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with pa.OSFile(str(file), "wb") as sink:
                yield sink
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        self.sync(name)

    def sync(self, *names: str) -> None:
        """Force files, and the folders that name them, to disk."""
        files = [Path(self.path, name) for name in names]
        folders = {folder for file in files for folder in file.parents if folder.is_relative_to(self.path)}
        for place in [*files, *sorted(folders)]:
            _sync(place)

    def files(self) -> tuple[pafs.FileSystem, str]:
        """Return Arrow's view of this machine's files, and the path of this folder."""
        return pafs.LocalFileSystem(), str(self.path.absolute())

    def _draft(self, name: str, content: bytes, *, durable: bool) -> Path:
        file = Path(self.path, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.{uuid.uuid4()}")
        draft.write_bytes(content)
        if durable:
            _sync(draft)
        return draft


def _sync(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free_bytes(file: str) -> int | None:
    """Return how much space is left where a file is or will be, None if none of its folders is there."""
    for folder in Path(file).parents:
        if folder != Path("/") and folder.is_dir():
            return shutil.disk_usage(folder).free
    return None


def machine_bytes() -> int | None:
    """Return how much memory this process may use at most: the machine's, or what its container is given."""
    limits = []
    for file in _MEMORY_LIMITS:
        try:
            limits.append(int(Path(file).read_text(encoding="ascii")))
        except (OSError, ValueError):  # there is none, or it says "max"
            continue
    with suppress(OSError, ValueError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits, default=None)
