"""What runs of `prove` add up to."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from headwater.errors import HeadwaterError
from headwater.model.position import Tick
from headwater.prove.chance import Chance
from headwater.prove.constructs.every import CONSTRUCTS, OTHER_VIEW
from headwater.prove.record import Record, add_to_file, pairs_of, read_record
from headwater.prove.result import WrongState
from headwater.prove.trial import Trial, TrialView, draw_history, draw_view


def of_run(*texts: str, constructs: tuple[str, ...] = ("limit", "union")) -> Record:
    found = Record(state_count=10 * len(texts))
    for text in texts:
        found.accept(text, constructs, set())
    return found


def test_runs_add_up_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    add_to_file(file, of_run("SELECT 1", "SELECT 2"))
    wrong = WrongState(file="t.json", sql="SELECT 3", tick=Tick(4), difference="missing 1 × (1)")
    add_to_file(file, Record(wrong=[wrong], trials=Counter({"7": 1})))
    together = read_record(file)
    assert len(together.texts) == 2
    assert together.state_count == 20
    assert together.pairs == {"limit + union": 2}
    assert together.wrong == [wrong]
    assert together.trials["7"] == 1


def test_a_text_that_an_earlier_run_had_is_not_counted_again() -> None:
    first, second = of_run("SELECT 1"), Record()
    second.accept("SELECT 1", ("limit", "union"), first.texts)
    first.add(second)
    assert len(first.texts) == 1
    assert first.pairs["limit + union"] == 1


def test_a_pair_is_ruled_out_once_views_of_just_these_two_are_refused_and_none_is_accepted() -> None:
    record = Record()
    for number in range(6):
        assert not record.ruled_out()
        record.refuse(f"SELECT {number}", ("limit", "union"), "HW-290", "no order")
    assert record.ruled_out() == {"limit + union": "HW-290"}
    record.accept("SELECT 7", ("limit", "union", "join"), set())
    assert not record.ruled_out()


def test_refusals_of_larger_views_and_our_own_errors_rule_out_nothing() -> None:
    record = Record()
    for _ in range(9):
        record.refuse("SELECT 1", ("limit", "union", "join"), "HW-290", "no order")
        record.refuse("SELECT 2", ("limit", "union"), "HW-281", "KeyError")
    assert not record.ruled_out()


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_text("{}")
    with pytest.raises(HeadwaterError, match="not a record of proofs") as refused:
        read_record(file)
    assert refused.value.code == "HW-295"


def test_a_view_over_a_view_takes_its_text_along() -> None:
    chance = Chance(random=random.Random(3))
    lower = draw_view(chance, "v0", ["join"], {})
    upper = draw_view(chance, "v1", [OTHER_VIEW, "limit"], {"v0": lower})
    assert upper.lower == (("v0", lower.sql),)
    assert " v0 AS " in upper.sql
    trial = draw_history(3, 5).with_views([upper])
    assert Trial.read(trial.text()) == trial


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_every_construct_can_be_put_on_every_kind_of_item(construct: str) -> None:
    chance = Chance(random=random.Random(1))
    views: dict[str, TrialView] = {"v0": draw_view(chance, "v0", ["join"], {})}
    for below in CONSTRUCTS:
        del chance.views[1:]
        assert draw_view(chance, "v1", [below, construct], views).sql.count("SELECT") >= 1


def test_pairs_have_one_name() -> None:
    assert pairs_of(["union", "limit"]) == pairs_of(["limit", "union", "limit"])
