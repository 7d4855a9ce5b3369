"""Which equalities rows are found along: not those that only test what others determine."""

from __future__ import annotations

import pytest

from headwater.maintenance.visit_trees import leading_edges, visit_trees
from headwater.model.relation import Column, Relation, RelationName
from headwater.views.steps.join import JoinView
from headwater.views.text.declaration import declare

KEYS = {"l": ("id",), "o": ("ok",), "c": ("ck",), "s": ("sk",), "n": ("nk",), "x": ()}
COLUMNS = {"l": ("id", "ok", "sk"), "o": ("ok", "ck"), "c": ("ck", "nk"), "s": ("sk", "nk"), "n": ("nk",), "x": ("nk",)}
DETERMINED = "l.ok = o.ok AND o.ck = c.ck AND l.sk = s.sk"


def view(where: str) -> JoinView:
    def relation(name: str) -> Relation:
        columns = tuple(Column(name=column, type="int", native="int") for column in COLUMNS[name])
        return Relation(name=RelationName(source="a", name=name), columns=columns, key=KEYS[name])

    named = [name for name in COLUMNS if f"{name}." in where]
    catalog = {described.name: described for described in map(relation, named)}
    return declare("v", f"SELECT 1 AS one FROM {', '.join(f'a.{name}' for name in named)} WHERE {where}", catalog)


def linked(edges: str) -> set[frozenset[str]]:
    return {frozenset(edge) for edge in edges.split()}


@pytest.mark.parametrize(
    ("where", "edges"),
    [
        pytest.param(f"{DETERMINED} AND c.nk = s.nk", "lo oc ls", id="a line determines customer and supplier"),
        pytest.param("o.ck = c.ck AND c.nk = s.nk", "oc cs", id="nothing else leads to the supplier"),
        pytest.param("c.nk = n.nk AND s.nk = n.nk AND c.nk = s.nk", "cn sn cs", id="both determine a third"),
        pytest.param("l.ok = o.ck AND o.ck = c.nk AND l.sk = c.nk", "lo oc lc", id="no keys"),
        pytest.param(
            f"{DETERMINED} AND c.nk = x.nk AND x.nk = s.nk", "lo oc ls cx xs", id="one of them is not reached"
        ),
    ],
)
def test_an_equality_that_only_tests_is_left_out(where: str, edges: str) -> None:
    assert {frozenset((edge.left, edge.right)) for edge in leading_edges(view(where))} == linked(edges)


def test_what_was_connected_stays_so() -> None:
    [tree] = visit_trees(view(f"{DETERMINED} AND c.nk = s.nk AND s.nk = n.nk"))
    assert {tree.root, *tree.parents} == set("locsn")
    assert "s" not in (tree.parents.get("c"), *tree.children("c"))
