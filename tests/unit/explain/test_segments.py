"""What `explain` says of a view's queries."""

from __future__ import annotations

import sqlglot
from in_duckdb import World, relation

from headwater.explain.segments import maintenance_queries, tracing_lines, tracing_queries
from headwater.model.keeping import LineageKind, LineageWish
from headwater.views.steps.keep_lineage import keep_lineage

WORLD = World(
    [
        relation("shop", "sales", key=("no",), no="int!", product="int", amount="int"),
        relation("shop", "products", key=("id",), id="int!", kind="string"),
    ]
)
SQL = "SELECT p.kind, SUM(s.amount) AS a FROM shop.sales s JOIN shop.products p ON s.product = p.id GROUP BY p.kind"


def test_a_view_without_lineage_is_traced_through_what_it_reads() -> None:
    view = WORLD.compile(SQL)
    assert set(maintenance_queries(view)) == {segment.name.name for segment in view.segments}
    assert "headwater advise" in tracing_lines(view)[0]
    assert [one["from"] for one in tracing_queries(view)] == [["its operands"], ["its operands"]]


def test_kept_lineage_is_maintained_and_traced_through() -> None:
    plain = WORLD.compile(SQL)
    join = plain.segments[0].name.name
    wishes = [LineageWish(kind=kind, of=join) for kind in LineageKind]
    view = keep_lineage(plain, wishes)
    queries = maintenance_queries(view)
    assert set(queries) == {segment.name.name for segment in view.segments}
    for text in queries.values():
        sqlglot.parse_one(text, read="spark")
    [lineage] = view.lineage
    split = " + ".join(name.name for name in lineage.split.values())
    assert tracing_lines(view) == [
        f"  traced       {join}: {lineage.whole.name.name} or {split} or its operands, the cheapest of them"
    ]
    traced = {str(one["segment"]): one for one in tracing_queries(view)}
    assert traced[join]["from"] == [lineage.whole.name.name, split, "its operands"]
    assert "shop.products" in str(traced[join]["sql"]), "the query is over the operands, whatever is kept"
