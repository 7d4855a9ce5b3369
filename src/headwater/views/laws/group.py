"""The law of a group: rows and totals per key, at every tick of a batch, from signed rows.

Counts and exact sums are linear, so a key's row at tick s is its old row plus what came and went up to s:

    rows(k, s)  = rows(k, lo)  + Σ counts of the changes of k with tick ≤ s
    total(k, s) = total(k, lo) + Σ counts x values, where the value is not NULL;  known likewise, without values

The old row stands as the first entry of its key, the changes follow summed per tick, and running sums over the ticks
are the versions of the key's row. A version lives from its tick to the tick of the next one:

    tick       lo        5         7         9
    entries    3, 30     +1, +4    -4, -34   +2, +9      rows, total of one key
    versions   3, 30     4, 34     (none)    2, 9
    given                -(3,30)   -(4,34)   +(2,9)      the changes of the group
                         +(4,34)

Invariants
1. One entry per key and tick, and none that changes nothing: two versions in a row always differ.
2. A key without rows has no row; without keys there is one row always (its old row is there from birth on).
3. A total is 0 where nothing is known, never NULL.
4. Decimals are never added with `+`, nor multiplied where Spark would round: DECIMAL(38, 18) + DECIMAL(38, 18) has a
   scale of 17. SUM keeps the scale. Where a product would not, a row with count k is summed k times.
5. What does not fit the column's type raises, as Spark's SUM does. (Also if only a tick's own changes do not fit.)

Impossible changes. Taking away rows that are not there gives a version that cannot be: fewer than no rows, more values
than rows, or a total of no values. Such versions are given like any other; `impossible_tick` finds the first of them.
Taking away a value while another one stays cannot be seen here.

Cost: in proportion to the changes; one sort per key, and no join. A hot key costs no more than its ticks.

Paper 004 (summary deltas), corrected: its UNION loses equal rows, and without the number of rows a group never goes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Relation
from headwater.views.text.spark_text import quoted

if TYPE_CHECKING:  # a step names its law
    from headwater.views.steps.group_step import GroupStep

_EXACT_PRECISION = 27
_EXACT_SCALE = 6
"""A product with DECIMAL(10, 0) keeps every digit after the point if the type has no more digits than either of these:
beyond 38 digits in all Spark drops digits after the point down to 6."""


def group_law_sql(step: GroupStep, group: Relation, changes: str, old: str) -> str:
    """Return the query that gives a group's changes at every tick.

    `changes` names a table of the input's changes: its columns, `_tick` (from 1 on) and `_count`, netted or not.
    `old` names a table of the group's own rows before the batch, one for every touched key that had rows; more do no
    harm. The result has the group's columns, `_tick` and `_count`, which is 1 or -1.
    """
    keys = [f"k{n}" for n in range(len(step.keys))]
    numbers = ["n", *(f"{letter}{n}" for n in range(len(step.totals)) for letter in ("m", "t"))]
    names = [step.rows, *(name for total in step.totals for name in (total.known, total.total))]
    types = [group.column(name).type for name in names]
    listed = ", ".join([*keys, "s"])
    per_tick = _per_tick(step, types, changes)
    before = ", ".join(
        [*(f"{quoted(name)} AS {key}" for key, name in zip(keys, step.keys, strict=True)), "CAST(0 AS BIGINT) AS s"]
        + [
            f"CAST({quoted(name)} AS {kind}) AS {number}"
            for name, kind, number in zip(names, types, numbers, strict=True)
        ]
    )
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    upto = f"({partition}ORDER BY s ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    running = ", ".join(
        f"CAST(SUM({number}) OVER {upto} AS {kind}) AS {number}" for number, kind in zip(numbers, types, strict=True)
    )
    anything = " OR ".join(f"{number} <> 0" for number in numbers)
    placed = dict(zip([*step.keys, *names], [*keys, *numbers], strict=True))
    outputs = ", ".join(f"{placed[name]} AS {quoted(name)}" for name in group.column_names)
    exists = f"({anything}) AND " if keys else ""
    return f"""\
