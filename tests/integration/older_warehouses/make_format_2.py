"""Make the fixture of format 2: play the story's first batches by the last version that wrote this format.

    git worktree add --detach /tmp/format2 88de3d6^
    PYTHONPATH=/tmp/format2/src .venv/bin/python tests/integration/older_warehouses/make_format_2.py

That version knows no sources but PostgreSQL, so that a source in memory for its protocol is here.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
import time
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import groupby
from pathlib import Path

import pyarrow as pa
from headwater.guarantee import Guarantee
from headwater.keeping import Continuous, Maintenance
from headwater.position import Position
from headwater.project import DEFAULT_ALGORITHM, Project, Reading, RetainTicks, SourceDeclaration, ViewFile
from headwater.relation import COUNT, Column, Relation, RelationName
from headwater.runtime import understand
from headwater.runtime.spark import spark_session
from headwater.runtime.start import start_maintainer
from headwater.sources.source import Chunk, Inspection
from headwater.transaction import ORDINAL, Capture, SeenTransactions, Transaction

HERE = Path(__file__).parent
STORY = json.loads((HERE / "story.json").read_text(encoding="utf-8"))
BATCHES = 2
VIEWS = ("joined", "grouped", "probed")
"""The others are computed in other steps since: `run` would ask before it builds them again."""
RELATIONS = {
    "a.r": ((), {"x": "int", "y": "int", "s": "string", "d": "date"}),
    "a.t": (("id",), {"id": "int", "x": "int", "m": "decimal(8,2)", "b": "boolean"}),
    "b.u": (("id",), {"id": "int", "y": "int", "s": "string"}),
    "b.v": ((), {"y": "int", "m": "decimal(8,2)", "d": "date"}),
}
READ = {
    "int": int,
    "string": str,
    "date": date.fromisoformat,
    "decimal(8,2)": Decimal,
    "boolean": lambda text: text == "True",
}


def relation_of(text):
    source, name = text.split(".")
    key, columns = RELATIONS[text]
    return Relation(
        name=RelationName(source=source, name=name),
        columns=tuple(Column(name=column, type=kind, native=kind) for column, kind in columns.items()),
        key=key,
        not_null=frozenset(key),
    )


def changes_of(told):
    """Return the changes of a transaction: by relation, pairs of a row and a count."""
    return {
        text: [
            (
                tuple(
                    None if value is None else READ[kind](value)
                    for value, kind in zip(values, RELATIONS[text][1].values(), strict=True)
                ),
                count,
            )
            for count, *values in rows
        ]
        for text, rows in told["changes"].items()
    }


class MemorySource:
    """A source in memory: a transaction's number is its position and its identity."""

    def __init__(self, name):
        self.name = name
        self.transactions = []

    def position(self, number):
        return Position(source=self.name, history="1", offset=number)

    def inspect(self, names):
        relations = tuple(relation_of(f"{name.source}.{name.name}") for name in names)
        return Inspection(relations=relations, owner_sql=(), may_run_owner_sql=True, is_followed=True)

    def prepare(self, relations):
        return self.position(0)

    def follow(self, relations, after):
        return MemoryFollower(self, relations, 0 if after is None else after.offset)

    def snapshot(self, *, bootstrap=False):
        return MemorySnapshot(self)


class MemoryFollower:
    def __init__(self, source, relations, after):
        self.source, self.relations, self.after = source, relations, after

    def next_capture(self, timeout_seconds):
        found = self.source.transactions[self.after :]
        if not found:
            time.sleep(min(timeout_seconds, 0.01))
            return None
        first = self.after + 1
        self.after += len(found)
        transactions = tuple(
            Transaction(
                position=self.source.position(number), identity=number, committed_at=datetime.fromtimestamp(number, UTC)
            )
            for number in range(first, self.after + 1)
        )
        rows = {}
        for relation in self.relations:
            stamped = [
                (*row, ordinal, 1 if count > 0 else -1)
                for ordinal, changes in enumerate(found)
                for row, count in changes.get(str(relation.name), ())
                for _ in range(abs(count))
            ]
            schema = pa.schema([*relation.arrow_schema(), (ORDINAL, pa.int32()), (COUNT, pa.int64())])
            if stamped:
                rows[relation.name] = table_of(stamped, schema)
        return Capture(transactions=transactions, rows=rows)

    def followed_to(self):
        return self.source.position(self.after)

    def log_end(self):
        return self.source.position(len(self.source.transactions))

    def acknowledge(self, position):
        pass

    def hasten(self, position):
        pass

    def close(self):
        pass


