"""What `explain` says of views that run: five lines first, in the author's words, and nothing twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import AuditedWorld, audited_world
from writers import write

from headwater.errors import InvalidView
from headwater.sources.embedded import EmbeddedServer

VIEWS = {
    "dear": "SELECT s.no, ucase(p.kind) AS kind FROM shop.sales s JOIN shop.products p ON s.product = p.id "
    "WHERE s.amount > 2",
    "by_kind": "SELECT p.kind, MIN(s.amount) AS least, COUNT(*) AS sold FROM shop.sales s "
    "JOIN shop.products p ON s.product = p.id GROUP BY p.kind",
    "rolling": "SELECT b.kind, b.sold, rank() OVER (ORDER BY b.sold) AS place FROM by_kind b",
    "later": "SELECT s.no, (SELECT COUNT(*) FROM shop.sales t WHERE t.no > s.no) AS after FROM shop.sales s",
}
INTERNAL = re.compile(r"\bo\d+\.|\b[cw]\d+\b|total_c\d|headwater_|`[a-z]\d+`|probe edge|netting")


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        made.note_before()
        yield made


@pytest.mark.usefixtures("spark")
def test_explain_begins_with_five_lines_in_the_words_of_the_view(world: AuditedWorld) -> None:
    world.write_project(VIEWS, probed=())
    opened = world.open()
    unborn = opened.explain("dear")
    assert unborn.summary[3].startswith("cost         no batch is known yet; recomputing the view reads ")
    opened.run(until_idle=True)
    write(dict(world.servers), world.database, transactions=10, seed=3)
    world.open().run(until_idle=True)
    told = {name: world.open().explain(name) for name in VIEWS}
    for name, one in told.items():
        titles = [line.split()[0] for line in one.text.splitlines()[:5]]
        assert titles == ["verdict", "keeps", "reads", "cost", "recomputes"], name
        assert tuple(one.text.splitlines()[:5]) == one.summary
        assert one.data["summary"] == {line.split()[0]: line.split(maxsplit=1)[1] for line in one.summary}
        assert INTERNAL.search(one.text) is None, one.text
    assert "dear is maintained by changes alone (complete" in told["dear"].summary[0]
    assert told["dear"].summary[1] == "keeps        the view, replicas of shop.sales, shop.products"
    assert told["dear"].text.count("s.product = p.id") == 1, "an edge stands there once"
    assert "kind = ucase(p.kind)" in told["dear"].text
    assert "for a changed row of shop.products" in told["dear"].summary[2]
    assert re.search(r"changed rows, ticks \d+ to \d+: reads about .* took .*; recomputing", told["dear"].summary[3])
    assert told["dear"].summary[4].startswith("recomputes   nothing")
    assert "by_kind is maintained by changes, and what is in a changed group" in told["by_kind"].summary[0]
    assert "least: MIN and MAX are found again" in told["by_kind"].summary[4]
    assert "1 auxiliary table (groups by kind, s.amount), replicas of" in told["by_kind"].summary[1]
    assert "looks at all rows whenever one of them changes" in told["rolling"].summary[0]
    assert "place: a window function without PARTITION BY" in told["rolling"].summary[4]
    assert "later is recomputed from its whole SQL at every commit" in told["later"].summary[0]
    assert "at every commit" in told["later"].summary[2]
    assert "s.no" in told["later"].summary[4]
    assert all(len(one.data["segments"]) > 1 for name, one in told.items() if name != "dear")


@pytest.mark.usefixtures("spark")
def test_spark_refuses_a_view_in_the_words_of_its_text(world: AuditedWorld) -> None:
    world.write_project(VIEWS | {"dear": VIEWS["dear"].replace("ucase(p.kind)", "nvl(p.kind, array(s.no))")})
    with pytest.raises(InvalidView) as caught:
        world.open().plan()
    assert caught.value.code == "HW-244"
    assert 'Cannot resolve "nvl(p.kind, array(s.no))"' in caught.value.detail
    assert caught.value.detail.splitlines()[-1].strip() == "^" * len("nvl(p.kind, array(s.no))")
    assert "headwater_" not in str(caught.value)
