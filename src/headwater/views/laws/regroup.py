"""The law of a regroup: what is computed within a partition, again at every tick at which the partition changes.

Nothing is assumed of the functions, but that they give the same for the same rows. So a partition's state is computed
at each of its turns, the ticks at which it changes and `lo`, from the rows alive there; a state lives from its
turn to the partition's next one:

    tick       lo          5            7
    rows       a  b        a     c      a  a  c       b goes and c comes at 5, another a comes at 7
    states     f(a, b)     f(a, c)      f(a, a, c)
    given                  -f(a, b)     -f(a, c)
                           +f(a, c)     +f(a, a, c)   rows that are in both states cancel

Which rows are alive at a turn is read from their lives: the running sums of a row's counts, over the ticks.

Invariants
1. A row that counts k stands k times when functions see it.
2. Functions see rows that were really there together, so they raise only where recomputation would.
3. Without keys the whole input is one partition, and aggregates give a row even over nothing.

The text of `Aggregates` and `Windows` names the input's columns as they are.

Cost: the turns of a partition times its rows. That is what functions of which nothing is known cost; MIN and MAX cost
less (`extremes_law`), counts and exact sums do not come here (`group_law`).
Not covered: functions whose result depends on the order in which Spark meets the rows (COLLECT_LIST, FIRST, a SUM of
doubles): their old state may come out otherwise than it did, and is not taken away. The compiler brings none of them
here (`compile.rounding`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater.model.relation import COUNT, TICK, Relation
from headwater.views.steps.computed import Aggregates, First
from headwater.views.text.spark_text import quoted

if TYPE_CHECKING:  # a step names its law
    from headwater.views.steps.regroup_step import RegroupStep

UNTIL = "_until"


def regroup_law_sql(step: RegroupStep, given: Relation, regrouped: Relation, changes: str, old: str) -> str:
    """Return the query that gives a regroup's changes at every tick.

    `given` describes the input, `regrouped` the output. `changes` names a table of the input's changes: its columns,
    `_tick` (from 1 on) and `_count`, netted or not. `old` names one of the input's rows before the batch with `_count`:
    all of every touched partition; rows of others do no harm. (For `First` those and their changes suffice that can be
    among the first: `deltas.first_rows`.) The result has the output's columns, `_tick` and `_count`; no two rows are
    equal in all but the count.
    """
    alive = _alive(step, given, changes, old)
    states = step.computed.sql(step.keys, f"({alive}) AS alive", given.column_names, (TICK, UNTIL))
    if isinstance(step.computed, Aggregates) and not step.keys:
        states = _also_over_nothing(step.computed, states, turns_sql(step, changes), old)
    return changes_of_states_sql(regrouped.column_names, states)


def turns_sql(step: RegroupStep, changes: str) -> str:
    """Return the query for the turns of touched partitions: keys, `_tick` (0 is `lo`), and `_until` the next one."""
    keys = [quoted(key) for key in step.keys]
    listed = ", ".join([*keys, TICK])
    stamps = ", ".join([*keys, f"EXPLODE(ARRAY(CAST(0 AS BIGINT), {TICK})) AS {TICK}"])
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    return (
        f"SELECT {listed}, LEAD({TICK}) OVER ({partition}ORDER BY {TICK}) AS {UNTIL} FROM ("
        f"SELECT {listed} FROM (SELECT {stamps} FROM {quoted(changes)}) AS stamps GROUP BY {listed}) AS turns"
    )


def entries_sql(given: Relation, changes: str, old: str) -> str:
    """Return the query for the netted entries of rows: the input's columns, `born` (0 is `lo`), and `copies`."""
    columns = ", ".join(quoted(name) for name in given.column_names)
    return f"""\
SELECT {columns}, born, SUM(copies) AS copies
FROM (
  SELECT {columns}, CAST(0 AS BIGINT) AS born, {COUNT} AS copies FROM {quoted(old)}
  UNION ALL
  SELECT {columns}, {TICK} AS born, {COUNT} AS copies FROM {quoted(changes)}
) AS entries
GROUP BY {columns}, born
HAVING SUM(copies) <> 0"""


def lives_sql(given: Relation, entries: str, stamp: str, *also: str) -> str:
    """Return the query for the lives of rows: columns, `born`, `dead` (NULL: not in this batch), and `copies`.

    `stamp` is the column of the entries that tells when; `also` are columns to keep.
    """
    row = ", ".join(quoted(name) for name in given.column_names)
    upto = f"(PARTITION BY {row} ORDER BY {stamp} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    dead = f"LEAD({stamp}) OVER (PARTITION BY {row} ORDER BY {stamp}) AS dead"
    copies = f"CAST(SUM(copies) OVER {upto} AS BIGINT) AS copies"
    return f"SELECT {', '.join([row, *also, f'{stamp} AS born', dead, copies])} FROM ({entries}) AS netted"


def changes_of_states_sql(columns: Sequence[str], states: str) -> str:
    """Return the query that gives the changes between states: they come at `_tick` and go at `_until`."""
    listed = ", ".join(quoted(name) for name in columns)
    stamp = f"CASE WHEN _side > 0 THEN {TICK} ELSE {UNTIL} END"
    return f"""\
SELECT {listed}, {TICK}, SUM(_side) AS {COUNT}
FROM (
  SELECT {listed}, {stamp} AS {TICK}, _side
  FROM (SELECT {listed}, {TICK}, {UNTIL}, EXPLODE(ARRAY(1, -1)) AS _side FROM ({states}) AS states) AS sides
  WHERE {stamp} > 0
) AS stamped
GROUP BY {listed}, {TICK}
HAVING SUM(_side) <> 0"""


def _alive(step: RegroupStep, given: Relation, changes: str, old: str) -> str:
    """Return the query for the rows alive at every turn of their partition, each as often as it counts."""
    columns = ", ".join(f"lives.{quoted(name)} AS {quoted(name)}" for name in given.column_names)
    copies = f"LEAST(copies, {step.computed.last})" if isinstance(step.computed, First) else "copies"
    lives = lives_sql(given, entries_sql(given, changes, old), "born")
    same = [f"lives.{quoted(key)} <=> turns.{quoted(key)}" for key in step.keys]
    there = [f"born <= {TICK}", f"(dead > {TICK} OR dead IS NULL)", "copies > 0"]
    return (
        f"SELECT {columns}, {TICK}, {UNTIL}, EXPLODE(SEQUENCE(1, {copies})) AS copy "
        f"FROM ({lives}) AS lives JOIN ({turns_sql(step, changes)}) AS turns "
        f"ON {' AND '.join([*same, *there])}"
    )


def _also_over_nothing(computed: Aggregates, states: str, turns: str, table: str) -> str:
    """Return states with one at every turn: where no row is alive, what the aggregates give over nothing."""
    names = [quoted(name) for name, _ in computed.outputs]
    chosen = ", ".join(
        f"CASE WHEN some.{TICK} IS NULL THEN none.{name} ELSE some.{name} END AS {name}" for name in names
    )
    nothing = computed.sql((), f"{quoted(table)} WHERE FALSE", ())
    return (
        f"SELECT turns.{TICK}, turns.{UNTIL}, {chosen} FROM ({turns}) AS turns "
        f"LEFT JOIN ({states}) AS some ON some.{TICK} = turns.{TICK} CROSS JOIN ({nothing}) AS none"
    )
