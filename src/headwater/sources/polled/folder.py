"""A folder of Parquet and CSV files: a relation is a file, or a folder of files with the same columns.

| `drop.sales` is | what |
|---|---|
| `sales.parquet` or `sales.csv` | that file |
| `sales/` | every `.parquet` or `.csv` file in it, at any depth; those whose names begin with "." or "_" are left out |

Columns of CSV files are texts, as they are written: a view casts what it needs. An empty field is NULL, `""` is an
empty text. A folder knows no transactions: if a file changes while all are read, the poll is given up and tried again,
so that a poll never mixes two states of one file. Programs that replace several files should rename them into place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from headwater.errors import HeadwaterError, InvalidProject, SourceRefused, SourceUnavailable
from headwater.model.relation import DEFAULT_SCHEMA, Column, Relation, RelationName
from headwater.sources.net_changes import one_nan
from headwater.sources.polled.place import BATCH_ROWS
from headwater.sources.source import Inspection, missing_relation

_ENDINGS = (".parquet", ".csv")
Signature: TypeAlias = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """See `headwater.sources.polled.place.Place`."""

    source: str
    path: Path
    default_schema: str = "."

    @classmethod
    def at(cls, url: str, source: str) -> FolderPlace:
        """Return the folder that a URL names: `files:/srv/drop`."""
        path = unquote(url.partition(":")[2])
        if path.startswith("///"):
            path = path[2:]
        if not path.startswith("/") or path.startswith("//"):
            raise InvalidProject(
                f'the url of source "{source}" names no folder of this machine',
                code="HW-357",
                detail="a relative path would depend on where the command is run",
                hint="write the whole path: files:/srv/drop",
            )
        return cls(source, Path(path))

    def files_of(self, name: RelationName) -> list[Path]:
        """Return the files of a relation, in order."""
        if name.schema != DEFAULT_SCHEMA:
            return []
        single = [file for ending in _ENDINGS if (file := self.path / f"{name.name}{ending}").is_file()]
        folder = self.path / name.name
        inside = (file for file in sorted(folder.rglob("*")) if folder.is_dir() and file.suffix in _ENDINGS)
        return single + [
            file
            for file in inside
            if file.is_file() and not any(part[0] in "._" for part in file.relative_to(folder).parts)
        ]

    def describe(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations by the schemas of their files."""
        if not self.path.is_dir():
            raise SourceUnavailable(
                f'the folder of source "{self.source}" is not there',
                code="HW-358",
                detail=f'"{self.path}" is no folder',
                hint="it is tried again by itself; check that it is mounted and may be read",
            )
        relations: list[Relation] = []
        refusals: list[HeadwaterError] = []
        for name in names:
            files = self.files_of(name)
            try:
                if not files:
                    raise missing_relation(name, f'"{self.path}" has neither {name.name}.parquet, .csv, nor such files')
                relations.append(_relation(name, files))
            except HeadwaterError as refusal:
                refusals.append(refusal)
        return Inspection(
            relations=tuple(relations),
            owner_sql=(),
            may_run_owner_sql=True,
            refusals=tuple(refusals),
            warnings=(self._warning,),
        )

    @property
    def _warning(self) -> str:
        return (
            f'source "{self.source}" is a folder of files, which knows no transactions: a poll that falls between the '
            "writing of two files sees one and not the other"
        )

    @contextmanager
    def moment(self) -> Iterator[FolderMoment]:
        """Note how the files are now."""
        yield FolderMoment(self)


