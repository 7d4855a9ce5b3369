"""A published table is the exact state of its view in every version, whatever happens while it is written."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from publishing import publish_at
from typer.testing import CliRunner
from written_project import TICKS, state_at, write_project

import headwater
from headwater.cli.app import app
from headwater.deltas.on_arrow import ArrowBag
from headwater.engine.service.publisher import Publisher
from headwater.errors import NotReadable
from headwater.fail_points import VARIABLE
from headwater.observe.events import Event, PublishFailed, ViewPublished
from headwater.publish import plain_table
from headwater.storage.fenced_table import FencedTable
from headwater.warehouse.kept_table import KeptTable

STEPS = (0, 1, 7, 8, 22, TICKS)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path / "shops")


def rows_of(table: Path | DeltaTable) -> Counter[tuple[Any, ...]]:
    found = table if isinstance(table, DeltaTable) else DeltaTable(str(table))
    return Counter(tuple(row.values()) for row in found.to_pyarrow_table().to_pylist())


def said_by(table: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DeltaTable(str(table)).history(1)[0]["headwater"])
    return found


@pytest.mark.parametrize("view", ["sold", "totals"])
def test_every_version_is_a_state(project: Path, tmp_path: Path, view: str) -> None:
    table = tmp_path / "out"
    for tick in STEPS:
        done = publish_at(str(project), view, str(table), tick)
        assert (done.tick, done.is_whole) == (tick, tick == 0)
    entries = DeltaTable(str(table)).history()
    assert len(entries) == len(STEPS)
    for entry in entries:
        said = json.loads(entry["headwater"])
        assert rows_of(DeltaTable(str(table), version=entry["version"])) == state_at(said["tick"])[view]
    again = publish_at(str(project), view, str(table), TICKS)
    assert (again.rows_added, again.rows_removed, again.version) == (0, 0, len(STEPS) - 1)


def test_each_version_says_the_positions_of_its_tick(project: Path, tmp_path: Path) -> None:
    publish_at(str(project), "sold", str(tmp_path / "out"), 22)
    log = headwater.open(project)._warehouse().log
    expected = {one.position.source: str(one.position) for _, one in log.transactions(None, 0, 22)}  # type: ignore[arg-type]
    assert said_by(tmp_path / "out")["positions"] == expected
    assert len(expected) == 2


def test_other_engines_read_it(project: Path, tmp_path: Path) -> None:
    table = str(tmp_path / "out")
    for tick in (3, TICKS):
        publish_at(str(project), "totals", table, tick)
    expected = state_at(TICKS)["totals"]
    assert Counter(pl.read_delta(table).rows()) == expected
    assert Counter(DeltaTable(table).to_pandas().itertuples(index=False, name=None)) == expected
    extension = pytest.importorskip("duckdb_extension_delta", reason="pip install duckdb-extension-delta")
    [file] = Path(extension.__file__).parent.rglob("*.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        database.execute(f"LOAD '{file}'")
        assert Counter(database.execute(f"SELECT * FROM delta_scan('{table}')").fetchall()) == expected


@pytest.mark.parametrize("point", ["before publish", "after publish"])
@pytest.mark.parametrize("before", [None, 9], ids=["whole", "changes"])
def test_killed_while_publishing(project: Path, tmp_path: Path, point: str, before: int | None) -> None:
    table = tmp_path / "out"
    if before is not None:
        publish_at(str(project), "sold", str(table), before)
    command = [sys.executable, str(Path(__file__).with_name("publishing.py")), str(project), "sold", str(table), "30"]
    done = subprocess.run(command, env={**os.environ, VARIABLE: point}, check=False)
    assert done.returncode == -9
    is_there = FencedTable.exists(str(table))
    assert is_there == (before is not None or point == "after publish")
    if is_there:
        assert rows_of(table) == state_at(said_by(table)["tick"])["sold"]
    publish_at(str(project), "sold", str(table), TICKS)
    assert rows_of(table) == state_at(TICKS)["sold"]


def test_what_is_not_its_own_is_refused(project: Path, tmp_path: Path) -> None:
    table = tmp_path / "out"
    publish_at(str(project), "sold", str(table), 5)
    with pytest.raises(NotReadable, match="not the published table") as refused:
        publish_at(str(project), "totals", str(table), 5)
    assert 'view "sold"' in refused.value.detail
    write_deltalake(str(tmp_path / "theirs"), pa.table({"a": [1]}))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")
    for name in ("theirs", "photos", "shops/warehouse/views/sold"):
        with pytest.raises(NotReadable):
            publish_at(str(project), "totals", str(tmp_path / name), 5)
    assert (tmp_path / "photos" / "cat.jpg").exists()


def test_what_others_wrote_into_it_is_gone_the_next_time(project: Path, tmp_path: Path) -> None:
    table = tmp_path / "out"
    publish_at(str(project), "sold", str(table), 5)
    DeltaTable(str(table)).delete("id = 101")
    assert publish_at(str(project), "sold", str(table), 6).is_whole
    assert rows_of(table) == state_at(6)["sold"]


def test_changes_that_retention_dropped_are_not_needed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "out"
    publish_at(str(project), "sold", str(table), 5)
    warehouse = headwater.open(project)._warehouse()
    kept = warehouse.kept_table("sold")
    rows = [row for row, count in state_at(30)["sold"].items() for _ in range(count)]
    columns = {name: [row[at] for row in rows] for at, name in enumerate(kept.schema.names)}
    kept.checkpoint.write(pa.table(columns, schema=kept.schema), plain_table.Tick(30))
    monkeypatch.setattr(KeptTable, "horizon", lambda _: plain_table.Tick(20))
    assert publish_at(str(project), "sold", str(table), TICKS).is_whole
    assert rows_of(table) == state_at(TICKS)["sold"]


def test_a_view_that_was_built_again_replaces_all_in_one_version(project: Path, tmp_path: Path) -> None:
    table = tmp_path / "out"
    publish_at(str(project), "sold", str(table), TICKS)
    other = tmp_path / "again"
    done = publish_at(str(write_project(other)), "sold", str(table), 12)  # its kept table is another one
    assert (done.is_whole, done.version) == (True, 1)
    assert rows_of(table) == state_at(12)["sold"]


def test_a_view_of_other_columns_replaces_all(tmp_path: Path) -> None:
    path = str(tmp_path / "out")
    for schema in (pa.schema([("a", pa.int64())]), pa.schema([("b", pa.string()), ("c", pa.float64())])):
        file = plain_table.write_rows(path, schema.empty_table())
        plain_table.create_table_with_add_actions(
            path,
            plain_table.Schema.from_arrow(schema),
            [file.add_action(data_change=True)],
            mode="overwrite",
            partition_by=[],
        )
        assert DeltaTable(path).to_pyarrow_table().schema.names == schema.names


def test_random_changes_of_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_table, "_ROWS_PER_FILE", 7)
    schema = pa.schema(
        [
            ("n", pa.int64()),
            ("t", pa.string()),
            ("x", pa.float64()),
            ("l", pa.list_(pa.int64())),
            ("m", pa.decimal128(9, 2)),
        ]
    )
    chance = random.Random(11)

    def row() -> tuple[Any, ...]:
        values = (chance.choice([None, 1, 2, 3]), chance.choice([None, "", "a"]), chance.choice([None, 0.5, "nan"]))
        return (*values, chance.choice([None, (), (1, None)]), chance.choice([None, Decimal("1.10")]))

    def table(rows: list[tuple[Any, ...]]) -> pa.Table:
        columns = [[row[at] for row in rows] for at in range(5)]
        columns[2] = [float(one) if one == "nan" else one for one in columns[2]]
        return pa.table(
            [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema.names
        )

    def held(files: list[str]) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for part in plain_table.read_in_parts(files, schema):
            for n, t, x, values, m in (one.values() for one in part.to_pylist()):
                found[n, t, x if x in {None, 0.5} else "nan", None if values is None else tuple(values), m] += 1
        return found

    path, expected = str(tmp_path / "out"), Counter(row() for _ in range(60))
    first = table(list(expected.elements()))
    parts = [first.slice(at, 5) for at in range(0, 60, 5)]
    files = [f"{path}/{file.path}" for file in plain_table._written(path, schema, parts)]
    assert len(files) > 4
    for _ in range(25):
        gone = Counter(chance.sample(list(expected.elements()), chance.randint(0, min(12, expected.total()))))
        came = Counter(row() for _ in range(chance.randint(0, 8)))
        net = Counter({one: came[one] - gone[one] for one in {*came, *gone}})
        signed = [(one, count) for one, count in net.items() if count]
        rows = table([one for one, _ in signed])
        counted = rows.append_column("_count", pa.array([count for _, count in signed], pa.int64()))
        draft = plain_table._applied(path, schema, files, ArrowBag.of_counted(counted, plain_table.Tick(1)), None)
        assert draft is not None
        removed = {f"{path}/{entry['path']}" for entry in draft.removed}
        files = [*(file for file in files if file not in removed), *(f"{path}/{one.path}" for one in draft.added)]
        expected = Counter({one: count for one in {*expected, *net} if (count := expected[one] + net[one])})
        assert held(files) == expected
    absent = ArrowBag.of_counted(
        table([(9, "z", 0.5, (), None)]).append_column("_count", pa.array([-1])), plain_table.Tick(1)
    )
    assert plain_table._applied(path, schema, files, absent, None) is None


def test_many_changes_are_applied_in_several_commits(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "out"
    publish_at(str(project), "sold", str(table), 0)
    few_changes = KeptTable.few_changes
    monkeypatch.setattr(plain_table, "_ROWS_AT_ONCE", 30)

    def limited(self: KeptTable, after: Any, upto: Any, few: int) -> pa.Table | None:
        found = few_changes(self, after, upto, 1 << 60)
        return None if found is None or found.num_rows > few else found

    monkeypatch.setattr(KeptTable, "few_changes", limited)
    publish_at(str(project), "sold", str(table), TICKS)
    entries = DeltaTable(str(table)).history()
    assert len(entries) > 3
    for entry in entries:
        said = json.loads(entry["headwater"])
        assert rows_of(DeltaTable(str(table), version=entry["version"])) == state_at(said["tick"])["sold"]


def test_tidying_changes_no_row(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_table, "_FILES_TO_MERGE", 3)
    table = tmp_path / "out"
    for tick in range(TICKS + 1):
        assert publish_at(str(project), "sold", str(table), tick).is_whole == (tick == 0)
    assert rows_of(table) == state_at(TICKS)["sold"]
    assert len(DeltaTable(str(table)).file_uris()) < 8


def test_the_verb(project: Path, tmp_path: Path) -> None:
    arguments = ["publish", "sold", "--project", str(project)]
    done = CliRunner().invoke(app, [*arguments, "--to", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert f"at tick {TICKS}: all" in done.stdout
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert json.loads(done.stdout)["tick"] == TICKS
    assert rows_of(project / "warehouse" / "published" / "sold") == state_at(TICKS)["sold"]
    assert CliRunner().invoke(app, ["publish", "nothing", "--project", str(project)]).exit_code == 1


def test_the_maintainer_publishes_what_the_project_says(project: Path, tmp_path: Path) -> None:
    with (project / "headwater.toml").open("a") as file:
        file.write(f'[views.sold]\npublish = true\n[views.totals]\npublish = "{tmp_path}/totals"\n')
        file.write('[settings.upkeep]\npublish_interval = "50 ms"\n')
    (tmp_path / "totals").mkdir()
    (tmp_path / "totals" / "theirs").write_text("")
    heard: list[Event] = []
    publisher = Publisher(headwater.open(project).project, heard.append)
    publisher.start()
    publisher.stop()
    assert rows_of(project / "warehouse" / "published" / "sold") == state_at(TICKS)["sold"]
    assert [one.view for one in heard if isinstance(one, ViewPublished)] == ["sold"]
    assert {one.view for one in heard if isinstance(one, PublishFailed)} == {"totals"}
