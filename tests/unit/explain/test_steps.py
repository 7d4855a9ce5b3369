"""What `explain` says of a view's steps: in the author's words, whatever the compiler made of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from in_duckdb import World, relation

from headwater.explain.steps import StepWords
from headwater.explain.summary import how_maintained, kept, recomputed
from headwater.model.keeping import LineageKind, LineageWish
from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.keep_lineage import keep_lineage
from headwater.views.steps.segments import SegmentedView

FILE = Path(__file__).parents[1] / "views" / "compile" / "constructs.sql"
FOUND = re.findall(r"^-- (.+): .+\n(.+);$", FILE.read_text(), re.MULTILINE)
CONSTRUCTS = [sql for name, sql in FOUND if not re.search("sets of a list|after the list", name)]  # DuckDB has none
INTERNAL = re.compile(r"\bo\d+\b|\b[cw]\d+\b|\w#\d|total_|known_|headwater|\{partition\}|^$|^[,:]")
WORLD = World(
    [
        relation("a", "r", x="int", y="int", z="int"),
        relation("a", "s", x="int", w="int"),
        relation("b", "u", key=("id",), id="int!", x="int"),
        relation("b", "t", y="int", w="int", k="int"),
        relation("b", "v", key=("id",), id="int!", x="int"),
    ]
)


def told(view: SegmentedView) -> list[str]:
    words = StepWords.of(view)
    lines = [how_maintained(view), kept(view, [], words), recomputed(view, words)]
    lines += [line for segment in view.segments for line in segment.step.words(segment, words)]
    return [re.sub(r"\b(join|selection|group|regroup|union|lineage|split)_[0-9a-f]+\b", "that", line) for line in lines]


def test_no_construct_is_told_by_names_of_ours() -> None:
    said = {sql: told(WORLD.compile(sql)) for sql in CONSTRUCTS}
    wrong = {sql: [line for line in lines if INTERNAL.search(line)] for sql, lines in said.items()}
    assert {sql: lines for sql, lines in wrong.items() if lines} == {}
    assert len(said) > 50


@pytest.mark.parametrize("kind", LineageKind)
def test_what_is_kept_for_tracing_is_told_too(kind: LineageKind) -> None:
    plain = WORLD.compile("SELECT u.x, SUM(v.x) AS n FROM b.u JOIN b.v ON u.id = v.id GROUP BY u.x")
    [join] = [one.name.name for one in plain.segments if isinstance(one.step, JoinStep) and len(one.inputs) > 1]
    view = keep_lineage(plain, [LineageWish(kind=kind, of=join)])
    assert len(view.segments) > len(plain.segments)
    assert not [line for line in told(view) if INTERNAL.search(line)]


def test_functions_and_relations_go_by_the_names_in_the_text() -> None:
    sql = (
        "SELECT p.x, max(ucase(CAST(q.w AS STRING))) AS m FROM a.r AS p JOIN a.s AS q ON p.x = q.x AND nvl(p.y, 0) > 1"
    )
    lines = told(WORLD.compile(f"{sql} GROUP BY p.x HAVING count(*) > 2"))
    assert "joins on p.x = q.x" in lines
    assert "where nvl(p.y, 0) > 1" in lines
    assert any("ucase(CAST(q.w AS STRING))" in line for line in lines)
    assert sum("p.x = q.x" in line for line in lines) == 1, "an edge stands there once"
