"""`query --format … --output FILE`: what other programs read is what the view shows, and a file is never half of it."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from served import Served
from typer.testing import CliRunner
from written_project import TICKS, state_at

from headwater.cli.app import app
from headwater.cli.render.row_form import RowForm, write_tables
from headwater.errors import NotReadable


def asked(written: Served, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--project", str(written.project.project.folder)])


def bag(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter((row["id"], row["city"], Decimal(str(row["price"]))) for row in rows)


@pytest.mark.parametrize("name", ["sold.csv", "sold.json", "sold.jsonl", "sold.parquet", "sold.arrow"])
def test_other_programs_read_what_the_view_shows(written: Served, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    done = asked(written, "query", "SELECT * FROM sold", "--at", "17", "--output", str(file))
    assert done.exit_code == 0, done.output
    readers = {
        "sold.csv": lambda: duckdb.read_csv(str(file)).to_arrow_table().to_pylist(),
        "sold.json": lambda: duckdb.read_json(str(file)).to_arrow_table().to_pylist(),
        "sold.jsonl": lambda: pl.read_ndjson(file).to_dicts(),
        "sold.parquet": lambda: duckdb.read_parquet(str(file)).to_arrow_table().to_pylist(),
        "sold.arrow": lambda: pl.read_ipc(file).to_dicts(),
    }
    assert bag(readers[name]()) == state_at(17)["sold"]
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_into_a_pipe(written: Served) -> None:
    done = asked(written, "query", "SELECT * FROM sold", "--format", "arrow", "--limit", "5")
    assert pa.ipc.open_stream(io.BytesIO(done.stdout_bytes)).read_all().num_rows == 5
    done = asked(written, "query", "SELECT * FROM sold", "--format", "json")
    assert bag(json.loads(done.stdout)) == state_at(TICKS)["sold"]
    done = asked(written, "query", "SELECT * FROM sold WHERE id = -1", "--format", "json")
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("--output", "rows.txt"),
        ("--output", "rows.csv", "--format", "table"),
        ("--format", "csv", "--json"),
    ],
)
def test_what_cannot_be_meant_is_refused(written: Served, arguments: tuple[str, ...]) -> None:
    done = asked(written, "query", "SELECT * FROM sold", *arguments)
    assert done.exit_code != 0
    assert not Path(arguments[1]).exists()


def test_changes_go_into_files_too(written: Served, tmp_path: Path) -> None:
    file = tmp_path / "changes.parquet"
    assert asked(written, "changes", "totals", "--from", "20", "-o", str(file)).exit_code == 0
    assert pq.read_table(file).equals(written.project.changes("totals", 20))


def test_python_iterates_over_changes(written: Served) -> None:
    [found] = written.project.view("totals").changes(3, 29)
    assert found.equals(written.project.changes("totals", 3, 29))


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("old")

    def breaks() -> Iterator[pa.Table]:
        yield pa.table({"a": [1]})
        assert file.read_text() == "old"
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_tables(breaks(), RowForm.CSV, file)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_every_type_has_a_form(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "list": pa.array([[1, 2], None], pa.list_(pa.int64())),
            "fields": pa.array([{"a": Decimal("1.10")}, None], pa.struct([("a", pa.decimal128(9, 2))])),
            "bytes": pa.array([b"\x00\xff", None], pa.binary()),
            "text": ['a "quoted", text\nof two lines', None],
            "nothing": pa.nulls(2),
        }
    )
    file = tmp_path / "rows.csv"
    assert write_tables([rows], RowForm.CSV, file) == 2
    first, second = pl.read_csv(file, infer_schema=False).to_dicts()
    assert first["list"] == "[1, 2]"
    assert json.loads(first["fields"]) == {"a": "1.10"}
    assert first["bytes"] == "00ff"
    assert first["text"] == 'a "quoted", text\nof two lines'
    assert set(second.values()) == {None}
    for form in (RowForm.JSONL, RowForm.PARQUET, RowForm.ARROW, RowForm.JSON):
        assert write_tables([rows, rows], form, tmp_path / f"rows.{form.value}") == 4


def test_two_columns_of_one_name_are_not_lost(tmp_path: Path) -> None:
    rows = pa.table([[1], [2]], names=["a", "a"])
    for form in (RowForm.JSONL, RowForm.PARQUET, RowForm.JSON):
        with pytest.raises(NotReadable, match='two columns are called "a"'):
            write_tables([rows], form, tmp_path / "rows")
    assert write_tables([rows], RowForm.CSV, tmp_path / "rows") == 1
