"""Pages of a warehouse that nobody maintains, without Spark: what they show is what the warehouse holds at the tick."""

from __future__ import annotations

# ruff: noqa: S310, S104, DTZ001
import json
import re
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest
from served import Served
from written_project import TICKS, state_at

import headwater
from headwater.console.serve import require_packages, serving
from headwater.console.view_page import condition
from headwater.deltas.compare import format_row
from headwater.errors import HeadwaterError
from headwater.warehouse.certificates import Certificate, CertifiedView, note_certificate


def rows_of(page: str, table: str = "rows") -> list[tuple[str, ...]]:
    """Return the rows of a page's table as texts."""
    found = re.search(rf'<table[^>]* id="{table}".*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    assert found, page[-2000:]
    lines = re.findall(r"<tr[^>]*>(.*?)</tr>", found[1], re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", line, re.DOTALL) for line in lines]
    return [tuple(unescape(re.sub("<[^>]+>", "", cell)).strip() for cell in line) for line in cells]


def row_counts(served: Served, query: str = "") -> dict[str, int]:
    while True:
        found = json.loads(served.get(f"/row-counts{query}")[1])
        if not found["partial"]:
            return dict(found["counts"])


def shown(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(value if isinstance(value, str) else format_row((value,))[1:-1] for value in row)


@pytest.mark.parametrize("tick", [0, 4, 5, 17, 40])
@pytest.mark.parametrize("view", ["sold", "totals"])
def test_rows_are_those_of_the_tick(written: Served, view: str, tick: int) -> None:
    found: Counter[tuple[str, ...]] = Counter()
    for page in (1, 2, 3):
        status, text = written.get(f"/view/{view}?at={tick}&page={page}")
        assert status == 200
        if "<table" in text and 'id="rows"' in text:
            found.update(row[1:] for row in rows_of(text))
    assert found == Counter({shown(row): count for row, count in state_at(tick)[view].items()})


def test_rows_are_filtered_and_sorted(written: Served) -> None:
    _, text = written.get("/view/sold?at=40&where=city+%3D+%27Oslo%27+AND+id+%3E+110&order=-id")
    ids = [int(row[1]) for row in rows_of(text)]
    expected = sorted((row[0] for row in state_at(40)["sold"] if row[1] == "Oslo" and row[0] > 110), reverse=True)
    assert ids == expected


def test_what_a_transaction_changed(written: Served) -> None:
    _, text = written.get("/transaction/14")
    assert "stock:0/16B3A80" in text
    before, after = state_at(13)["sold"], state_at(14)["sold"]
    assert (
        text.count('<tr class="went">')
        == 1 + (before - after).total() + (state_at(13)["totals"] - state_at(14)["totals"]).total()
    )
    assert (
        text.count('<tr class="came">')
        == 1 + (after - before).total() + (state_at(14)["totals"] - state_at(13)["totals"]).total()
    )
    assert 'href="/transaction/13?at=13"' in text
    assert 'href="/transaction/15?at=15"' in text
    assert "<h1>Tick 14</h1>" in written.get("/transaction?moment=stock:0/16B3A80")[1], "by its position, too"


def test_the_difference_of_two_ticks_is_attributed(written: Served) -> None:
    _, text = written.get("/difference?low=10&high=16")
    low, high = state_at(10), state_at(16)
    assert text.count('<tr class="went">') == sum((low[view] - high[view]).total() for view in low)
    assert text.count('<tr class="came">') == sum((high[view] - low[view]).total() for view in low)
    assert re.findall(r'href="/transaction/(\d+)\?at', text.split("By these transactions")[1])[:6] == [
        "16",
        "15",
        "14",
        "13",
        "12",
        "11",
    ]


def test_the_overview_says_what_status_says(written: Served) -> None:
    _, text = written.get("/")
    status = written.project.status()
    said = {row[0]: row for row in rows_of(text, "views")}
    for view in status.views:
        assert said[view.name][2:5] == (view.guarantee.value, str(view.birth), str(view.frontier))
    assert row_counts(written) == {view.name: view.row_count for view in status.views}
    for tick in (0, 9, 23):
        assert row_counts(written, f"?at={tick}") == {view: rows.total() for view, rows in state_at(tick).items()}
    sources = {row[0]: row for row in rows_of(text, "sources")}
    assert {name: row[3] for name, row in sources.items()} == {
        one.name: str(one.last_transaction) for one in status.sources
    }


def test_sources_flow_into_views(written: Served) -> None:
    _, text = written.get("/")
    edges = set(re.findall(r'data-start="([^"]+)" data-end="([^"]+)"', text))
    assert edges == {
        ("relation:shop.sales", "view:sold"),
        ("relation:stock.products", "view:sold"),
        ("view:sold", "view:totals"),
    }


def test_a_column_says_which_columns_it_comes_from(written: Served) -> None:
    _, text = written.get("/view/totals?at=3")
    assert 'data-kind="copied" data-from="shop.sales/city ' in text
    assert 'data-kind="aggregated" data-from="stock.products/price ' in text
    assert 'data-kind="rows" data-from=""' in text


@pytest.mark.parametrize("path", ["/", "/view/sold", "/source/shop", "/certificate", "/plan", "/lab"])
def test_every_page_shows_the_tick_of_its_url(written: Served, path: str) -> None:
    status, text = written.get(f"{path}?at=12")
    assert status == 200
    assert 'aria-valuenow="12"' in text
    assert "as of tick <b>12</b>" in text
    assert "?at=12" in text, "links take it along"
    by_time = written.get(f"{path}?at=12&scale=time")[1]
    assert text.split('class="handle"')[1][:30] != by_time.split('class="handle"')[1][:30]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/view/nosuch", "HW-114"),
        ("/source/nosuch", "HW-118"),
        ("/view/sold?at=41", "HW-415"),
        ("/view/sold?where=nosuch+%3D+1", "HW-147"),
        ("/view/sold?where=1%3D1%3B+DROP", "HW-201"),
        ("/transaction/99", "HW-762"),
        ("/view/sold?at=yesterday", "HW-120"),
    ],
)
def test_what_cannot_be_shown_says_why(written: Served, path: str, code: str) -> None:
    _, text = written.get(path)
    assert code in text
    assert "Traceback" not in text


def test_a_view_that_stopped_is_blamed(serve_written: Callable[..., Served]) -> None:
    served = serve_written(stopped=True)
    _, text = served.get("/")
    assert "sold stopped at tick 20: a sum is too large." in text
    assert 'class="node view broken"' in text
    assert "widen the column" in served.get("/view/sold")[1]


def test_two_hundred_views(serve_written: Callable[..., Served]) -> None:
    served = serve_written(more_views=200)
    served.get("/static/console.css")
    began = time.perf_counter(), time.process_time()
    status, text = served.get("/")
    took = time.perf_counter() - began[0], time.process_time() - began[1]
    assert status == 200
    assert text.count('class="node view') == 202
    assert took[1] < 1, f"the first answer took {took[1]:.2f} s of this process"
    focused = served.get("/?focus=more_041_by_city_and_quarter")[1]
    assert focused.count('class="node view') < 10


def test_no_warehouse_yet(tmp_path: Path) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "headwater.toml").write_text('[project]\nname = "p"\n[sources.shop]\nurl = "${SHOP_URL}"\n')
    (tmp_path / "views" / "sold.sql").write_text("SELECT s.no AS no FROM shop.sales AS s")
    project = headwater.open(tmp_path)
    with serving(project) as address:
        status, text = Served(project, address).get("/")
    assert status == 400
    assert "HW-124" in text
    assert "headwater run" in text


