"""What a plain view's text means: stars, names and USING written out, by the pairs of queries in tests/rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from headwater.model.relation import Relation, RelationName, SegmentName
from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.segments import Segment
from headwater_lab.one_join import declare

FOLDER = Path(__file__).parents[2] / "rules"


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
def test_a_text_is_the_join_that_its_pair_says(
    rule: str, before: str, after: str, catalog: Mapping[RelationName, Relation]
) -> None:
    step = JoinStep(view=declare("v", before, catalog))
    relation = Relation(name=SegmentName(name="v"), columns=())
    written = step.whole_sql(Segment(relation=relation, step=step, is_kept=True), {name: str(name) for name in catalog})
    assert written == after, rule
