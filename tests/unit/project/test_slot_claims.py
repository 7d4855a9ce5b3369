"""By which slot a source is followed: every line of the table in `slot_claims`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from headwater.changelog import ChangeLog
from headwater.errors import SourceLost
from headwater.model.position import Position, Positions, by_log
from headwater.project.slot_claims import SlotClaim, SlotOrigin, claim_slots, slot_warnings
from headwater.sources.scripted.database import SERVER
from headwater.sources.source import Abilities, ProjectSlots, SlotState, Source

FORMER = "headwater_twin_staff"
OURS = "headwater_twin_staff_1a2b3c4d"
THEIRS = "headwater_twin_staff_99999999"


def at(offset: int, history: str = "1:1") -> Positions:
    return by_log([Position(source="staff", history=history, offset=offset)])


def state(name: str, offset: int, *, is_in_use: bool = False, lost: str = "") -> SlotState:
    return SlotState(
        name=name,
        forgotten_to=at(offset),
        is_in_use=is_in_use,
        held_bytes=5 << 20,
        what=f"bookmark {name}",
        drop=f"DROP BOOKMARK {name}",
        lost=SourceLost(lost, code="HW-311", hint="") if lost else None,
    )


class Slots:
    """A source that has slots and nothing else."""

    def __init__(self, *slots: SlotState, abilities: Abilities = SERVER) -> None:
        self._slots = slots
        self.abilities = abilities

    def slots(self) -> ProjectSlots:
        return ProjectSlots(present={slot.name: slot for slot in self._slots}, former=FORMER)


def claimed(log: ChangeLog | None, *slots: SlotState, is_known: bool = True) -> SlotClaim:
    source = cast("Source", Slots(*slots))
    return claim_slots(log, {"staff": source}, {"staff"} if is_known else ())["staff"]


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    return ChangeLog.create(str(tmp_path / "log"))


@pytest.fixture
def followed(log: ChangeLog) -> ChangeLog:
    log.claim("staff", OURS)
    log.begin("staff", at(100))
    return log


def test_a_recorded_slot_is_followed_by_up_to_what_the_log_holds(followed: ChangeLog) -> None:
    for offset in (40, 100):
        claim = claimed(followed, state(OURS, offset), state(THEIRS, 900))
        assert (claim.origin, claim.name) == (SlotOrigin.RECORDED, OURS)
        assert [other.name for other in claim.others] == [THEIRS]


def test_a_recorded_slot_that_has_moved_past_the_log_is_refused(followed: ChangeLog) -> None:
    with pytest.raises(SourceLost, match="already forgotten changes") as refused:
        claimed(followed, state(OURS, 101))
    assert refused.value.code == "HW-314"
    followed.note(at(101))
    assert claimed(followed, state(OURS, 101)).origin is SlotOrigin.RECORDED


def test_a_slot_that_was_made_and_not_noted_begins_wherever_it_stands(log: ChangeLog) -> None:
    log.note(at(50))
    log.claim("staff", OURS)
    assert claimed(log, state(OURS, 101)).origin is SlotOrigin.RECORDED


def test_a_recorded_slot_that_is_gone_is_made_new_and_the_former_one_is_not_taken(followed: ChangeLog) -> None:
    assert claimed(followed, state(FORMER, 100), state(THEIRS, 100)).origin is SlotOrigin.NEW


def test_a_slot_that_the_source_has_thrown_away_is_named(followed: ChangeLog) -> None:
    with pytest.raises(SourceLost, match="log_removed"):
        claimed(followed, state(OURS, 10, lost="log_removed"))


def test_the_former_slot_is_adopted_by_a_warehouse_that_has_read_the_source(log: ChangeLog) -> None:
    log.note(at(50))
    claim = claimed(log, state(FORMER, 900))
    assert (claim.origin, claim.name) == (SlotOrigin.ADOPTED, FORMER)
    assert "cannot be proved" in dict(slot_warnings({"staff": claim}))["staff"]
    assert claimed(log, state(FORMER, 900), is_known=False).origin is SlotOrigin.NEW
    assert claimed(None, state(FORMER, 900), is_known=False).origin is SlotOrigin.NEW
    assert claimed(log, state(THEIRS, 900)).origin is SlotOrigin.NEW


def test_a_source_that_holds_its_log_for_nobody_is_followed_by_the_recorded_name(followed: ChangeLog) -> None:
    source = {"staff": cast("Source", Slots(abilities=replace(SERVER, holds_log=False)))}
    claim = claim_slots(followed, source, {"staff"})["staff"]
    assert (claim.origin, claim.name) == (SlotOrigin.RECORDED, OURS)
    assert claim_slots(None, source, ())["staff"].origin is SlotOrigin.NEW
    followed.claim("staff", THEIRS)  # as a teardown does
    assert claim_slots(followed, source, {"staff"})["staff"].origin is SlotOrigin.NEW


def test_another_slot_is_warned_of_unless_it_is_in_use(followed: ChangeLog) -> None:
    claim = claimed(followed, state(OURS, 100), state(THEIRS, 900), state(FORMER, 900, is_in_use=True))
    [(source, sentence)] = slot_warnings({"staff": claim})
    assert source == "staff"
    assert sentence.startswith(f"bookmark {THEIRS} is not in use")
    assert sentence.endswith(f"DROP BOOKMARK {THEIRS}")
    assert "5 MB" in sentence