def test_certificates(serve_written: Callable[..., Served]) -> None:
    served = serve_written()
    assert "No check has been made" in served.get("/certificate")[1]
    for number, is_kept in enumerate((True, False, True)):
        view = CertifiedView(
            view="sold",
            promised="complete",
            found="complete" if is_kept else "none",
            kept=is_kept,
            states_checked=17,
            judged_by={"DuckDB": 17},
            birth=0,
            tick=40,
            told="" if is_kept else "tick 3 differs",
        )
        checked_at = datetime(2026, 3, 2, number, tzinfo=UTC)
        note_certificate(
            served.project.project.warehouse, Certificate(checked_at=checked_at, seconds=1.5, views=(view,))
        )
    _, text = served.get("/certificate")
    assert "17 states recomputed and compared" in text
    assert text.count('role="listitem"') == 3
    assert "tick 3 differs" in served.get("/certificate?check=20260302T010000000000")[1]


def test_only_its_own_form_starts_a_check(written: Served) -> None:
    for body in (b"", b"form_token=guessed"):
        request = urllib.request.Request(written.address + "certificate", body)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=20)
        with refused.value as error:
            assert "HW-761" in error.read().decode()


def test_other_names_of_this_machine_are_refused(written: Served) -> None:
    assert written.get("/", Host="evil.example:80")[0] == 421
    assert written.get("/", Host="localhost")[0] == 200


