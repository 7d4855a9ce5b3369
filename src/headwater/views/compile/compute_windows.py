"""Window functions: the rows they look at are projected, and computed again partition by partition.

Functions over one partitioning are computed in one step; other partitionings in further steps, one upon the other. All
steps pass on every column that is still asked for.

A window that has a name (WINDOW) is written out wherever it is used, before anything else is read:

    SELECT sum(y) OVER w2 FROM r WINDOW w1 AS (PARTITION BY x), w2 AS w1
        means   SELECT sum(y) OVER (PARTITION BY x) FROM r

Then the rest of the compiler sees its aggregates, GROUPING and sub-queries like any others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sqlglot import exp

from headwater.views.compile.attach_queries import attach_queries
from headwater.views.compile.expressions import (
    UNSETTLED,
    column,
    is_linked,
    replace_parts,
    settle,
    walk_outside,
)
from headwater.views.compile.filter_rows import filter_rows
from headwater.views.compile.keep_matching import carried_columns
from headwater.views.compile.names import Context, Sight
from headwater.views.compile.plan import Frame
from headwater.views.compile.reasons import LINKED, UNCOMMON, WHOLE_WINDOW, WINDOW, NoIncrementalForm
from headwater.views.compile.rounding import find_float_aggregates, float_aggregate_text
from headwater.views.compile.written import Written
from headwater.views.steps.computed import Windows
from headwater.views.text.spark_text import quoted, spark_text

_PARTITION = "{partition}"

_WINDOW_PARTS = ("partition_by", "order", "spec")
"""What a window that has a name is made of."""


def compute_windows(written: Written, frame: Frame, sight: Sight, context: Context) -> tuple[Frame, Written]:
    """Return the frame with the values of window functions, and what the SELECT says with names in their place."""
    calls = list(
        dict.fromkeys(node for part in written.parts() for node in walk_outside(part) if isinstance(node, exp.Window))
    )
    if not calls:
        return filter_rows(frame, written.qualify, sight, context), replace(written, qualify=())
    if any(is_linked(condition) for condition in frame.conditions):
        raise NoIncrementalForm(LINKED, "a window function in a linked sub-query")
    if any(isinstance(node, exp.Window) and node is not call for call in calls for node in walk_outside(call)):
        # rows of the outer one's touched partitions are not all that the inner one looks at
        raise NoIncrementalForm(UNCOMMON, "a window function inside another one")
    number = context.draft.number()
    marks: dict[exp.Expr, exp.Column] = {
        call: column(f"{UNSETTLED}{number}", f"w{place}") for place, call in enumerate(calls)
    }
    attached, frame = attach_queries(calls, frame, sight, context)
    whole: dict[exp.Expr, exp.Expr] = dict(zip(calls, attached, strict=True))
    while whole:
        keys = tuple(next(iter(whole.values())).args.get("partition_by") or ())
        chosen = {call: one for call, one in whole.items() if tuple(one.args.get("partition_by") or ()) == keys}
        frame = _compute(chosen, keys, marks, frame, context)
        whole = {call: one for call, one in whole.items() if call not in chosen}
    written = written.changed(lambda part: replace_parts(part, lambda node: marks.get(node)))  # noqa: PLW0108 — typed
    frame = filter_rows(frame, written.qualify, sight, context)
    return frame, replace(written, qualify=())


def _compute(
    calls: Mapping[exp.Expr, exp.Expr],
    keys: tuple[exp.Expr, ...],
    marks: Mapping[exp.Expr, exp.Column],
    frame: Frame,
    context: Context,
) -> Frame:
    draft = context.draft
    settled = {call: settle(one, frame.columns) for call, one in calls.items()}
    found_sums = find_float_aggregates(
        [one.this for one in settled.values()], partial(draft.types_of, frame.occurrences)
    )
    sums = {call: found is not None for call, found in zip(settled, found_sums, strict=True)}
    inside = [
        found
        for one in settled.values()
        for found in one.find_all(exp.Column)
        if found.table in {o.alias for o in frame.occurrences}
    ]
    carried = list(dict.fromkeys([*carried_columns(frame), *inside]))
    partition = [settle(key, frame.columns) for key in keys]
    node, names = draft.join(frame.occurrences, frame.conditions, [*carried, *partition])
    held = {
        (one.table, one.name): exp.column(exp.to_identifier(name, quoted=True))
        for one, name in zip(carried, names, strict=False)
    }
    passed = dict.fromkeys(names[: len(carried)])
    outputs = [(name, quoted(name)) for name in passed]
    outputs += [(marks[call].name, _text(settle(one, held), adds_doubles=sums[call])) for call, one in settled.items()]
    why = WINDOW if keys else WHOLE_WINDOW
    done = draft.regroup(node, names[len(carried) :], Windows(outputs=tuple(outputs)), why=why.code)
    occurrence = draft.occurrence(done)
    meant = {(one.table, one.name): column(occurrence.alias, name) for one, name in zip(carried, names, strict=False)}
    columns = {name: settle(value, meant) for name, value in frame.columns.items()}
    columns |= {(marks[call].table, marks[call].name): column(occurrence.alias, marks[call].name) for call in calls}
    return Frame(occurrences=(occurrence,), conditions=(), columns=columns)


def _text(call: exp.Expr, *, adds_doubles: bool) -> str:
    """Return a call over what Headwater partitions by. Its order is complete already (`complete_orders`)."""
    over = [f"PARTITION BY {_PARTITION}"]
    spec = call.args.get("spec")
    if order := call.args.get("order"):
        over.append(f"ORDER BY {spark_text(order).removeprefix('ORDER BY ').strip()}")
    if spec:
        over.append(spark_text(spec))
    window = f"({' '.join(over)})"
    return float_aggregate_text(call.this, over=window) if adds_doubles else f"{spark_text(call.this)} OVER {window}"


def spell_out_windows(select: exp.Select) -> exp.Select:
    """Return a SELECT with its named windows written out.

    A name that is not defined stays: Spark says so of the author's text.

    >>> import sqlglot
    >>> text = "SELECT sum(y) OVER w AS s FROM r WINDOW v AS (PARTITION BY x), w AS v"
    >>> spell_out_windows(sqlglot.parse_one(text, read="spark")).sql(dialect="spark")
    'SELECT SUM(y) OVER (PARTITION BY x) AS s FROM r'
    """
    named = {one.this.name.lower(): one for one in select.args.get("windows") or ()}
    if not named:
        return select
    result = select.copy()
    result.set("windows", None)
    result.set("expressions", [_spelled_out(item, named) for item in select.expressions])
    for clause in ("qualify", "order"):
        if found := select.args.get(clause):
            result.set(clause, _spelled_out(found, named))
    return result


def _spelled_out(expression: exp.Expr, named: Mapping[str, exp.Window]) -> exp.Expr:
    def written(node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Window) or not node.alias:
            return None
        window = _defined(node, named)
        if window is None:
            return None
        result = node.copy()
        result.set("alias", None)
        for part in _WINDOW_PARTS:
            result.set(part, window.args.get(part))
        return result

    return replace_parts(expression, written)


def _defined(window: exp.Window, named: Mapping[str, exp.Window]) -> exp.Window | None:
    """Return the window that has a specification of its own, along names. None if there is none."""
    seen: set[str] = set()
    while window.alias:
        name = window.alias.lower()
        if name in seen or name not in named or any(window.args.get(part) for part in _WINDOW_PARTS):
            return None
        seen.add(name)
        window = named[name]
    return window
