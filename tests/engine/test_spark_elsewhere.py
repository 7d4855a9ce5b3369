"""One project on Sparks that are not in this process: exact there too, and refused where that cannot be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_clusters import connect_server, master, options, other_host, play_aside, why_no_other_host, worker

from headwater.spark.settings import RULES, pinned

HOSTILE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.CombineUnions",
    "spark.sql.shuffle.partitions": "3",
}
PINNED = {
    **{key: value for key, value in pinned(HOSTILE).items() if key in HOSTILE},
    "spark.sql.shuffle.partitions": "3",
}

pytestmark = pytest.mark.live


def assert_exact(found: dict[str, object]) -> None:
    """What the story compared at every tick itself has raised already."""
    assert found["wrong"] == []
    assert found["equal"]
    assert found["rows"] == 3
    assert found["refused"] == "HW-148"
    assert found["settings"] == PINNED
    assert found["given"] == "false", "a session that is given stays as it is"
    assert str(found["settings"][RULES]).count(",") == 1, "the user's rule and ours"  # type: ignore[index]


def test_a_project_is_exact_on_executors_in_other_processes(tmp_path: Path) -> None:
    said = {"spark.master": "local-cluster[2,1,1024]", **HOSTILE}
    (tmp_path / "spark-defaults.conf").write_text("\n".join(f"{key}  {value}" for key, value in said.items()))
    found = play_aside(tmp_path / "project", {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": options()})
    assert found["master"] == "local-cluster[2,1,1024]"
    assert found["standard error"] == ""
    assert found["jobs"] > 0
    assert_exact(found)


def test_a_project_is_exact_over_spark_connect(tmp_path: Path) -> None:
    with connect_server(tmp_path, *(f"{key}={value}" for key, value in HOSTILE.items())) as remote:
        found = play_aside(tmp_path / "project", {"SPARK_REMOTE": remote})
    assert found["connect"]
    assert not found["started a virtual machine"], "nothing of Spark runs in this process"
    assert found["standard error"] == ""
    assert_exact(found)


def test_executors_that_never_come_are_an_error(tmp_path: Path) -> None:
    too_large = {"SPARK_MASTER": "local-cluster[1,1,1024]", "PYSPARK_SUBMIT_ARGS": options("spark.executor.cores=2")}
    found = play_aside(tmp_path, too_large, "refused_story.py")
    assert found["code"] == "HW-609"
    assert "not taken within 10 s" in found["detail"]
    assert "local-cluster[1,1,1024]" in found["detail"]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[tuple[str, str, str]]:
    if reason := why_no_other_host():
        pytest.skip(reason)
    with other_host() as names:
        yield names


@pytest.mark.thorough
def test_a_project_is_exact_on_another_host(tmp_path: Path, elsewhere: tuple[str, str, str]) -> None:
    name, here, there = elsewhere
    with master(tmp_path, here) as url, worker(tmp_path, there, url, ("ip", "netns", "exec", name)):
        said = {"SPARK_MASTER": url, "SPARK_LOCAL_IP": here}
        given = [f"{key}={value}" for key, value in HOSTILE.items()]
        found = play_aside(tmp_path / "project", {**said, "PYSPARK_SUBMIT_ARGS": options(*given)})
        assert found["master"] == url
        assert_exact(found)

        unreachable = {**said, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_SUBMIT_ARGS": options()}
        refused = play_aside(tmp_path / "unreachable", unreachable, "refused_story.py")
        assert refused["code"] == "HW-609"
        assert re.search(r"look for the driver at (localhost|127\.0\.0\.1):\d+", refused["detail"])


@pytest.mark.thorough
def test_a_folder_that_another_host_does_not_share_is_refused(tmp_path: Path, elsewhere: tuple[str, str, str]) -> None:
    name, here, there = elsewhere
    project = tmp_path / "project"
    project.mkdir()
    hidden = ("sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"', str(project))
    with master(tmp_path, here) as url, worker(tmp_path, there, url, ("ip", "netns", "exec", name, *hidden)):
        said = {"SPARK_MASTER": url, "SPARK_LOCAL_IP": here, "PYSPARK_SUBMIT_ARGS": options()}
        refused = play_aside(project, said, "refused_story.py")
    assert refused["code"] == "HW-610"
    assert str(project / "warehouse") in refused["detail"]
    assert not (project / "warehouse").exists(), "nothing is left behind"


@pytest.mark.thorough
def test_executors_that_are_killed_while_they_write_lose_nothing(tmp_path: Path) -> None:
    said = {"SPARK_MASTER": "local-cluster[2,1,1024]", "PYSPARK_SUBMIT_ARGS": options()}
    found = play_aside(tmp_path / "project", said, "killed_executors_story.py")
    assert [bool(pids) for pids in found["killed"]] == [True] * 3, "tasks were running each time"
    assert found["last"] >= 6