class MemorySnapshot:
    server_run = "1"

    def __init__(self, source):
        self.source, self.last = source, len(source.transactions)
        self.seen = SeenTransactions(xmin=self.last + 1, xmax=self.last + 1, running=frozenset())
        self.position = source.position(self.last)

    def rows(self, relation):
        held = Counter()
        for changes in self.source.transactions[: self.last]:
            for row, count in changes.get(str(relation.name), ()):
                held[row] += count
        return table_of(list(held.elements()), pa.schema(relation.arrow_schema()))

    def probe(self, relation, wanted, columns, keys):
        sought = {tuple(key.values()) for key in keys.to_pylist()}
        table = self.rows(relation)
        kept = [tuple(row[name] for name in columns) in sought for row in table.to_pylist()]
        return table.filter(pa.array(kept, pa.bool_())).select(list(wanted))

    def chunks(self, relation, rows_per_chunk):
        return (Chunk(number=0),)

    def read(self, relation, wanted, chunk):
        yield self.rows(relation).select(list(wanted))

    def is_valid(self):
        return True

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


def table_of(rows, schema):
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    return pa.table([pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)], schema)


def project_in(folder):
    return Project(
        name="prove",
        file=folder / "headwater.toml",
        warehouse=folder / "warehouse",
        retention=RetainTicks(count=1_000_000),
        batch_ticks=1_000,
        batch_interval_seconds=0.0,
        default_reading=Reading.REPLICA,
        readings={},
        sources=tuple(
            SourceDeclaration(
                name=name, url_text="", statement_timeout_seconds=60, probe_connections=4, declared_in="make"
            )
            for name in ("a", "b")
        ),
        views=tuple(
            ViewFile(
                name=view["name"],
                sql=view["sql"],
                file=folder / f"{view['name']}.sql",
                guarantee=None if view["guarantee"] is None else Guarantee(view["guarantee"]),
                algorithm=DEFAULT_ALGORITHM,
                maintenance=None if view["maintenance"] is None else Maintenance(view["maintenance"]),
                refresh=Continuous(),
            )
            for view in STORY["views"]
            if view["name"] in VIEWS
        ),
    )


def settle(maintainer):
    while maintainer.step() or maintainer._bootstrap is not None:
        maintainer.acceptor.wait_for_news(0.005)


def main():
    sources = {name: MemorySource(name) for name in ("a", "b")}
    understand.connect_sources = lambda project: sources
    for told in STORY["before"]:
        sources[told["source"]].transactions.append(changes_of(told))
    folder = Path(tempfile.mkdtemp())
    project = project_in(folder)
    with spark_session() as spark:
        maintainer = start_maintainer(spark, understand.understand(project, spark), lambda event: None)
        maintainer.begin()
        settle(maintainer)
        ahead = 0
        for count in STORY["cuts"][:BATCHES]:
            for source, group in groupby(STORY["after"][ahead : ahead + count], key=lambda told: told["source"]):
                sources[source].transactions += [changes_of(told) for told in group]
                maintainer.acceptor.wait_for(sources[source].position(len(sources[source].transactions)), 60)
            ahead += count
            settle(maintainer)
        maintainer.close()
        maintainer.release()
    with tarfile.open(HERE / "format_2.tar.gz", "w:gz") as packed:
        packed.add(folder / "warehouse", "warehouse")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
