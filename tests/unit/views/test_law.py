"""The law's queries: their shape, and that they give what recomputation gives, at every tick."""

from __future__ import annotations

import re
from collections import Counter

import duckdb
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.model.relation import Column, Relation, RelationName
from headwater.views.laws.join import law_sql, renamed_sql
from headwater.views.steps.join import JoinView
from headwater_lab.one_join import declare

R = RelationName(source="one", name="r")
S = RelationName(source="two", schema="odd schema", name="s")
CATALOG = {
    name: Relation(name=name, columns=tuple(Column(name=c, type="int", native="int4") for c in ("k", "X", "y z")))
    for name in (R, S)
}
TABLES = {R: "stamped r", S: "stamped_s"}
LO = 10

Row = tuple[object, ...]
Stamped = dict[RelationName, list[tuple[Row, int, int]]]


def to_duckdb(sql: str) -> str:
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


def declared(sql: str) -> JoinView:
    return declare("v", sql, CATALOG)


def test_one_relation_has_no_greatest_and_literal_outputs_are_not_ordinals() -> None:
    sql = law_sql(declared("SELECT 2 AS two, X FROM one.r"), TABLES, LO)
    assert "GREATEST" not in sql
    assert "GROUP BY v0, v1, _tick" in sql


def test_what_cannot_raise_is_evaluated_in_one_level() -> None:
    sql = law_sql(declared("SELECT a.X FROM one.r a JOIN two.`odd schema`.s b ON a.k = b.k"), TABLES, LO)
    assert sql.count("GROUP BY") == 1
    assert "JOIN `stamped_s` AS o1 ON (o0.`k` = o1.`k`)" in sql
    assert "GREATEST(o0._tick, o1._tick) > 10" in sql


def test_what_may_raise_waits_until_phantoms_are_netted() -> None:
    sql = law_sql(
        declared("SELECT a.X / b.X AS q FROM one.r a, two.`odd schema`.s b WHERE a.k = b.k AND a.X / b.X > 1"),
        TABLES,
        LO,
    )
    assert sql.count("GROUP BY") == 2
    innermost = sql[sql.rindex("(\n") : sql.index(") AS combined")]
    assert "/" not in innermost
    assert "(o0.`k` = o1.`k`)" in innermost
    # a filter on grouping columns alone would be pushed below the aggregation by Spark, onto the phantoms
    assert re.search(r"WHERE CASE WHEN _count <> 0 THEN \(o0_c\d / o1_c\d > 1\) ELSE FALSE END", sql)


def test_occurrences_are_joined_along_the_edges() -> None:
    sql = law_sql(
        declared("SELECT a.X FROM one.r a, one.r b, one.r c WHERE a.k = c.k AND c.X = b.X AND a.X < b.X"), TABLES, LO
    )
    assert re.findall(r"(?:FROM|JOIN) `stamped r` AS (o\d)", sql) == ["o0", "o2", "o1"]
    assert "CROSS JOIN" not in sql


def test_recomputation_is_the_authors_text_with_other_names() -> None:
    sql = "SELECT r.X, -- one.r stays\n  one.r.k AS `a;b`\nFROM one.r, two.`odd schema`.s AS q\nWHERE q.k = ';';"
    assert renamed_sql(sql, TABLES) == (
        "SELECT r.X, -- one.r stays\n  `r`.k AS `a;b`\nFROM `stamped r` AS `r`, `stamped_s` AS q\nWHERE q.k = ';' "
    )


# --- against recomputation -------------------------------------------------------------------------------------------

ALIASES = ("a", "b", "c")
column_names = st.sampled_from(["k", "X", "`y z`"])


