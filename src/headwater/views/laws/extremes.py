"""The law of MIN and MAX: the extremes of a partition at every tick, in little more than its changes.

Computing a partition again at each of its turns (`regroup_law`) costs turns times rows: much, if it is hot.
An extreme over parts is the extreme of the parts' extremes, so lives are cut into stretches that many turns share. The
turns of a partition are numbered 0, 1, 2, ...; the stretch (level, n) stands for the turns n · 2^level up to
(n + 1) · 2^level; a life is a few stretches, at most two of each level, and a turn is in one stretch of each level:

    turns       0   1   2   3   4   5   6   7
    level 0     .   1   .   .   .   .   .   .
    level 1     .   .   2---3   .   .   .   .        a row alive from turn 1 to the end of 7
    level 2     .   .   .   .   4-----------7        is in the stretches (0, 1), (1, 1), (2, 1)

    extreme(turn) = the extreme of the stretches (0, turn), (1, turn / 2), (2, turn / 4), ...

Invariants
1. A turn is a tick at which the partition's rows really change, or `lo`.
2. A row that nothing touches is one stretch: all turns.
3. A partition all of whose values are NULL has a row, with NULL; without keys there is a row always.

Cost: old rows + changes x log(turns of the partition); no join of all with all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from headwater.model.relation import TICK, Relation
from headwater.views.laws.regroup import UNTIL, changes_of_states_sql, entries_sql, lives_sql
from headwater.views.steps.computed import Aggregates
from headwater.views.text.spark_text import quoted

if TYPE_CHECKING:  # a step names its law
    from headwater.views.steps.regroup_step import RegroupStep


def is_extremes(step: RegroupStep) -> bool:
    """Tell whether a regroup computes nothing but MIN and MAX of columns.

    >>> from headwater.model.relation import SegmentName
    >>> from headwater.views.steps.regroup_step import RegroupStep
    >>> def regroup(text):
    ...     computed = Aggregates(outputs=(("c0", text),))
    ...     return RegroupStep(input=SegmentName(name="n0"), keys=(), computed=computed)
    >>> is_extremes(regroup("MIN(c1)")), is_extremes(regroup("MAX(c1) + 1")), is_extremes(regroup("COUNT(c1)"))
    (True, False, False)
    """
    if not isinstance(step.computed, Aggregates):
        return False
    trees = [_tree(text) for _, text in step.computed.outputs]
    return all(isinstance(tree, exp.Min | exp.Max) and isinstance(tree.this, exp.Column) for tree in trees)


def extremes_law_sql(step: RegroupStep, given: Relation, regrouped: Relation, changes: str, old: str) -> str:
    """Return the query that gives the changes of a regroup by extremes. What `regroup_law_sql` says holds here too."""
    assert isinstance(step.computed, Aggregates)
    keys = [quoted(key) for key in step.keys]
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    numbered = _numbered(given, partition, changes, old, everywhere=not keys)
    within, over = [], []
    for place, (name, text) in enumerate(step.computed.outputs):
        within.append(f"{text} AS e{place}")
        over.append(f"{_tree(text).key}(stretches.e{place}) AS {quoted(name)}")
    by_stretch = ", ".join([*keys, "level", "stretch"])
    stretches = f"SELECT {by_stretch}, {', '.join(within)} FROM ({_cut(given, numbered)}) AS cut GROUP BY {by_stretch}"
    same = " AND ".join(f"stretches.{name} <=> turns.{name}" for name in (*keys, "level", "stretch"))
    by_turn = ", ".join(f"turns.{name}" for name in (*keys, TICK, UNTIL))
    states = (
        f"SELECT {by_turn}, {', '.join(over)} FROM ({_turns(keys, partition, numbered)}) AS turns "
        f"{'' if keys else 'LEFT '}JOIN ({stretches}) AS stretches ON {same} GROUP BY {by_turn}"
    )
    return changes_of_states_sql(regrouped.column_names, states)


def _tree(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="spark")


def _numbered(given: Relation, partition: str, changes: str, old: str, *, everywhere: bool) -> str:
    """Return the query for the netted entries with the number of their turn, and the level that holds all turns.

    A partition without keys has the turn `lo` even if it had no rows: an entry that counts nothing stands there.
    """
    entries = entries_sql(given, changes, old)
    if everywhere:
        nothing = ", ".join(f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in given.columns)
        entries += f"\nUNION ALL\nSELECT {nothing}, CAST(0 AS BIGINT) AS born, CAST(0 AS BIGINT) AS copies"
    top = f"CAST(LOG2(MAX(turn) OVER ({partition.strip()}) + 1) AS INT) + 1 AS top"
    return (
        f"SELECT *, {top} FROM (SELECT *, CAST(DENSE_RANK() OVER ({partition}ORDER BY born) - 1 AS BIGINT) AS turn "
        f"FROM ({entries}) AS entries) AS ranked"
    )


def _turns(keys: list[str], partition: str, numbered: str) -> str:
    """Return the query for every turn, once per level, with the stretch of that level that it is in."""
    listed = ", ".join([*keys, "born", "turn", "top"])
    until = f"LEAD(born) OVER ({partition}ORDER BY born) AS {UNTIL}"
    lasting = f"SELECT {listed}, {until} FROM (SELECT DISTINCT {listed} FROM ({numbered}) AS numbered) AS once"
    levels = f"SELECT *, EXPLODE(SEQUENCE(0, top)) AS level FROM ({lasting}) AS lasting"
    outputs = ", ".join([*keys, f"born AS {TICK}", UNTIL, "level", "SHIFTRIGHT(turn, level) AS stretch"])
    return f"SELECT {outputs} FROM ({levels}) AS levels"


def _cut(given: Relation, numbered: str) -> str:
    """Return the query for the stretches of every life: the input's columns, `level` and `stretch`."""
    row = ", ".join(quoted(name) for name in given.column_names)
    lives = lives_sql(given, numbered, "turn", "top")
    levels = f"SELECT *, EXPLODE(SEQUENCE(0, top)) AS level FROM ({lives}) AS lives WHERE copies > 0"
    first = "SHIFTRIGHT(born + SHIFTLEFT(CAST(1 AS BIGINT), level) - 1, level) AS head"
    after = "SHIFTRIGHT(COALESCE(dead, SHIFTLEFT(CAST(1 AS BIGINT), top)), level) AS tail"
    bounds = f"SELECT {row}, level, {first}, {after} FROM ({levels}) AS levels"
    return (
        f"SELECT {row}, level, CASE WHEN side > 0 THEN head ELSE tail - 1 END AS stretch "
        f"FROM (SELECT *, EXPLODE(ARRAY(1, -1)) AS side FROM ({bounds}) AS bounds WHERE head < tail) AS ends "
        "WHERE CASE WHEN side > 0 THEN head ELSE tail END % 2 = 1"
    )
