"""The tracing law of a join, as SQL: the derivations of sought rows.

A derivation is one combination of a row of each occurrence for which all conditions are true; it derives a row if its
outputs are the row's values. The lineage of a row is what its derivations are made of, split by occurrence:

    TQ(T) = Split( σ conditions (o0 ⋈ o1 ⋈ ...) ⋉ T )                               (paper 004, §3.3)

Tables are numbered (`PLACE`), and a derivation is the numbers of its rows: equal rows stay apart, and no value
has to be carried or compared twice.

Where a union takes rows away (`twins`), the derivations that are taken away are those that have a partner:

    (P − N)(T) = derivations of T in P for which N's further occurrences have no rows that make N's conditions true

What may raise is evaluated on real derivations only: `possible_sql` finds those that fulfil the conditions that cannot
fail, and `real_sql` sorts them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headwater.engine.state.sought import PLACE
from headwater.lineage.twins import Twin
from headwater.views.steps.join import Condition, JoinView, Output
from headwater.views.text.spark_text import quoted, spark_text

SOUGHT = "#sought"
_SOUGHT = quoted(SOUGHT)
_PLACE = quoted(PLACE)


def place_of(number: int) -> str:
    """Return the column that holds the place of the row of an occurrence, given the occurrence's number."""
    return f"#{number}"


def possible_sql(
    join: JoinView, tables: Mapping[str, str], sought: str, columns: Sequence[str], twins: Sequence[Twin] = ()
) -> str:
    """Return the query for the places of sought rows (`SOUGHT`) and of the rows that derive them.

    `tables` names a numbered table per alias, those of the twins' further occurrences among them; `sought` is one of
    the sought values in `columns`, outputs of the join.
    """
    places = [f"{quoted(o.alias)}.{_PLACE} AS {quoted(place_of(n))}" for n, o in enumerate(join.occurrences)]
    sources = [f"{quoted(sought)} AS {_SOUGHT}", *_sources(tables, (o.alias for o in join.occurrences))]
    tests = [
        *_tests(condition for condition in join.conditions if not condition.fallible),
        *_matches(output for output in join.outputs if output.name in columns and not output.fallible),
        *(_unmatched(twin, tables) for twin in twins),
    ]
    outputs = ", ".join([f"{_SOUGHT}.{_PLACE} AS {_SOUGHT}", *places])
    return f"SELECT {outputs} FROM {', '.join(sources)}{_where(tests)}"


def real_sql(join: JoinView, tables: Mapping[str, str], sought: str, columns: Sequence[str]) -> str:
    """Return the query for the places of those among possible derivations that are real.

    All tables have one row per possible derivation, and its number: no other combination of rows is looked at.
    """
    aliases = [o.alias for o in join.occurrences]
    sources = [f"{quoted(sought)} AS {_SOUGHT}", *_sources(tables, aliases)]
    tests = [
        *(f"{quoted(alias)}.{_PLACE} = {_SOUGHT}.{_PLACE}" for alias in aliases),
        *_tests(condition for condition in join.conditions if condition.fallible),
        *_matches(output for output in join.outputs if output.name in columns and output.fallible),
    ]
    return f"SELECT {_SOUGHT}.{_PLACE} AS {_PLACE} FROM {', '.join(sources)}{_where(tests)}"


def outputs_sql(join: JoinView, tables: Mapping[str, str]) -> str:
    """Return the query for the outputs of derivations, each different row once. Tables are as those of `real_sql`."""
    first, *others = [o.alias for o in join.occurrences]
    tests = [f"{quoted(alias)}.{_PLACE} = {quoted(first)}.{_PLACE}" for alias in others]
    values = ", ".join(f"{spark_text(output.expression)} AS {quoted(output.name)}" for output in join.outputs)
    return f"SELECT DISTINCT {values} FROM {', '.join(_sources(tables, [first, *others]))}{_where(tests)}"


def is_possible_only(join: JoinView, columns: Sequence[str]) -> bool:
    """Tell whether possible derivations have to be looked at again."""
    outputs = any(output.fallible for output in join.outputs if output.name in columns)
    return outputs or any(condition.fallible for condition in join.conditions)


def _sources(tables: Mapping[str, str], aliases: Iterable[str]) -> list[str]:
    return [f"{quoted(tables[alias])} AS {quoted(alias)}" for alias in aliases]


def _tests(conditions: Iterable[Condition]) -> list[str]:
    return [f"({spark_text(condition.expression)})" for condition in conditions]


def _matches(outputs: Iterable[Output]) -> list[str]:
    return [f"({spark_text(output.expression)}) <=> {_SOUGHT}.{quoted(output.name)}" for output in outputs]


def _unmatched(twin: Twin, tables: Mapping[str, str]) -> str:
    sources = ", ".join(_sources(tables, (o.alias for o in twin.further)))
    return f"NOT EXISTS (SELECT 1 FROM {sources}{_where(_tests(twin.taken.conditions))})"


def _where(tests: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(tests)}" if tests else ""
