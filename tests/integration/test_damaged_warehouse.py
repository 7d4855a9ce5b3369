"""Every kind of file of a warehouse is damaged in every way, and every verb that needs it names it and the way out."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from headwater.api.session import open_project
from headwater.cli.app import app
from headwater.cli.outcome import DONE, REFUSED
from headwater.engine.service.maintainer import Maintainer
from headwater.errors import HeadwaterError
from headwater.model.position import LSN
from headwater.sources.embedded import EmbeddedServer
from headwater.storage.fenced_table import FencedTable
from headwater.warehouse.folders import RESERVED
from headwater.warehouse.lease import read_lease
from headwater.warehouse.mailbox import note_awaited, note_refresh, note_release
from headwater.warehouse.query import Warehouse

VIEW = "SELECT c.city, SUM(s.amount) AS sold FROM shop.sales s JOIN shop.shops c ON s.shop = c.id GROUP BY c.city"
WENT_ON = "nothing was noticed"
GARBAGE = b"\x00garbage{" * 40


@dataclass(frozen=True)
class Shop:
    """A project, and a whole copy of its warehouse that is put back before every damage."""

    folder: Path
    whole: Path

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    def put_back(self) -> None:
        shutil.rmtree(self.warehouse, ignore_errors=True)
        shutil.copytree(self.whole, self.warehouse)

    def say(self, *arguments: str) -> Result:
        if arguments[0] == "impact":
            offset = Warehouse.open(str(self.whole)).log.positions()["shop"].offset
            arguments = (*arguments, f"shop:{LSN.text(offset)}")
        return CliRunner().invoke(app, [*arguments, "-p", str(self.folder)])


VERBS = {
    "status": ["status"],
    "history": ["history", "sold"],
    "query": ["query", "SELECT * FROM sold"],
    "earlier": ["query", "SELECT * FROM sold", "--at", "0"],
    "plan": ["plan"],
    "run": ["run", "--until-idle"],
    "trace": ["trace", "sold"],
    "impact": ["impact"],
}


@pytest.fixture(scope="module")
def shop(
    postgres_server: EmbeddedServer, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    postgres_server.execute("CREATE DATABASE damaged")
    postgres_server.execute(
        "CREATE TABLE shops (id int PRIMARY KEY, city text);"
        "CREATE TABLE sales (no int PRIMARY KEY, shop int, amount int);"
        "INSERT INTO shops SELECT g, 'city ' || g % 3 FROM generate_series(1, 9) g;"
        "INSERT INTO sales SELECT g, 1 + g % 9, g FROM generate_series(1, 50) g",
        database="damaged",
    )
    folder = tmp_path_factory.mktemp("damaged") / "project"
    (folder / "views").mkdir(parents=True)
    (folder / "views" / "sold.sql").write_text(VIEW)
    (folder / "headwater.toml").write_text('[project]\nname = "damaged"\n[sources.shop]\nurl = "${DAMAGED_HW}"\n')
    os.environ["DAMAGED_HW"] = postgres_server.url("damaged")
    project = open_project(folder)
    project.run(until_idle=True)
    postgres_server.execute("UPDATE sales SET amount = amount + 1 WHERE no < 9", database="damaged")
    project.run(until_idle=True)
    made = Shop(folder, folder.parent / "whole")
    path = str(made.warehouse)
    warehouse = Warehouse.open(path)
    warehouse.kept_table("sold").roll_checkpoint(spark, warehouse.frontier("sold"))
    for table in (
        *(made.warehouse / name for name in ("changelog", "journal")),
        *made.warehouse.glob("replicas/*/*/checkpoint"),
    ):
        FencedTable.open(str(table)).clean_log()  # leaves a checkpoint of the table's own log
    note_refresh(path, "sold", warehouse.frontier("sold"))
    note_release(path, "transfer 7")
    note_awaited(path, warehouse.log.positions())
    shutil.copytree(made.warehouse, made.whole)
    yield made
    made.put_back()
    project.teardown()


def kinds(whole: Path) -> dict[str, list[Path]]:
    """Return the files of a warehouse by what they are for."""
    found: dict[str, list[Path]] = {}
    for file in sorted(file.relative_to(whole) for file in whole.rglob("*") if file.is_file()):
        parts = file.parts
        table = re.sub(r"(views|segments|replicas)/[^/]+/[0-9]+/", r"\1/", str(file.parent)).split("/_delta_log")[0]
        if file.suffix == ".crc" or file.name in ("_SUCCESS", RESERVED) or file.name.startswith("."):
            continue
        if "_delta_log" in parts:
            kind = "log" if file.suffix == ".json" else "hint" if file.name == "_last_checkpoint" else "log checkpoint"
        else:
            kind = "data" if file.suffix == ".parquet" else file.name if len(parts) == 1 else "note"
            table = re.sub(r"/data-[^/]+$", "", table)
        found.setdefault(f"{table}: {kind}", []).append(file)
    return found


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "garbage": lambda file: file.write_bytes(GARBAGE),
    "truncated": truncated,
    "empty": lambda file: file.write_bytes(b""),
    "missing": Path.unlink,
}
HARMLESS = {
    (": hint", "garbage"),  # Delta looks for itself
    (": hint", "truncated"),
    (": hint", "empty"),
    (": hint", "missing"),
    ("replicas/checkpoint: log", "garbage"),  # all that is in it is in the log's checkpoint too
    ("replicas/checkpoint: log", "truncated"),
    ("replicas/checkpoint: log", "missing"),
    ("changelog: log", "missing"),
    ("journal: log", "missing"),
    (": status.json", "missing"),
    (": lease.json", "missing"),
    (": project.json", "missing"),
    ("awaited: note", "garbage"),  # whoever waits writes it again
    ("awaited: note", "truncated"),
    ("awaited: note", "empty"),
    (": note", "missing"),
    *((f"{folder}: note", damage) for folder in ("refreshes", "released") for damage in DAMAGES),  # no view needs them
}


def verbs_for(kind: str) -> list[str]:
    """Return the verbs that may need a file; the slow ones only where they are the ones to notice."""
    if kind.endswith(": data") and kind.startswith("views"):
        return ["status", "history", "query", "earlier"]
    if kind.endswith(": note"):
        return ["status", "history", "run"]
    if kind.startswith(("segments", "replicas")):
        return ["status", "history", "run", "trace"]
    return ["status", "history", "query", "plan", "impact", "run"]


def complaints(shop: Shop, kind: str, damage: str) -> list[str]:
    """Return what is wrong with how a damage is told: silence, a crash, or an error that helps nobody."""
    shop.put_back()
    files = [shop.warehouse / file for file in kinds(shop.whole)[kind]]
    for file in files:
        DAMAGES[damage](file)
    wrong, noticed = [], False
    for verb in verbs_for(kind):
        if noticed and damage != "garbage":
            break  # the others are told of it alike
        result = shop.say(*VERBS[verb])
        if result.exit_code == DONE or WENT_ON in result.stderr:
            continue
        noticed = True
        said = result.stderr
        named = any(str(file) in said for file in files) or any(f'"{file.parent}"' in said for file in files)
        named = named or any(f'"{file.parent.parent}"' in said for file in files if file.parent.name == "_delta_log")
        is_told = result.exit_code == REFUSED and re.search(r"\[HW-(?!999)\d+\]", said) and "\n  do:  " in said
        if not (is_told and (named or "HW-124" in said) and "Traceback" not in said):
            wrong.append(f"{kind}, {damage}, {verb}: exit {result.exit_code}\n{said or result.exception!r}")
    is_harmless = any(kind.endswith(ending) and damage == how for ending, how in HARMLESS)
    return wrong if noticed or is_harmless else [*wrong, f"{kind}, {damage}: nobody noticed"]


def test_whatever_is_damaged_is_named_with_the_way_out(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(_: Maintainer) -> None:
        """Begin nothing: what a run has to read it has read by now, and the source must not move."""
        raise HeadwaterError(WENT_ON, code="HW-000")

    monkeypatch.setattr(Maintainer, "begin", begin)
    found = kinds(shop.whole)
    del found["sources: note"]  # read once the run has begun: see the tests of `SourceMemory`
    assert {"changelog: log", "changelog: log checkpoint", "journal: data", ".: lease.json", ".: status.json"} <= set(
        found
    )
    assert {"views/checkpoint: data", "views/changes: data", "replicas/checkpoint: data", "refreshes: note"} <= set(
        found
    )
    wrong = [one for kind in found for damage in DAMAGES for one in complaints(shop, kind, damage)]
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong)


def test_a_lease_that_says_nothing_is_not_taken_for_nobodys(shop: Shop) -> None:
    shop.put_back()
    (shop.warehouse / "lease.json").write_text("")
    result = shop.say("run", "--until-idle")
    assert (result.exit_code, "HW-432" in result.stderr) == (REFUSED, True)
    assert f'remove "{shop.warehouse}/lease.json"' in result.stderr
    assert shop.say("query", "SELECT * FROM sold").exit_code == DONE, "reading needs no lease"
    (shop.warehouse / "lease.json").unlink()
    assert shop.say("plan").exit_code == DONE


def test_a_run_that_is_refused_leaves_no_lease(shop: Shop) -> None:
    shop.put_back()
    for file in (shop.warehouse / "replicas").rglob("*.parquet"):
        file.write_bytes(GARBAGE)
    assert shop.say("run", "--until-idle").exit_code == REFUSED
    lease = read_lease(str(shop.warehouse))
    assert lease is not None
    assert lease.released


def test_values_that_sql_cannot_take(shop: Shop) -> None:
    shop.put_back()
    result = shop.say("query", "SELECT 1 / (sold - sold) FROM sold")
    assert (result.exit_code, "HW-148" in result.stderr) == (REFUSED, True), result.stderr
    assert shop.say("query", "SELECT 1/0").exit_code == REFUSED
    (shop.folder / "views" / "broken.sql").write_text("SELECT s.no, 1/0 AS x FROM shop.sales s")
    try:
        result = shop.say("run", "--until-idle")
    finally:
        (shop.folder / "views" / "broken.sql").unlink()
    assert result.exit_code == REFUSED, result.stderr
    assert re.search(r"\[HW-(?!999)\d+\]", result.stderr), result.stderr
