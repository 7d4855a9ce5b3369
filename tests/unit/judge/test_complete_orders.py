"""The judge's rewriting of orders reads every FROM that Spark reads."""

from __future__ import annotations

from headwater.judge.complete_orders import output_columns, read_text, with_complete_orders

KNOWN = {("a", "public", "e"): ["id", "val"]}
JOINED = "a.e JOIN (a.e AS f LEFT JOIN a.e AS g ON f.id = g.id) ON e.id = f.id"


def settled(sql: str) -> str:
    return with_complete_orders(read_text(sql), KNOWN).sql(dialect="spark")


def test_joins_in_parentheses_belong_to_the_row() -> None:
    text = settled(f"SELECT lag(e.val) OVER (ORDER BY e.id) AS b FROM {JOINED}")
    assert "ORDER BY e.id, `e`.`id`, `e`.`val`, `f`.`id`, `f`.`val`, `g`.`id`, `g`.`val`)" in text


def test_a_star_shows_joins_in_parentheses() -> None:
    assert settled(f"SELECT * FROM {JOINED} LIMIT 1").endswith("ORDER BY 1, 2, 3, 4, 5, 6 LIMIT 1")
    assert output_columns(read_text(f"SELECT g.* FROM {JOINED}"), KNOWN) == ["id", "val"]
