from __future__ import annotations

import pytest

from headwater.errors import InvalidProject, SourceLost
from headwater.model.position import LSN, Notation, Position, read_position

BINLOG = Notation(separator=":", low_bits=32, history="server id")
NUMBER = Notation(history="table id")


@pytest.mark.parametrize(
    ("notation", "offset", "text"),
    [(LSN, 0x1_0000_00FF, "1/FF"), (LSN, 0, "0/0"), (BINLOG, (12 << 32) + 4711, "12:4711"), (NUMBER, 42, "42")],
)
def test_an_offset_and_its_text(notation: Notation, offset: int, text: str) -> None:
    assert notation.text(offset) == text
    assert notation.parse(text) == offset


@pytest.mark.parametrize(
    ("notation", "text"),
    [
        *((LSN, text) for text in ("", "1", "0/1/2", "0/123456789", "x/1", "-1/1", "FFFFFFFF/FFFFFFFF", "٣/1")),
        *((BINLOG, text) for text in ("12", "12:", "12:FF", "12:4294967296")),
        *((NUMBER, text) for text in ("0/1", "FF", "9223372036854775808")),
    ],
)
def test_a_text_in_another_notation_is_refused(notation: Notation, text: str) -> None:
    with pytest.raises(InvalidProject, match="is not a position") as refused:
        notation.parse(text)
    assert refused.value.code == "HW-104"
    assert notation.text(0x16B3748) in refused.value.hint


def test_what_was_stored_before_notations_were_is_in_that_of_postgresql() -> None:
    assert str(read_position("shop", ["71:1", 0x16B3748])) == "shop:0/16B3748"
    assert Position(source="shop", history="71:1", offset=9).written() == ["71:1", 9]


def test_two_histories_are_told_apart_in_the_words_of_the_source() -> None:
    before, after = (Position(source="lake", history=one, offset=1, notation=NUMBER) for one in ("a", "b"))
    with pytest.raises(SourceLost, match="is not the server it was") as lost:
        _ = before < after
    assert "its log was a (table id) and is now b" in lost.value.detail
