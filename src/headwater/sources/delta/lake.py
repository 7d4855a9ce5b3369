"""Where Delta tables are: a folder of tables or one table, and the files of each.

`delta:/srv/lake` is a folder: `lake.orders` is the table in `/srv/lake/orders`, `lake.sales.orders` the one in
`/srv/lake/sales/orders`. A path that is a table itself has one relation, named like its last folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from urllib.parse import unquote

import pyarrow.fs as pafs

from headwater.errors import InvalidProject, SourceLost, SourceRefused, SourceUnavailable
from headwater.model.position import Notation, Position
from headwater.model.relation import DEFAULT_SCHEMA, RelationName
from headwater.sources.delta.commits import TableCommit, proof_of, read_commit

_COMMIT = re.compile(r"(\d{20})\.json")
LOG = "_delta_log"
NOTATION = Notation(history="table id")


@dataclass(frozen=True, slots=True)
class Lake:
    """A place that has Delta tables."""

    path: str
    files: pafs.FileSystem

    @classmethod
    def at(cls, url: str, source: str) -> Lake:
        """Return the place that a URL names: `delta:/srv/lake`."""
        path = unquote(url.partition(":")[2])
        if path.startswith("///"):
            path = path[2:]
        if "://" in path or path.startswith("//"):
            raise InvalidProject(
                f'the url of source "{source}" names no folder of this machine',
                code="HW-374",
                detail="Delta tables are read from folders that are mounted here",
                hint="write delta:/srv/lake, or mount the object store",
            )
        if not path.startswith("/"):
            raise InvalidProject(
                f'the url of source "{source}" names no folder',
                code="HW-375",
                detail="a relative path would depend on where the command is run",
                hint="write the whole path: delta:/srv/lake",
            )
        return cls(path.rstrip("/") or "/", pafs.LocalFileSystem())

    @property
    def is_table(self) -> bool:
        """Whether it is one table and no folder of tables."""
        return self._is_folder(f"{self.path}/{LOG}")

    def table(self, relation: RelationName) -> LakeTable:
        """Return the table of a relation. It need not be there."""
        folders = () if relation.schema == DEFAULT_SCHEMA else (relation.schema,)
        if self.is_table and not folders and relation.name == PurePosixPath(self.path).name:
            return LakeTable(relation, self.path, self.files)
        return LakeTable(relation, "/".join((self.path, *folders, relation.name)), self.files)

    def names(self) -> list[str]:
        """Return the names of the tables that are right here, for a message."""
        if self.is_table:
            return [PurePosixPath(self.path).name]
        if not self._is_folder(self.path):
            return []
        found = self.files.get_file_info(pafs.FileSelector(self.path))
        return sorted(one.base_name for one in found if self._is_folder(f"{one.path}/{LOG}"))

    def _is_folder(self, path: str) -> bool:
        return bool(self.files.get_file_info(path).type == pafs.FileType.Directory)


@dataclass(frozen=True, slots=True)
class LakeTable:
    """The files of one table."""

    relation: RelationName
    path: str
    files: pafs.FileSystem

    @property
    def log(self) -> str:
        """The name of its log, among those of the source."""
        return self.relation.name if self.relation.schema == DEFAULT_SCHEMA else str(self.relation).partition(".")[2]

    @property
    def is_there(self) -> bool:
        """Whether there is a Delta table."""
        return bool(self.files.get_file_info(f"{self.path}/{LOG}").type == pafs.FileType.Directory)

    def path_of(self, name: str) -> str:
        """Return where a file of the table is. One outside of the table's folder is refused."""
        if "://" in name or name.startswith(("/", "file:")):
            raise SourceRefused(
                f'Delta table "{self.relation}" has files outside of its folder',
                code="HW-376",
                detail=f'"{name}": it is a shallow clone of another table',
                hint="read the table that it was cloned from, or copy it as a whole",
            )
        return f"{self.path}/{name}"

    def versions(self) -> list[int]:
        """Return the versions whose commit files are there, in order."""
        if not self.is_there:
            return []
        names = (one.base_name for one in self.files.get_file_info(pafs.FileSelector(f"{self.path}/{LOG}")))
        return sorted(int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))

    def commit_bytes(self, version: int) -> bytes | None:
        """Return the commit file of a version, or None if it is not there."""
        try:
            with self.files.open_input_stream(self._commit_path(version)) as opened:
                return bytes(opened.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.unavailable(error) from error

    def has_commit(self, version: int) -> bool:
        """Tell whether a version's commit file is there."""
        return bool(self.files.get_file_info(self._commit_path(version)).type == pafs.FileType.File)

    def commit(self, version: int) -> TableCommit | None:
        """Return what a version did, or None if its commit file is not there."""
        content = self.commit_bytes(version)
        if content is None:
            return None
        info = self.files.get_file_info(self._commit_path(version))
        try:
            return read_commit(version, content, info.mtime or datetime.now(UTC))
        except (ValueError, KeyError) as error:  # a file that is copied here is seen while it is written
            raise self.unavailable(error) from error

    def commits_after(self, version: int) -> Iterator[TableCommit]:
        """Yield what the versions after one did, as far as their commit files are there without a gap."""
        while (commit := self.commit(version := version + 1)) is not None:
            yield commit

    def unavailable(self, error: Exception) -> SourceUnavailable:
        """Return the error of files that cannot be reached."""
        return SourceUnavailable(
            f'Delta table "{self.relation}" cannot be read now',
            code="HW-377",
            detail=f"{type(error).__name__}: {error}",
            hint="it is tried again by itself; check that the folder is mounted and may be read",
        )

    def deleted(self, detail: str, keeps: str) -> SourceLost:
        """Return the error of a table that has deleted what we need, and the property that keeps it for longer."""
        source = self.relation.source
        return SourceLost(
            f'Delta table "{self.relation}" has deleted what we still need',
            code="HW-379",
            detail=detail,
            hint=f"let the owner run ALTER TABLE … SET TBLPROPERTIES (delta.{keeps} = 'interval 7 days'); "
            f"`headwater teardown --source {source}` and `headwater run` read this source again",
        )

    def _commit_path(self, version: int) -> str:
        return f"{self.path}/{LOG}/{version:020}.json"


def position_at(
    table: LakeTable, table_id: str, version: int, content: bytes | None = None, *, proof: bytes | None = None
) -> Position:
    """Return the position after a version. Its commit file is read unless it or its proof is given."""
    if proof is None:
        said = table.commit_bytes(version) if content is None else content
        proof = b"" if said is None else proof_of(said)
    return Position(
        source=table.relation.source,
        log=table.log,
        history=table_id,
        offset=version,
        notation=NOTATION,
        proof=proof,
    )
