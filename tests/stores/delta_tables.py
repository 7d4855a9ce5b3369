"""Delta tables as another program writes them: data files and commit files, by the protocol, with nothing of ours."""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

_NATIVE = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
Row = tuple[Any, ...]


def arrow(kind: str) -> pa.DataType:
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
    return pa.decimal128(int(match[1]), int(match[2])) if match else _ARROW[kind]


@dataclass
class DeltaTableWriter:
    """One table. Rows are removed by writing their file again without them, as DELETE does."""

    path: Path
    columns: tuple[tuple[str, str], ...]
    partition: tuple[str, ...] = ()
    has_feed: bool = False
    table_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    configuration: dict[str, str] = field(default_factory=dict)
    version: int = -1
    files: dict[str, Counter[Row]] = field(default_factory=dict)
    """The rows of each data file of the newest version."""
    told: list[Counter[Row]] = field(default_factory=list)
    """The net change of each version, from the first on."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def create(self) -> DeltaTableWriter:
        (self.path / "_delta_log").mkdir(parents=True)
        self.commit([self.protocol(), self.metadata()])
        return self

    def protocol(self) -> dict[str, Any]:
        if any(kind == "timestamp_ntz" for _, kind in self.columns):
            said = {"minReaderVersion": 3, "minWriterVersion": 7}
            features = ["timestampNtz"]
            return {"protocol": {**said, "readerFeatures": features, "writerFeatures": [*features, "changeDataFeed"]}}
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}

    def metadata(self) -> dict[str, Any]:
        fields = [
            {"name": name, "type": _NATIVE.get(kind, kind), "nullable": True, "metadata": {}}
            for name, kind in self.columns
        ]
        feed = {"delta.enableChangeDataFeed": "true"} if self.has_feed else {}
        return {
            "metaData": {
                "id": self.table_id,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": list(self.partition),
                "configuration": {**feed, **self.configuration},
                "createdTime": 0,
            }
        }

    def commit(self, actions: Sequence[Mapping[str, Any]], changes: Mapping[Row, int] | None = None) -> int:
        """Write a version. Without `changes` it is compared with the one before."""
        if changes is None:
            now = self.rows()
            changes = Counter(now)
            changes.subtract(self.state())
        self.told.append(Counter(changes))
        self.version += 1
        text = "\n".join(json.dumps(one) for one in ({"commitInfo": {"timestamp": int(time.time() * 1000)}}, *actions))
        log = self.path / "_delta_log"
        temporary = log / f".{self.version}.tmp"
        temporary.write_text(text + "\n")
        temporary.rename(log / f"{self.version:020}.json")
        return self.version

    def rows(self) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for rows in self.files.values():
            found.update(rows)
        return found

    def state(self, version: int | None = None) -> Counter[Row]:
        """Return the rows of the table as of a version."""
        found: Counter[Row] = Counter()
        for changes in self.told[: None if version is None else version + 1]:
            found.update(changes)
        return +found

    def apply(self, changes: Mapping[Row, int]) -> int:
        """Commit changes: rows come in new files, and rows go by writing again the files that have them."""
        with self.lock:
            gone = Counter({row: -n for row, n in changes.items() if n < 0})
            actions: list[Any] = []
            rewritten: Counter[Row] = Counter()
            for path, rows in [*self.files.items()] if gone else ():
                taken = rows & gone
                if taken:
                    gone -= taken
                    rewritten += rows - taken
                    del self.files[path]
                    actions.append(self.remove(path))
            assert not gone, f"not there: {gone}"
            come = Counter({row: n for row, n in changes.items() if n > 0})
            actions += self.add(come + rewritten)
            if self.has_feed and any(n < 0 for n in changes.values()):
                actions += self.change_files(changes)
            return self.commit(actions, changes)

    def overwrite(self, rows: Counter[Row]) -> int:
        with self.lock:
            actions: list[Any] = [self.remove(path) for path in self.files]
            self.files.clear()
            actions += self.add(rows)
            return self.commit(actions)

    def optimize(self) -> int:
        """Put all rows into new files, one for each partition. No row changes."""
        with self.lock:
            rows = self.rows()
            actions: list[Any] = [self.remove(path, data_change=False) for path in self.files]
            self.files.clear()
            actions += self.add(rows, data_change=False)
            return self.commit(actions)

    def vacuum(self) -> None:
        """Delete the data files that the newest version does not need."""
        for file in self.path.rglob("*.parquet"):
            if quote(file.relative_to(self.path).as_posix()) not in self.files:
                file.unlink()

    def remove(self, path: str, *, data_change: bool = True) -> dict[str, Any]:
        return {"remove": {"path": path, "deletionTimestamp": 0, "dataChange": data_change}}

    def add(self, rows: Counter[Row], *, data_change: bool = True) -> list[dict[str, Any]]:
        actions = []
        for values, part in self.parts(rows):
            name = self.place(values, "part")
            held = [row for row, n in part.items() for _ in range(n)]
            size = self.write(name, held)
            path = quote(name)
            self.files[path] = part
            said = {"path": path, "partitionValues": values, "size": size, "modificationTime": 0}
            actions.append({"add": {**said, "dataChange": data_change, "stats": json.dumps(self.statistics(held))}})
        return actions

    def change_files(self, changes: Mapping[Row, int]) -> list[dict[str, Any]]:
        actions = []
        for values, part in self.parts(changes):
            name = self.place(values, "cdc").replace("cdc", "_change_data/cdc", 1)
            held = [row for row, n in part.items() for _ in range(abs(n))]
            kinds = ["insert" if n > 0 else "delete" for n in part.values() for _ in range(abs(n))]
            size = self.write(name, held, kinds)
            actions.append({"cdc": {"path": quote(name), "partitionValues": values, "size": size, "dataChange": False}})
        return actions

    def parts(self, rows: Mapping[Row, int]) -> Iterable[tuple[dict[str, str | None], Counter[Row]]]:
        places = [[name for name, _ in self.columns].index(name) for name in self.partition]
        found: dict[Row, Counter[Row]] = {}
        for row, n in rows.items():
            found.setdefault(tuple(row[place] for place in places), Counter())[row] = n
        for values, part in found.items():
            texts = (None if value is None else str(value) for value in values)
            yield dict(zip(self.partition, texts, strict=True)), part

    def place(self, values: Mapping[str, str | None], kind: str) -> str:
        folders = [f"{name}={quote(value or '__HIVE_DEFAULT_PARTITION__', safe='')}" for name, value in values.items()]
        return "/".join([*folders, f"{kind}-{uuid.uuid4()}.parquet"])

    def write(self, name: str, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> int:
        held = [(place, one) for place, one in enumerate(self.columns) if one[0] not in self.partition]
        arrays = [pa.array([row[place] for row in rows], arrow(kind)) for place, (_, kind) in held]
        table = pa.table(arrays, [column for _, (column, _) in held])
        if kinds is not None:
            table = table.append_column("_change_type", pa.array(kinds))
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file)
        return file.stat().st_size

    def statistics(self, rows: Sequence[Row]) -> dict[str, Any]:
        low, high, nulls = {}, {}, {}
        for place, (name, kind) in enumerate(self.columns):
            values = [row[place] for row in rows if row[place] is not None]
            if name not in self.partition:
                nulls[name] = len(rows) - len(values)
                if kind in ("int", "bigint", "string") and values:
                    low[name], high[name] = min(values), max(values)
        return {"numRecords": len(rows), "minValues": low, "maxValues": high, "nullCount": nulls}
