"""What can be answered or refused without Spark, is: at once, and without importing it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

import headwater
from headwater.api.session import Headwater
from headwater.deltas.on_arrow import ArrowBag
from headwater.errors import HeadwaterError
from headwater.model.position import Position, Tick
from headwater.model.transaction import Capture, Transaction
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.commit_record import CommitKind, CommitRecord
from headwater.warehouse.folders import view_folder
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose view `sold` has two rows at tick 0 and three at tick 1."""
    (tmp_path / "views").mkdir()
    (tmp_path / "headwater.toml").write_text('[project]\nname = "p"\n[sources.shop]\nurl = "${SHOP_URL}"\n')
    (tmp_path / "views" / "sold.sql").write_text("SELECT s.no AS no FROM shop.sales AS s")
    warehouse = Warehouse.create(str(tmp_path / "warehouse"))
    epoch = warehouse.commits.take_lease("here:1")
    warehouse.log.take_over(epoch)
    position = Position(source="shop", history="1:1", offset=100)
    one = Transaction(position=position, identity=7, committed_at=datetime(2026, 1, 1, tzinfo=UTC))
    warehouse.log.append([Capture(transactions=(one,), rows={})])
    table = KeptTable.create(
        view_folder(warehouse.path, "sold", 1), warehouse.commits.journal, pa.schema([("no", pa.int64())]), Tick(0)
    )
    table.checkpoint.write(pa.table({"no": [1, 2]}), Tick(0))
    change = table.change(ArrowBag(pa.table({"no": [3], "_tick": [1], "_count": [1]})), Tick(1))
    assert change is not None
    entry = ViewEntry(name="sold", generation=1, sql="…", birth=Tick(0), guarantee="complete", schema=())
    record = CommitRecord(frontiers={"sold": Tick(1)}, positions={"shop": position})
    warehouse.commits.commit(
        CommitKind.CATALOG, Tick(1), record, epoch=epoch, catalog=Catalog(views={"sold": entry}), changes=[change]
    )
    return tmp_path


@pytest.fixture
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Headwater:
    def start(*_: object, **__: object) -> NoReturn:
        raise AssertionError("Spark is not needed for this")

    monkeypatch.setattr("headwater.spark.session.spark_session", start)
    return headwater.open(folder)


def test_plain_reads_are_answered(project: Headwater) -> None:
    assert project.query("SELECT no FROM sold ORDER BY no DESC LIMIT 2").table.to_pydict() == {"no": [3, 2]}
    assert project.query("SELECT count(*) AS n FROM sold", at=0).table.to_pydict() == {"n": [2]}
    assert project.query("SELECT no FROM sold", at="shop:0/64", after="shop:0/64").tick == 1
    assert sorted(project.view("sold").at(0).arrow()["no"].to_pylist()) == [1, 2]
    assert project.status().views[0].row_count == 3
    assert str(project.status().sources[0].last_transaction) == "shop:0/64"


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda project: project.plan(), "HW-110"),
        (lambda project: project.run(until_idle=True), "HW-110"),
        (lambda project: project.query("SELECT * FROM solt"), "HW-416"),
        (lambda project: project.query("SELECT nr FROM sold"), "HW-147"),
        (lambda project: project.query("SET a = b"), "HW-144"),
        (lambda project: project.query("SELECT * FROM text.`/etc/passwd`"), "HW-145"),
        (lambda project: project.sql("SELECT reflect('java.lang.System', 'getenv', 'SHOP_URL')"), "HW-241"),
        (lambda project: project.query("SELECT no + 1 FROM sold", at=2), "HW-415"),
        (lambda project: project.query("SELECT no + 1 FROM sold", at="1999-01-01"), "HW-152"),
        (lambda project: project.query("SELECT no + 1 FROM sold", at="2999-01-01"), "HW-151"),
        (lambda project: project.query("SELECT no + 1 FROM sold", at="shop:0/0"), "HW-150"),
        (lambda project: project.query("SELECT no + 1 FROM sold", at="shop:0/65"), "HW-417"),
        (lambda project: project.query("SELECT no + 1 FROM sold", at=4.5), "HW-120"),
        (lambda project: project.query("SELECT no + 1 FROM sold", at=True), "HW-120"),
        (lambda project: project.query("SELECT no FROM sold", after="nosuch:0/1"), "HW-118"),
        (lambda project: project.query("SELECT no FROM solt", after="shop:0/FF"), "HW-416"),
        (lambda project: project.view("sold").at(True).arrow(), "HW-120"),
        (lambda project: project.view("sold").at("1999-01-01").df(), "HW-152"),
        (lambda project: project.trace("sold", where="reflect('a', 'b') = ''"), "HW-241"),
        (lambda project: project.trace("sold", where="no IN (SELECT 1)"), "HW-146"),
        (lambda project: project.trace("sold", at="2999-01-01"), "HW-151"),
        (lambda project: project.trace("solt"), "HW-114"),
        (lambda project: project.why_not("sold", "no = reflect('a', 'b')"), "HW-241"),
        (lambda project: project.why_not("sold", "no = 1", at=7), "HW-415"),
        (lambda project: project.row_impact("shop.sales", "no = reflect('a', 'b')"), "HW-241"),
        (lambda project: project.impact("shop:0/65"), "HW-417"),
        (lambda project: project.impact("shop:0/1"), "HW-419"),
    ],
)
def test_refusals_come_before_spark_and_at_once(project: Headwater, ask: Callable[[Any], object], code: str) -> None:
    began = time.monotonic()
    with pytest.raises(HeadwaterError) as refused:
        ask(project)
    assert refused.value.code == code
    assert time.monotonic() - began < 50, "it waited for what cannot come"


def test_reading_verbs_import_neither_spark_nor_drivers(folder: Path) -> None:
    program = (
        "import sys; from headwater.cli.entry import main\n"
        "try: main()\n"
        "except SystemExit as done: print(done.code, *({'pyspark', 'psycopg', 'matplotlib'} & set(sys.modules)))"
    )
    for verb in (["status"], ["history", "sold"], ["query", "SELECT no FROM sold WHERE no < 3 ORDER BY no"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *verb, "-p", str(folder)], capture_output=True, text=True, check=True
        )
        assert (done.stdout.splitlines()[-1], done.stderr) == ("0", "")