@dataclass(frozen=True, slots=True)
class FolderMoment:
    """The files of relations, each as it was when it was first read."""

    place: FolderPlace
    _read: dict[RelationName, Signature] = field(default_factory=dict)

    def describe(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations by the schemas of their files, and note how the files are now."""
        for name in names:
            self._read[name] = _signature(self.place.files_of(name))
        return self.place.describe(names)

    def rows(self, relation: Relation) -> Iterator[pa.Table]:
        """Yield the rows of a relation's files."""
        files = self.place.files_of(relation.name)
        if _signature(files) != self._read.setdefault(relation.name, _signature(files)):
            raise self._changed(relation.name, "it changed while it was read")
        try:
            for file in files:
                for rows in _rows(file):
                    yield _typed(rows, relation)
        except (OSError, pa.ArrowInvalid) as error:
            raise self._changed(relation.name, f"{type(error).__name__}: {error}") from error

    def require_same(self) -> None:
        """Refuse what was read if any of its files has changed meanwhile."""
        for name, signature in self._read.items():
            if _signature(self.place.files_of(name)) != signature:
                raise self._changed(name, "it changed while it was read")

    def _changed(self, name: RelationName, detail: str) -> SourceUnavailable:
        return SourceUnavailable(
            f'files of "{name}" cannot be read now',
            code="HW-359",
            detail=detail,
            hint="it is tried again by itself; write files under another name and rename them into place",
        )


def _signature(files: Sequence[Path]) -> Signature:
    found = []
    for file in files:
        try:
            known = file.stat()
        except FileNotFoundError:
            continue
        found.append((str(file), known.st_size, known.st_mtime_ns, known.st_ino))
    return tuple(found)


def _rows(file: Path) -> Iterator[pa.Table]:
    if file.suffix == ".csv":
        options = pacsv.ConvertOptions(
            column_types=dict.fromkeys(_csv_names(file), pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        )
        parse = pacsv.ParseOptions(newlines_in_values=True)
        with pacsv.open_csv(file, convert_options=options, parse_options=parse) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])
    else:
        with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as parquet:
            for batch in parquet.iter_batches(BATCH_ROWS):
                yield pa.Table.from_batches([batch])


def _csv_names(file: Path) -> list[str]:
    options = pacsv.ReadOptions(block_size=1 << 20)
    with pacsv.open_csv(file, read_options=options) as reader:
        return list(reader.schema.names)


def _typed(rows: pa.Table, relation: Relation) -> pa.Table:
    schema = relation.arrow_schema()
    return pa.Table.from_arrays([one_nan(rows[one.name].cast(one.type)) for one in schema], schema=schema)


def _relation(name: RelationName, files: Sequence[Path]) -> Relation:
    """Return a relation as its files describe it. All of them have to describe it alike."""
    described: tuple[tuple[str, str | None, str], ...] | None = None
    for file in files:
        found = _columns(file)
        if described is not None and found != described:
            raise SourceRefused(
                f'the files of "{name}" do not have the same columns',
                code="HW-360",
                detail=f"{files[0].name}: {_listed(described)}; {file.name}: {_listed(found)}",
                hint="write them with the same columns, in the same order and of the same types",
            )
        described = found
        names = [one for one, _, _ in found]
        if twice := sorted({one for one in names if names.count(one) > 1}):
            raise SourceRefused(
                f'a file of "{name}" has several columns of one name',
                code="HW-365",
                detail=f"{file.name}: {', '.join(twice)}",
                hint="write it with another name for each column",
            )
    held = described or ()
    return Relation(
        name=name,
        columns=tuple(Column(name=one, type=kind, native=native) for one, kind, native in held if kind is not None),
        unusable=tuple((one, native) for one, kind, native in held if kind is None),
    )


def _columns(file: Path) -> tuple[tuple[str, str | None, str], ...]:
    try:
        if file.suffix == ".csv":
            return tuple((name, "string", "text of a CSV file") for name in _csv_names(file))
        schema = pq.read_schema(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise SourceUnavailable(
            f'"{file.name}" cannot be read now',
            code="HW-364",
            detail=f"{type(error).__name__}: {error}",
            hint="it is tried again by itself; write files under another name and rename them into place",
        ) from error
    return tuple((one.name, _spark_type(one.type), str(one.type)) for one in schema)


def _listed(columns: Sequence[tuple[str, str | None, str]]) -> str:
    return ", ".join(f"{name} {native}" for name, _, native in columns)


def _spark_type(kind: pa.DataType) -> str | None:
    """Return the Spark type of an Arrow type, or None if it cannot be held."""
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})" if 0 <= kind.scale <= kind.precision else None
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return next((name for name, kinds in _TYPES.items() if kind in kinds), None)


_TYPES = {
    "boolean": (pa.bool_(),),
    "tinyint": (pa.int8(),),
    "smallint": (pa.int16(), pa.uint8()),
    "int": (pa.int32(), pa.uint16()),
    "bigint": (pa.int64(), pa.uint32()),
    "float": (pa.float32(),),
    "double": (pa.float64(),),
    "string": (pa.string(), pa.large_string(), pa.string_view()),
    "binary": (pa.binary(), pa.large_binary(), pa.binary_view()),
    "date": (pa.date32(),),
}
