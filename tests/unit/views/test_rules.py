"""Each rewrite rule, by the pairs of queries in tests/rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlglot import exp

from headwater.model.relation import Relation, RelationName
from headwater.views.text.normalize import RULES
from headwater.views.text.scope import find_relations
from headwater.views.text.spark_text import spark_text
from headwater.views.text.statement import read_statement

FOLDER = Path(__file__).parents[2] / "rules"
BY_NAME = {rule.__name__: rule for rule in RULES}


def pairs() -> list[tuple[str, str, str]]:
    found = []
    for file in sorted(FOLDER.glob("*.sql")):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("-- ")]
        for pair in "\n".join(lines).split(";"):
            if pair.strip():
                before, after = pair.split("-->")
                found.append((file.stem, before.strip(), after.strip()))
    return found


@pytest.mark.parametrize(("rule", "before", "after"), pairs())
def test_a_rule_rewrites_as_its_pairs_say(
    rule: str, before: str, after: str, catalog: Mapping[RelationName, Relation]
) -> None:
    statement = read_statement(before)
    assert isinstance(statement.tree, exp.Select)
    rewritten = BY_NAME[rule](statement.tree, find_relations(statement, catalog))
    assert spark_text(rewritten) == after
    assert statement.tree == read_statement(before).tree, "a rule returns a new tree and leaves the old one alone"