def test_beyond_this_machine_a_token_is_needed(written: Served) -> None:
    with serving(written.project, "0.0.0.0") as address:
        place, _, token = address.partition("?token=")
        assert len(token) >= 24
        local = Served(written.project, place.replace("0.0.0.0", "127.0.0.1"))
        assert local.get("/")[0] == 403
        assert local.get("/?token=guessed")[0] == 403
        assert local.get("/events")[0] == 403
        assert local.get("/static/console.js")[0] == 403
        status, _ = local.get("/", Cookie=f"headwater_console={token}")
        assert status == 200


def test_rows_can_be_named_exactly(written: Served) -> None:
    schema = written.project.query("SELECT * FROM sold LIMIT 1").table.schema
    for row in list(state_at(40)["sold"])[:3]:
        found = written.project.query(f"SELECT * FROM sold WHERE {condition(schema, row)}", at=40).table
        assert [tuple(one.values()) for one in found.to_pylist()] == [row]
    lists = pa.schema([("a", pa.list_(pa.list_(pa.string()))), ("b", pa.list_(pa.int32()))])
    assert condition(lists, ([["x", None], []], [1])) == "`a` = ARRAY(ARRAY('x', NULL), ARRAY()) AND `b` = ARRAY(1)"
    odd = pa.schema([("a", pa.string()), ("b", pa.float64()), ("c", pa.timestamp("us")), ("d", pa.binary())])
    text = condition(odd, ("it's \\ a", float("nan"), datetime(2026, 1, 1, 2), b"\x01"))
    assert text == (
        "`a` = 'it\\'s \\\\ a' AND `b` = CAST('nan' AS DOUBLE) "
        "AND `c` = TIMESTAMP '2026-01-01 02:00:00' AND `d` = X'01'"
    )


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "fastapi" else name)
    with pytest.raises(HeadwaterError) as refused:
        require_packages()
    assert (refused.value.code, refused.value.hint) == ("HW-763", 'pip install "headwater[ui]"')


def test_news_are_sent(written: Served) -> None:
    with urllib.request.urlopen(written.address + "events", timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.readline() == b"event: standing\n"
        assert json.loads(answer.readline().removeprefix(b"data: "))["tick"] == TICKS


def test_nothing_comes_from_elsewhere(written: Served) -> None:
    for path in ("/", "/view/sold", "/static/console.css", "/static/console.js"):
        assert not re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:)?//""", written.get(path)[1])


def test_a_scenario_of_the_lab_is_drawn(written: Served) -> None:
    pytest.importorskip("headwater_lab")
    _, listed = written.get("/lab")
    assert 'href="/lab/figure-5"' in listed
    _, text = written.get("/lab/figure-5")
    assert text.count('class="life"') == 4, "three sources and the warehouse"
    assert text.count('class="message question"') == text.count(">ask s")
    assert "complete, 4 states checked" in text


def test_a_comment_in_a_condition_takes_nothing_of_the_page_away(written: Served) -> None:
    plain = [written.get(f"/view/sold?at=40&where=id+%3E+0&page={page}")[1] for page in (1, 2)]
    noted = [written.get(f"/view/sold?at=40&where=id+%3E+0+--+all&page={page}")[1] for page in (1, 2)]
    assert [rows_of(page) for page in noted] == [rows_of(page) for page in plain]
    assert rows_of(noted[0]) != rows_of(noted[1])
    _, joined = written.get("/view/sold?at=40&where=id+%3E+0+UNION+ALL+SELECT+*+FROM+sold")
    assert 'id="rows"' not in joined, "a condition is a condition"


def test_a_page_of_another_site_cannot_make_the_console_work(written: Served) -> None:
    cross = {"Sec-Fetch-Site": "cross-site"}
    assert written.get("/", **cross, **{"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"})[0] == 403
    assert written.get("/", **cross, **{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"})[0] == 403
    assert written.get("/", **cross, **{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})[0] == 200
    assert written.get("/", **{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"})[0] == 200


def test_a_token_that_is_no_plain_text_is_refused_as_any_other(written: Served) -> None:
    form = urllib.request.Request(written.address + "certificate", data="form_token=é".encode(), method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(form, timeout=30)
    with refused.value as error:
        assert (error.code, "HW-761" in error.read().decode()) == (400, True)


def test_a_console_beside_something_finds_another_port(written: Served) -> None:
    taken = int(written.address.rstrip("/").rsplit(":", 1)[1])
    with serving(written.project, port=taken) as address:
        assert address != written.address
        assert Served(written.project, address).get("/")[0] == 200


def test_metrics_servers_may_ask_the_console(written: Served) -> None:
    status, text = written.get("/metrics")
    assert status == 200
    assert f"headwater_log_last_tick {TICKS}.0" in text
