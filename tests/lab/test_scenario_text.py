"""Scenarios as text: what can be written, and where an error is said to be."""

from __future__ import annotations

import pytest

from headwater.errors import HeadwaterError
from headwater.model.relation import ForeignKey, RelationName
from headwater_lab.entrants import entrant
from headwater_lab.errors import InvalidScenario
from headwater_lab.replay import replay
from headwater_lab.scenario import CommitMove, Finish, Receive, Serve
from headwater_lab.scenario_text import format_scenario, parse_scenario

HEADER = """\
# Sales and clerks.

view: SELECT s.id, c.name
  FROM shop.sales s, staff.clerks c WHERE s.clerk = c.id
relation shop.sales (id int, clerk int) key (id): (1, 7)
relation shop.notes (id int, text string): nothing
relation staff.clerks (id int, name string) key (id): (7, 'O''Hara')
expect sweep: complete

"""


def problem(text: str) -> InvalidScenario:
    with pytest.raises(InvalidScenario) as caught:
        parse_scenario(text, name="story")
    return caught.value


def test_reads_every_kind_of_move() -> None:
    text = HEADER + (
        "# a transaction of two relations\n"
        "shop.sales: insert (2, 7), delete (1, 7); shop.notes: insert (1, 'a, (b)')[2], (2, NULL)\n"
        "warehouse: receive shop@1\n---\n\nstaff: answer\nwarehouse: receive staff\nall: finish\n"
    )
    scenario = parse_scenario(text, name="story")
    first, second = scenario.blocks
    sales, notes = RelationName(source="shop", name="sales"), RelationName(source="shop", name="notes")
    changes = {sales: {(2, 7): 1, (1, 7): -1}, notes: {(1, "a, (b)"): 2, (2, None): 1}}
    assert first.moves == (CommitMove(source="shop", changes=changes), Receive(source="shop", version=1))
    assert first.told == ()
    assert first.remarks == ("a transaction of two relations",)
    assert second.moves == (Serve(source="staff"), Receive(source="staff"), Finish())
    assert second.told is None
    assert scenario.title == "Sales and clerks."
    again = parse_scenario(format_scenario(scenario), name="story")
    assert (again.blocks, again.expected, again.setting.rows) == (
        scenario.blocks,
        scenario.expected,
        scenario.setting.rows,
    )


def test_reads_what_a_relation_refers_to() -> None:
    line = "relation shop.lines (sale int, item int) key (item) foreign key (sale) references shop.sales (id): (1, 5)\n"
    scenario = parse_scenario(HEADER.rstrip("\n") + "\n" + line, name="story")
    lines, sales = (RelationName(source="shop", name=name) for name in ("lines", "sales"))
    relation = scenario.setting.catalog[lines]
    assert relation.foreign_keys == (ForeignKey(columns=("sale",), parent=sales, parent_columns=("id",)),)
    assert relation.not_null == {"sale", "item"}
    assert line in format_scenario(scenario)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("shop.sales: upsert (1, 2)", "not understood"),
        ("shop.sales: insert (1)", "(1) has 1 values, shop.sales has 2 columns"),
        ("shop.sales: insert (1, 'x')", "'x' is not a value of type int"),
        ("shop.orders: insert (1, 2)", "there is no relation shop.orders"),
        ("crm: answer", 'there is no source "crm"'),
        ("warehouse: receive crm", 'there is no source "crm"'),
        ("shop.sales: insert (1, 2); staff.clerks: insert (1, 'x')", "one transaction of 2 sources"),
        ("---", "nothing is played that this could follow from"),
        ("expect sweep: perfect", '"perfect" is not a guarantee'),
        ("relation shop.more (id serial): nothing", '"id serial" is not a column'),
        ("relation shop.more (id int) key (nr): nothing", "the key has no column nr"),
        ("relation shop.sales (id int): nothing", "shop.sales is described twice"),
        (
            "relation shop.lines (sale int) foreign key (sale) references staff.clerks (id): nothing",
            "shop.lines refers to staff.clerks, which is not there",
        ),
        (
            "relation shop.lines (sale int) foreign key (item) references shop.sales (id): nothing",
            "shop.lines refers by columns that it does not have",
        ),
        (
            "relation shop.lines (sale int) foreign key (sale) references shop.sales (clerk): nothing",
            "shop.lines refers to something else than the key of shop.sales",
        ),
    ],
)
def test_says_where_a_line_goes_wrong(line: str, says: str) -> None:
    error = problem(HEADER + line + "\n")
    assert error.summary == f'scenario "story", line 10: {says}'
    assert error.code == "HW-711"


