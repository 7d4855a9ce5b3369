"""`headwater doctor` finds what was broken, says what to do, and changes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner
from written_project import write_project

import headwater
from headwater.cli.app import app
from headwater.engine.service import doctor
from headwater.observe.findings import DoctorResult, Finding, Fitness


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path / "shops")


def examined(project: Path) -> DoctorResult:
    return headwater.open(project).doctor(quick=True)


def of(result: DoctorResult, subject: str) -> list[Finding]:
    return [one for one in result.findings if one.subject.startswith(subject)]


def test_a_warehouse_in_order(project: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in project.rglob("*")}
    result = examined(project)
    [tables] = of(result, "tables")
    assert tables.health is Fitness.OK
    assert of(result, "warehouse")[0].found == "readable, at tick 40"
    assert {file: file.stat().st_mtime_ns for file in project.rglob("*")} == before


def test_every_source_is_asked(project: Path) -> None:
    result = examined(project)
    assert not result.is_healthy  # nobody runs these sources
    assert all(of(result, f"source {name}")[0].health is Fitness.ERROR for name in ("shop", "stock"))


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_file_that_is_damaged(project: Path, damage: str) -> None:
    file = next((project / "warehouse" / "views" / "sold" / "1" / "checkpoint").glob("*.parquet"))
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-7])
    [found] = of(examined(project), "table ")
    assert found.health is Fitness.ERROR
    assert file.name in found.found
    assert "--rebuild" in found.remedy


def test_a_table_that_is_gone(project: Path) -> None:
    shutil.rmtree(project / "warehouse" / "views" / "totals" / "1" / "changes")
    assert [one.code for one in of(examined(project), "table ")] == ["HW-401"]


def test_a_warehouse_of_another_project(project: Path) -> None:
    (project / "warehouse" / "project.json").write_text('{"project": "theirs"}')
    assert [one.code for one in of(examined(project), "warehouse")] == ["HW-431"]


def test_a_stopped_view_is_named(tmp_path: Path) -> None:
    [found] = of(examined(write_project(tmp_path / "shops", stopped=True)), "view sold")
    assert (found.health, found.remedy) == (Fitness.WARNING, "widen the column")


def test_no_java(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    [found] = of(examined(project), "Java")
    assert (found.health, found.code) == (Fitness.ERROR, "HW-601")


def test_too_little_memory_and_disk(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "machine_bytes", lambda: 10**9)
    monkeypatch.setattr(doctor, "free_bytes", lambda _: 10**6)
    result = examined(project)
    assert [one.health for one in of(result, "memory")] == [Fitness.WARNING]
    assert [one.health for one in of(result, "disk")] == [Fitness.ERROR, Fitness.ERROR]
    assert all(one.remedy for one in (*of(result, "memory"), *of(result, "disk")))


def test_a_variable_that_is_not_set(project: Path) -> None:
    file = project / "headwater.toml"
    file.write_text(file.read_text().replace("scripted://gone", "scripted://${NOT_SET_AT_ALL}", 1))
    assert [one.code for one in of(examined(project), "environment")] == ["HW-110"]


def test_a_check_that_breaks_hides_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> int:
        raise RuntimeError("no")

    monkeypatch.setattr(doctor, "machine_bytes", broken)
    result = examined(project)
    assert of(result, "memory")[0].health is Fitness.ERROR
    assert of(result, "tables")[0].health is Fitness.OK


def test_the_verb_says_it_by_its_exit_code(project: Path) -> None:
    done = CliRunner().invoke(app, ["doctor", "--quick", "--project", str(project)])
    assert done.exit_code == 1
    assert "stand in the way" in done.stdout
    done = CliRunner().invoke(app, ["doctor", "--quick", "--project", str(project), "--json"])
    assert {one["health"] for one in json.loads(done.stdout)["findings"]} >= {"ok", "error"}


def test_spark_runs_a_query(project: Path, spark: object) -> None:
    del spark
    assert of(headwater.open(project).doctor(), "Spark")[0].health is Fitness.OK