SELECT {outputs}, CASE WHEN side > 0 THEN s ELSE until END AS {TICK}, CAST(side AS BIGINT) AS {COUNT}
FROM (
  SELECT {listed}, until, {", ".join(numbers)}, EXPLODE(ARRAY(1, -1)) AS side
  FROM (
    SELECT {listed}, LEAD(s) OVER ({partition}ORDER BY s) AS until, {running}
    FROM (
      SELECT {before} FROM {quoted(old)}
      UNION ALL
      SELECT {listed}, {", ".join(numbers)} FROM ({per_tick}) AS summed WHERE {anything}
    ) AS entries
  ) AS versions
) AS lives
WHERE {exists}CASE WHEN side > 0 THEN s ELSE until END > 0"""


def _per_tick(step: GroupStep, types: list[str], changes: str) -> str:
    """Return the query that sums the changes up per key and tick, each number in its column's type."""
    totals = list(zip(step.totals, types[2::2], strict=True))
    copied = any(_is_rounded(kind) for _, kind in totals)
    source = _one_by_one(changes) if copied else quoted(changes)
    sums = [f"SUM({COUNT}) AS n"]
    for place, (total, kind) in enumerate(totals):
        value = quoted(total.column)
        if not kind.startswith("decimal"):
            signed = f"{value} * {COUNT}"
        elif copied:
            signed = f"CASE WHEN {COUNT} < 0 THEN -{value} ELSE {value} END"
        else:
            signed = f"CAST({value} AS {kind}) * CAST({COUNT} AS DECIMAL(10, 0))"
        sums.append(f"SUM(CASE WHEN {value} IS NULL THEN 0 ELSE {COUNT} END) AS m{place}")
        sums.append(f"COALESCE(CAST(SUM({signed}) AS {kind}), CAST(0 AS {kind})) AS t{place}")
    keys = [f"{quoted(name)} AS k{place}" for place, name in enumerate(step.keys)]
    by = ", ".join([*(quoted(name) for name in step.keys), TICK])
    return f"SELECT {', '.join([*keys, f'{TICK} AS s', *sums])} FROM {source} GROUP BY {by}"


def _is_rounded(kind: str) -> bool:
    """Tell whether Spark rounds a product of this type with a count."""
    decimal = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", kind)
    return decimal is not None and int(decimal[1]) > _EXACT_PRECISION and int(decimal[2]) > _EXACT_SCALE


def _one_by_one(table: str) -> str:
    """Return the rows of a table as often as they count, each with a count of 1 or -1."""
    sign = f"CAST(SIGN({COUNT}) AS BIGINT)"
    copies = f"SELECT *, EXPLODE(SEQUENCE(1, ABS({COUNT}))) AS copy FROM {quoted(table)} WHERE {COUNT} <> 0"
    return f"(SELECT * EXCEPT ({COUNT}), {sign} AS {COUNT} FROM ({copies}) AS copies)"


def impossible_tick(step: GroupStep, changes: pa.Table) -> Tick | None:
    """Return the first tick at which a group's changes give a row that cannot be, if there is one.

    >>> from headwater.model.relation import RelationName
    >>> from headwater.views.steps.group_step import GroupStep
    >>> step = GroupStep(input=RelationName(source="shop", name="sales"), keys=("store",), rows="rows")
    >>> changes = pa.table({"store": [1, 1, 2], "rows": [2, 2, -1], "_tick": [5, 6, 6], "_count": [1, -1, 1]})
    >>> impossible_tick(step, changes)
    6
    """
    rows = changes[step.rows]
    wrong = pc.less(rows, 0)
    for total in step.totals:
        known = changes[total.known]
        none = pc.and_(pc.equal(known, 0), pc.not_equal(changes[total.total], 0))
        wrong = pc.or_(pc.or_(wrong, pc.less(known, 0)), pc.or_(pc.greater(known, rows), none))
    first = pc.min(changes[TICK].filter(wrong)).as_py()
    return None if first is None else Tick(first)