def test_the_header_comes_first() -> None:
    error = problem(HEADER + "all: finish\nexpect strobe: strong\n")
    assert error.summary == 'scenario "story", line 11: the moves have begun already'


def test_says_what_is_missing() -> None:
    error = problem("# nothing else\n")
    assert error.code == "HW-712"
    assert error.detail == "there is no line that begins with: view, relation, expect"


@pytest.mark.parametrize(
    ("move", "why"),
    [
        ("staff: answer", "staff has no query to answer"),
        ("warehouse: receive shop", "nothing of shop is on its way"),
        ("warehouse: receive shop@1", "shop@1 is not the next message of shop"),
        ("shop.sales: delete (9, 9)", "shop.sales does not hold what is deleted"),
        ("shop.sales: delete (1, 7)", "shop.lines refers to what shop.sales does not hold"),
        ("shop.lines: insert (2, 5)", "shop.lines refers to what shop.sales does not hold"),
    ],
)
def test_a_move_that_cannot_be_made_is_refused(move: str, why: str) -> None:
    lines = "relation shop.lines (sale int, item int) foreign key (sale) references shop.sales (id): (1, 5)\n"
    scenario = parse_scenario(HEADER.rstrip("\n") + "\n" + lines + move + "\n", name="story")
    with pytest.raises(InvalidScenario) as caught:
        replay(scenario, entrant("sweep"))
    assert caught.value.code == "HW-715"
    assert caught.value.detail == f"{why}, as sweep plays it"


def test_others_pass_over_what_does_not_concern_them() -> None:
    text = HEADER + "shop.sales: delete (1, 7)\nwarehouse: receive shop\nstaff: answer\nwarehouse: receive staff\n"
    scenario = parse_scenario(text.replace("s.id, c.name", "s.id, c.id AS clerk"), name="story")
    assert not any(move.passed_over for move in replay(scenario, entrant("sweep")).moves)
    strobe = replay(scenario, entrant("strobe"))
    assert [move.passed_over for move in strobe.moves] == [False, False, True, True]
    assert strobe.shown[-1] == {}


def test_what_happens_otherwise_than_told_is_shown() -> None:
    text = HEADER + "shop.sales: delete (1, 7)\nall: finish\n---\ntick 2 is shop@1\n"
    played = replay(parse_scenario(text, name="story"), entrant("sweep"))
    (departure,) = played.departures
    assert departure.told == ("tick 2 is shop@1",)
    assert departure.happened[0] == "tick 1 is shop@1"
    assert not played.as_expected


def test_an_algorithm_that_cannot_maintain_the_view_is_refused() -> None:
    scenario = parse_scenario(HEADER, name="story")
    with pytest.raises(InvalidScenario, match="cannot maintain this view"):
        replay(scenario, entrant("strobe"))
    with pytest.raises(HeadwaterError, match='there is no algorithm "magic"'):
        entrant("magic")


@pytest.mark.parametrize(
    "view",
    [
        "SELECT COUNT(*) AS n FROM shop.sales s",
        "SELECT DISTINCT s.id FROM shop.sales s",
        "SELECT s.id FROM shop.sales s LEFT JOIN staff.clerks c ON s.clerk = c.id",
        "SELECT s.id FROM shop.sales s UNION ALL SELECT c.id FROM staff.clerks c",
        "SELECT s.id FROM shop.sales s LATERAL VIEW explode(array(1)) AS x",
    ],
)
def test_a_view_is_one_join(view: str) -> None:
    lines = HEADER.split("\n")
    found = problem("\n".join([f"view: {view}", *lines[4:]]))
    assert found.code == "HW-721"
    assert view in found.detail
