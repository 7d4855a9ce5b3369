"""The first test of a join that no rows pass, where sought rows have no derivation.

Occurrences are bound in the order in which they are read. Each brings its tests: what is sought of its own columns, its
own conditions, its partners among those that are bound, and what is sought of all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from headwater.deltas.on_arrow import ArrowBag, ArrowRestriction, ArrowResult
from headwater.engine.state.reach import led_to, pinned_by
from headwater.engine.state.segment_rows import SegmentRows
from headwater.engine.state.sought import PLACE, Sought, numbered
from headwater.lineage.derivation_sql import SOUGHT
from headwater.lineage.obstacles import ObstacleKind
from headwater.model.relation import RelationName
from headwater.views.compile.expressions import columns_in, tables_in
from headwater.views.steps.join import Condition, JoinView, Occurrence, Output
from headwater.views.text.spark_text import quoted, spark_text

_EXAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTest:
    """Something that rows must meet: a condition, or that an output has the sought value."""

    of: Condition | Output
    sql: str
    aliases: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Where a join comes to nothing: at an occurrence, at a test (None: it has no rows that could meet any).

    `within` says which rows of the occurrence are missing, if it can be said by values. `examples` are values of the
    test's columns in rows that came so far, by alias and column.
    """

    kind: ObstacleKind
    occurrence: Occurrence
    test: JoinTest | None
    within: ArrowRestriction | None
    examples: tuple[Mapping[tuple[str, str], object], ...] = ()


def find_obstacle(rows: SegmentRows, reader: RelationName, join: JoinView, sought: Sought) -> Blocked | None:
    """Return where the derivations of sought rows end, or None if there are some."""
    whatever = replace(join, conditions=())  # rows that fail a condition are looked at, too: it may be the obstacle
    found = rows.reach(reader, whatever, sought)
    return _JoinWalk(rows=rows, join=join, sought=sought, found=found).first()


@dataclass(frozen=True, slots=True, kw_only=True)
class _JoinWalk:
    rows: SegmentRows
    join: JoinView
    sought: Sought
    found: Mapping[str, ArrowResult]

    def first(self) -> Blocked | None:
        passed: list[JoinTest] = []
        bound: list[str] = []
        for alias in self.found:
            bound.append(alias)
            tests = list(self._tests(alias, bound))
            counts = self._counts(bound, passed, tests)
            if not counts[0]:
                return self._blocked(alias, bound, passed, None)
            for test, count in zip(tests, counts[1:], strict=True):
                if not count:
                    return self._blocked(alias, bound, passed, test)
                passed.append(test)
        return None

    def _tests(self, alias: str, bound: Sequence[str]) -> Iterator[JoinTest]:
        """Yield what can be tested once an occurrence is bound, and not before. What may fail comes last."""
        every = [*self._outputs(), *self._conditions()]
        testable = [test for test in every if alias in test.aliases and test.aliases <= set(bound)]
        if len(bound) == 1:
            testable += [test for test in every if not test.aliases]
        yield from sorted(
            testable, key=lambda test: (test.of.fallible, len(test.aliases) > 1, isinstance(test.of, Output))
        )

    def _conditions(self) -> Iterator[JoinTest]:
        for condition in self.join.conditions:
            yield JoinTest(of=condition, sql=f"({spark_text(condition.expression)})", aliases=condition.aliases)

    def _outputs(self) -> Iterator[JoinTest]:
        for output in self.join.outputs:
            if output.name in self.sought.columns:
                sql = f"({spark_text(output.expression)}) <=> {quoted(SOUGHT)}.{quoted(output.name)}"
                yield JoinTest(of=output, sql=sql, aliases=tables_in(output.expression))

    def _counts(self, bound: Sequence[str], passed: Sequence[JoinTest], tests: Sequence[JoinTest]) -> list[int]:
        """Return how many combinations come so far, and how many pass the first test, the first two, ..."""
        upto = [" AND ".join(test.sql for test in tests[: place + 1]) for place in range(len(tests))]
        values = ["COUNT(*)", *(f"SUM(CASE WHEN {text} THEN 1 ELSE 0 END)" for text in upto)]
        listed = ", ".join(f"{value} AS n{place}" for place, value in enumerate(values))
        table = self._run(f"SELECT {listed}", bound, passed)
        return [column[0].as_py() or 0 for column in table.columns]

    def _run(self, select: str, bound: Sequence[str], passed: Sequence[JoinTest], after: str = "") -> pa.Table:
        names = {alias: f"occurrence_{place}" for place, alias in enumerate(bound)}
        sources = ", ".join([f"sought AS {quoted(SOUGHT)}", *(f"{names[a]} AS {quoted(a)}" for a in bound)])
        where = f" WHERE {' AND '.join(test.sql for test in passed)}" if passed else ""
        tables = {names[alias]: numbered(self.found[alias].rows.counted) for alias in bound}
        return self.rows.run(f"{select} FROM {sources}{where}{after}", {**tables, "sought": self.sought.rows})

    def _blocked(self, alias: str, bound: Sequence[str], passed: Sequence[JoinTest], test: JoinTest | None) -> Blocked:
        occurrence = self.join.occurrence(alias)
        others = [one for one in bound if one != alias]
        pinned = pinned_by(occurrence, self.join, self.sought)
        is_value = test is not None and isinstance(test.of, Output)
        if test is not None and (is_value or len(test.aliases) <= 1):
            kind = ObstacleKind.VALUE if is_value else ObstacleKind.CONDITION
            return Blocked(
                kind=kind, occurrence=occurrence, test=test, within=pinned, examples=self._examples(bound, passed, test)
            )
        leading = self._led(occurrence, others, passed)
        if test is None and pinned is not None and leading is None:
            return Blocked(kind=ObstacleKind.NO_ROW, occurrence=occurrence, test=None, within=pinned)
        kind = (
            ObstacleKind.NO_PARTNER
            if leading is not None
            else ObstacleKind.NO_ROW
            if test is None
            else ObstacleKind.CONDITION
        )
        examples = () if test is None else self._examples(bound, passed, test)
        return Blocked(kind=kind, occurrence=occurrence, test=test, within=leading, examples=examples)

    def _led(
        self, occurrence: Occurrence, others: Sequence[str], passed: Sequence[JoinTest]
    ) -> ArrowRestriction | None:
        """Return the values under which a partner is missing: those of the rows that came so far."""
        earlier_tests = [test for test in passed if test.aliases <= set(others)]
        for other in others:
            place = f"SELECT DISTINCT {quoted(other)}.{quoted(PLACE)} AS {quoted(PLACE)}"
            came = self.found[other].rows.table.take(self._run(place, others, earlier_tests)[PLACE])
            within = led_to(occurrence, other, self.join, {other: replace(self.found[other], rows=ArrowBag(came))})
            if within is not None:
                return within
        return None

    def _examples(
        self, bound: Sequence[str], passed: Sequence[JoinTest], test: JoinTest
    ) -> tuple[Mapping[tuple[str, str], object], ...]:
        columns = list(dict.fromkeys((one.table, one.name) for one in columns_in(test.of.expression)))
        if not columns:
            return ()
        listed = ", ".join(f"{quoted(a)}.{quoted(c)} AS v{place}" for place, (a, c) in enumerate(columns))
        table = self._run(f"SELECT DISTINCT {listed}", bound, passed, f" LIMIT {_EXAMPLES}")
        values = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return tuple(dict(zip(columns, row, strict=True)) for row in values)
