from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from headwater.errors import HeadwaterError
from headwater.model.moment import AtPosition, AtTick, AtTime, as_moment, parse_moment, parse_position


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0", AtTick(tick=0)),
        (" 42 ", AtTick(tick=42)),
        ("shop:0/16B3748", AtPosition(source="shop", text="0/16B3748")),
        ("shop_2:1/ff", AtPosition(source="shop_2", text="1/ff")),
        ("2026-11-15", AtTime(time=datetime(2026, 11, 15, tzinfo=UTC))),
        ("2026-11-15T10:30:00Z", AtTime(time=datetime(2026, 11, 15, 10, 30, tzinfo=UTC))),
        ("2026-11-15 10:30+01:00", AtTime(time=datetime(2026, 11, 15, 9, 30, tzinfo=UTC))),
    ],
)
def test_texts(text: str, moment: AtTick | AtPosition | AtTime) -> None:
    assert parse_moment(text) == moment
    assert parse_moment(str(moment)) == moment


@pytest.mark.parametrize("text", ["", "-1", "1.5", "noon", "shop:", "Shop:0/1", "shop: 1", "shop:/1"])
def test_what_is_not_a_moment_is_refused(text: str) -> None:
    with pytest.raises(HeadwaterError):
        parse_moment(text)


def test_only_a_position_can_be_waited_for() -> None:
    assert parse_position("shop:0/1") == AtPosition(source="shop", text="0/1")
    with pytest.raises(HeadwaterError, match="not a position of a source"):
        parse_position("42")


@pytest.mark.parametrize("value", [True, False, 4.5, None, [1]])
def test_python_values_that_are_no_moment(value: Any) -> None:
    with pytest.raises(HeadwaterError) as refused:
        as_moment(value)
    assert refused.value.code == "HW-120"


def test_python_values() -> None:
    summer = timezone(timedelta(hours=2))
    assert as_moment(7) == as_moment("7") == as_moment(AtTick(tick=7)) == AtTick(tick=7)
    assert as_moment(datetime(2026, 7, 1, 12, tzinfo=summer)) == as_moment("2026-07-01T10:00")
