from __future__ import annotations

from decimal import Decimal

from headwater.deltas.compare import bag_key, difference, format_row, row_key


def test_nan_and_null_are_values_like_others() -> None:
    one = {(float("nan"), None): 2, (None, None): 1}
    other = {(float("nan"), None): 1, (None, None): 1}
    assert difference(one, one | {}).size == 0
    assert str(difference(one, other)) == "missing 1 × (nan, NULL)"


def test_rows_spelt_differently_are_added_up() -> None:
    assert not difference({(Decimal("1.50"),): 2}, {(Decimal("1.5"),): 2})
    twice = {(float("nan"),): 1, (Decimal("NaN"),): 1}
    assert not difference(twice, {(float("nan"),): 2})


def test_signalling_nan_and_lists_have_keys() -> None:
    assert row_key((Decimal("sNaN"),)) == row_key((float("nan"),))
    assert format_row(([1, None], b"\x01")) == "([1, NULL], x'01')"


def test_text_is_cut_where_asked() -> None:
    many = {(number,): 1 for number in range(20)}
    assert difference({}, many).text(line_limit=2).splitlines()[-1] == "… and 18 more"
    assert str(difference({}, {})) == "no difference"


def test_counts_of_zero_are_no_rows() -> None:
    assert not difference({(1,): 0}, {})
    assert bag_key({(1,): 0}) == bag_key({})