@st.composite
def views(draw: st.DrawFn) -> str:
    """A random select-project-join view of one to three occurrences, in one of the ways SQL has to write it."""
    count = draw(st.integers(1, 3))
    aliases = ALIASES[:count]
    relations = [draw(st.sampled_from(["one.r", "two.`odd schema`.s"])) for _ in aliases]

    def column(among: tuple[str, ...]) -> str:
        return f"{draw(st.sampled_from(among))}.{draw(column_names)}"

    def condition(among: tuple[str, ...]) -> str:
        left, right = column(among), column(among)
        return draw(
            st.sampled_from(
                [
                    f"{left} = {right}",
                    f"{left} = {right}",
                    f"{left} < {right}",
                    f"{left} <=> {right}",
                    f"({left} = 1 OR {right} IS NULL)",
                    f"NOT {left} IN (1, {draw(st.sampled_from(['2', 'NULL']))})",
                    f"{left} BETWEEN 0 AND 1",
                    f"{left} + {right} > 1",
                    f"CASE WHEN {left} > 0 THEN {right} * 2 ELSE 1 END <> 2",
                ]
            )
        )

    source = f"{relations[0]} AS {aliases[0]}"
    for place in range(1, count):
        table = f"{relations[place]} AS {aliases[place]}"
        among = aliases[: place + 1]
        source += draw(
            st.sampled_from(
                [
                    f", {table}",
                    f" CROSS JOIN {table}",
                    f" JOIN {table} ON {condition(among)}",
                    f" JOIN {table} ON {aliases[place - 1]}.k = {aliases[place]}.k AND {condition(among)}",
                ]
                + ([f" JOIN {table} USING (k)"] if place == 1 else [])
            )
        )
    outputs = draw(
        st.lists(
            st.sampled_from(["{x}", "coalesce({x}, 7)", "1", "{x} - {y}", "CASE {x} WHEN 1 THEN {y} END"]),
            min_size=1,
            max_size=3,
        )
    )
    listed = ", ".join(f"{o.format(x=column(aliases), y=column(aliases))} AS out{n}" for n, o in enumerate(outputs))
    wheres = [condition(aliases) for _ in range(draw(st.integers(0, 2)))]
    where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
    return f"SELECT {listed} FROM {source}{where}"


values = st.sampled_from([None, 0, 1, 2])
rows = st.tuples(values, values, values)


@st.composite
def histories(draw: st.DrawFn) -> Stamped:
    """The rows of each relation at LO, and signed rows per later tick that never delete what is not there."""
    stamped: Stamped = {}
    for name in CATALOG:
        held = draw(st.lists(rows, max_size=4))
        entries = [(row, LO, 1) for row in held]
        for tick in range(LO + 1, LO + 4):
            for _ in range(draw(st.integers(0, 2))):
                if held and draw(st.booleans()):
                    row = draw(st.sampled_from(held))
                    held.remove(row)
                    entries.append((row, tick, -1))
                else:
                    row = draw(rows)
                    held.append(row)
                    entries.append((row, tick, 1))
        stamped[name] = entries
    return stamped


CONNECTION = duckdb.connect()


def fill(table: str, contents: list[Row], extra: str) -> None:
    CONNECTION.execute(f'CREATE OR REPLACE TABLE "{table}" (k INT, "X" INT, "y z" INT{extra})')
    if contents:
        marks = ", ".join("?" for _ in contents[0])
        CONNECTION.executemany(f'INSERT INTO "{table}" VALUES ({marks})', contents)


def recomputed_state(sql: str, stamped: Stamped, tick: int) -> Counter[Row]:
    """The view at one tick, by the author's own text over the rows as they were then."""
    for name, entries in stamped.items():
        held: Counter[Row] = Counter()
        for row, at, count in entries:
            if at <= tick:
                held[row] += count
        fill(f"at_{name.name}", list(held.elements()), "")
    text = renamed_sql(sql, {name: f"at_{name.name}" for name in stamped})
    return Counter(CONNECTION.execute(to_duckdb(text)).fetchall())


@given(sql=views(), stamped=histories())
@settings(max_examples=120, deadline=None)
def test_the_law_gives_the_change_of_every_tick(sql: str, stamped: Stamped) -> None:
    view = declared(sql)
    for name, entries in stamped.items():
        fill(TABLES[name], [(*row, at, count) for row, at, count in entries], ", _tick BIGINT, _count BIGINT")
    changes = CONNECTION.execute(to_duckdb(law_sql(view, TABLES, LO))).fetchall()
    assert all(count != 0 for *_, count in changes)
    assert len({row[:-1] for row in changes}) == len(changes)
    state = recomputed_state(sql, stamped, LO)
    for tick in range(LO + 1, LO + 4):
        before, state = state, recomputed_state(sql, stamped, tick)
        expected = {row: state[row] - before[row] for row in state | before if state[row] != before[row]}
        assert {tuple(row): count for *row, at, count in changes if at == tick} == expected
    assert all(LO < at <= LO + 3 for *_, at, _ in changes)
