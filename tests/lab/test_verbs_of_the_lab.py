"""`headwater lab`: scenarios, replay and compare as a person and as a program meet them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from headwater.cli.app import app


def lab(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, ["lab", *arguments], input=typed)


def test_lists_what_ships() -> None:
    shown = lab("scenarios")
    assert shown.exit_code == 0
    assert "figure-5" in shown.stdout
    listed = json.loads(lab("scenarios", "--json").stdout)
    assert {"name": "figure-5", "expected": "complete"}.items() <= {
        "name": next(one["name"] for one in listed if one["name"] == "figure-5"),
        "expected": next(one["expected"]["sweep"] for one in listed if one["name"] == "figure-5"),
    }.items()


def test_replays_move_by_move() -> None:
    shown = lab("replay", "figure-5")
    assert shown.exit_code == 0
    assert "  2  warehouse: receive s2@1\n       tick 1 is s2@1\n       ask s1 with r2 +(3, 5): r1\n" in shown.stdout
    assert "rebase r1 to tick 1: put back (3)" in shown.stdout
    assert "sweep: complete, 4 states checked" in shown.stdout
    assert "sweep-printed-sign     complete  none" in shown.stdout


def test_a_literal_reading_is_shown_to_fail() -> None:
    shown = lab("replay", "figure-5", "--algorithm", "sweep-printed-sign")
    assert shown.exit_code == 0, "the scenario expects it"
    assert "it claims complete" in shown.stdout
    assert "played by others" not in shown.stdout


def test_steps_wait_for_enter() -> None:
    shown = lab("replay", "merged-halves", "--step", typed="\n" * 10)
    assert shown.exit_code == 0
    assert shown.stdout == lab("replay", "merged-halves").stdout
    refused = lab("replay", "merged-halves", "--step", "--json")
    assert refused.exit_code == 1
    assert json.loads(refused.stdout)["error"]["code"] == "HW-717"


def test_replay_as_json() -> None:
    document = json.loads(lab("replay", "several-interfering-changes", "--json").stdout)
    assert document["replay"]["verdict"]["guarantee"] == "complete"
    assert {other["algorithm"]: other["found"] for other in document["others"]}["sweep-single"] == "none"
    assert document["replay"]["moves"][0]["move"] == "s2.r2: insert (1, 0)"


def test_a_story_told_otherwise_is_a_broken_promise(tmp_path: Path) -> None:
    file = tmp_path / "story.txt"
    text = (
        "view: SELECT r.a FROM s.r r\nrelation s.r (a int): nothing\nexpect sweep: complete\n\n"
        "s.r: insert (1)\nall: finish\n---\ntick 1 is s@1\ninstall tick 1: nothing\nview: nothing\n"
    )
    file.write_text(text, encoding="utf-8")
    shown = lab("replay", str(file))
    assert shown.exit_code == 2
    assert "what follows from line 5 differs from the scenario" in shown.stdout
    assert "  told      view: nothing\n" in shown.stdout


def test_refusals_name_the_remedy() -> None:
    for arguments, code in (
        (("replay", "no-such-story"), "HW-716"),
        (("replay", "figure-5", "--algorithm", "magic"), "HW-713"),
        (("replay", "figure-5", "--algorithm", "strobe"), "HW-714"),
        (("compare", "--sources", "two"), "HW-718"),
        (("compare", "--deletes", "1.5"), "HW-718"),
    ):
        refused = lab(*arguments, "--json")
        assert refused.exit_code == 1, refused.stdout
        error = json.loads(refused.stdout)["error"]
        assert error["code"] == code
        assert error["hint"]


def test_compares_and_writes_a_page(tmp_path: Path) -> None:
    small = ("--sources", "2", "--interval", "1", "--deletes", "0.5", "--transactions", "8")
    shown = lab("compare", *small, "--out", str(tmp_path / "lab"))
    assert shown.exit_code == 0, shown.stdout
    assert "complete, O(n)" in shown.stdout
    written = {file.name for file in (tmp_path / "lab").iterdir()}
    assert written == {"index.html", "queries.png", "bytes.png", "staleness.png", "timeline.png"}
    assert all(file.read_bytes()[:4] == b"\x89PNG" for file in (tmp_path / "lab").glob("*.png"))
    assert lab("compare", *small).stdout.splitlines()[:10] == shown.stdout.splitlines()[:10]


def test_misses_are_written_and_can_be_replayed(tmp_path: Path) -> None:
    small = ("--sources", "2", "--interval", "0.5", "--deletes", "0.5", "--transactions", "12", "--json")
    compared = lab("compare", *small, "--literal", "--out", str(tmp_path))
    assert compared.exit_code == 0, "only literal readings miss their guarantee"
    missed = json.loads(compared.stdout)["missed"]
    assert missed
    replayed = lab("replay", missed[0])
    assert replayed.exit_code == 2
    assert "it claims " in replayed.stdout


def test_the_lab_needs_no_spark() -> None:
    program = (
        "import sys; from typer.testing import CliRunner; from headwater.cli.app import app\n"
        "assert CliRunner().invoke(app, ['lab', 'replay', 'figure-5']).exit_code == 0\n"
        "assert CliRunner().invoke(app, ['lab', 'compare', '--sources', '2', '--transactions', '3']).exit_code == 0\n"
        "assert 'pyspark' not in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
