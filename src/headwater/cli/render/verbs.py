"""Results as pages: what a person wants to know first comes first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from headwater.api.results import QueryResult
from headwater.cli.render.page import Grid, Line, Page
from headwater.deltas.compare import format_row
from headwater.explain.result import ExplainResult
from headwater.judge.result import CheckResult, DemoResult, Sample, ViewCheck
from headwater.model.relation import COUNT, TICK
from headwater.observe.status import (
    BatchTiming,
    HistoryEntry,
    HistoryResult,
    MemoryStatus,
    MessageCount,
    RefreshResult,
    ReleaseResult,
    SourceStatus,
    StatusResult,
    TimingResult,
    ViewStatus,
    WaitingPart,
)
from headwater.project.plan_result import Action, OwnerSqlResult, PlanResult, RunResult
from headwater.project.teardown_result import TeardownResult

_BAD, _GOOD, _WARN, _QUIET = "red", "green", "yellow", "dim"
_MESSAGE_NUMBERS = ("probes", "keys", "rows", "bytes", "rows rebased")


def draw_plan(result: PlanResult) -> Page:
    """Show what `run` would do, what the owner has to run first, and what may turn out slow."""
    page: list[Line | Grid] = []
    if result.changes:
        rows = tuple(
            (step.action.value, f"{step.subject.value} {step.name}", _count(step.row_estimate, "about "), step.reason)
            for step in result.changes
        )
        page.append(Grid(headings=("do", "what", "rows", "why"), rows=rows, right=frozenset({"rows"})))
    else:
        page.append(Line(text="nothing to do: the warehouse is what the project says", style=_GOOD))
    kept = [step.name for step in result.steps if step.action is Action.KEEP]
    if kept:
        page.append(Line(text=f"kept as they are: {', '.join(kept)}", style=_QUIET))
    page.extend(
        Line(text=f"left as it is: {step.subject.value} {step.name}: {step.reason}", style=_BAD)
        for step in result.steps
        if step.action is Action.LEAVE
    )
    for ours, title in ((False, "the tables' owner has to run first:"), (True, "`run` will run at the sources:")):
        statements = [sql for sql in result.owner_sql if sql.ours is ours]
        if statements:
            page.append(Line(text=title, style="" if ours else _WARN))
            page.extend(Line(text=f"  {sql.statement}  -- at {sql.source}") for sql in statements)
    page.extend(Line(text=f"warning: {warning}", style=_WARN) for warning in result.warnings)
    if result.lost_history:
        lost = ", ".join(result.lost_history)
        page.append(Line(text=f"the history of {lost} will be deleted: `run` asks first, or needs --yes", style=_WARN))
    return page


def draw_owner_sql(result: OwnerSqlResult) -> Page:
    """Show statements as a file that `psql -f` runs."""
    return [Line(text=f"{statement};") for statement in result.statements]


def draw_run(result: RunResult) -> Page:
    """Show what a run did."""
    ticks = result.hi - result.lo
    did = (
        f"{_several(ticks, 'tick')} in {_several(result.commit_count, 'commit')}, "
        f"{_several(result.row_count, 'view row')} changed, {result.seconds:.1f} s"
    )
    return [Line(text=f"{result.ended.value} at tick {result.hi}: {did}", style=_GOOD)]


def draw_status(result: StatusResult) -> Page:
    """Show sources, views, and who maintains the warehouse."""
    page: list[Line | Grid] = []
    if result.last_commit is None:
        page.append(Line(text="nothing committed yet: start with `headwater run`"))
    else:
        commit = result.last_commit
        page.append(Line(text=f"tick {commit.tick}, committed {_time(commit.committed_at)}"))
    match result.maintainer:
        case None:
            page.append(Line(text="no maintainer runs", style=_WARN))
        case maintainer if maintainer.alive:
            page.append(Line(text=f"maintained by {maintainer.holder}", style=_GOOD))
        case maintainer:
            seen = _time(maintainer.seen_at)
            page.append(Line(text=f"last maintained by {maintainer.holder}, seen {seen}", style=_WARN))
    if result.log_first is not None and result.log_last is not None:
        page.append(Line(text=f"change log: ticks {result.log_first} to {result.log_last}", style=_QUIET))
    page.extend(_memory_lines(result.memory))
    page.append(
        Grid(
            headings=("source", "state", "followed to", "last transaction", "bytes behind", "seconds behind"),
            rows=tuple(_source_row(source) for source in result.sources),
            right=frozenset({"bytes behind", "seconds behind"}),
        )
    )
    page.extend(line for source in result.sources for line in _source_error(source))
    page.extend(_readings(result))
    page.append(
        Grid(
            headings=("view", "guarantee", "from tick", "to tick", "rows", "refresh"),
            rows=tuple(_view_row(view) for view in result.views),
            right=frozenset({"from tick", "to tick", "rows"}),
        )
    )
    if result.waiting_parts:
        page.append(
            Grid(
                title="global transactions that wait for a part",
                headings=("id", "arrived", "missing", "seconds old"),
                rows=tuple(_waiting_row(one) for one in result.waiting_parts),
                right=frozenset({"seconds old"}),
            )
        )
        page.append(Line(text="  do:  if a part will never come: headwater release ID"))
    if result.messages and result.messages_since is not None:
        page.append(
            Grid(
                title=f"asked since {_time(result.messages_since)}",
                headings=("source", "for view", *_MESSAGE_NUMBERS),
                rows=tuple((count.source, count.view, *_message_numbers(count)) for count in result.messages),
                right=frozenset(_MESSAGE_NUMBERS),
            )
        )
    page.extend(_self_maintained(result))
    for view in result.views:
        if view.stopped is not None:
            stop = view.stopped
            page.append(Line(text=f'view "{view.name}" stopped at tick {stop.tick}: {stop.summary}', style=_BAD))
            if stop.hint:
                page.append(Line(text=f"  do:  {stop.hint}"))
    return page


def _memory_lines(memory: MemoryStatus | None) -> list[Line]:
    if memory is None:
        return []
    parts = {
        "captures": memory.captures_bytes,
        "log": memory.tail_bytes,
        "journal": memory.journal_bytes,
        "rows": memory.rows_bytes,
        "batch": memory.batch_bytes,
    }
    listed = ", ".join(f"{name} {_size(byte_count)}" for name, byte_count in parts.items())
    spark = "" if memory.spark_limit_bytes is None else f"; Spark may use {_size(memory.spark_limit_bytes)}"
    used = f"{_size(memory.used_bytes)} of {_size(memory.limit_bytes)} ({listed})"
    return [Line(text=f"memory: {used}; mapped {_size(memory.mapped_bytes)}{spark}", style=_QUIET)]


def _size(byte_count: int) -> str:
    return f"{byte_count / 10**6:,.0f} MB"


def draw_query(result: QueryResult, row_limit: int | None) -> Page:
    """Show a query's rows, up to the limit, and their tick."""
    shown = result.table if row_limit is None else result.table.slice(0, row_limit)
    rows = zip(*(column.to_pylist() for column in shown.columns), strict=True)
    numbers = frozenset(
        field.name for field in result.table.schema if str(field.type).startswith(("int", "float", "double", "decimal"))
    )
    grid = Grid(
        headings=tuple(result.table.column_names),
        rows=tuple(tuple(_cell(value) for value in row) for row in rows),
        right=numbers,
    )
    left_out = result.table.num_rows - shown.num_rows
    more = f", {left_out} of them not shown (--limit)" if left_out else ""
    return [grid, Line(text=f"{_several(result.table.num_rows, 'row')} at tick {result.tick}{more}", style=_QUIET)]


def draw_changes(view: str, changes: pa.Table) -> Page:
    """Show what came and went, tick by tick."""
    columns = [name for name in changes.column_names if name not in (TICK, COUNT)]
    values = [changes[name].to_pylist() for name in (TICK, COUNT, *columns)]
    rows = tuple(
        (str(tick), f"{count:+}", *(_cell(value) for value in row)) for tick, count, *row in zip(*values, strict=True)
    )
    grid = Grid(headings=("tick", "count", *columns), rows=rows, right=frozenset({"tick", "count"}))
    ticks = len(set(values[0]))
    said = f'{_several(len(rows), "change")} of view "{view}" in {_several(ticks, "tick")}'
    return [grid, Line(text=said, style=_QUIET)]


def draw_history(result: HistoryResult) -> Page:
    """Show a view's commits."""
    grid = Grid(
        headings=("ticks", "committed", "came", "went", "probes", "Spark jobs", "seconds", "parts"),
        rows=tuple(
            (
                _tick_range(entry),
                _time(entry.committed_at),
                _count(entry.rows_added),
                _count(entry.rows_removed),
                _count(entry.probe_count),
                _count(entry.spark_job_count),
                f"{sum(entry.seconds.values()):.2f}",
                ", ".join(f"{part} {seconds:.2f}" for part, seconds in entry.seconds.items()),
            )
            for entry in result.commits
        ),
        right=frozenset({"ticks", "came", "went", "probes", "Spark jobs", "seconds"}),
    )
    page: list[Line | Grid] = [Line(text=f'view "{result.view}", born at tick {result.birth}'), grid]
    asked = tuple(
        (_tick_range(entry), count.source, *_message_numbers(count))
        for entry in result.commits
        for count in entry.asked
    )
    if asked:
        headings = ("ticks", "source", *_MESSAGE_NUMBERS)
        right = frozenset({"ticks", *_MESSAGE_NUMBERS})
        page.append(Grid(title="asked of sources", headings=headings, rows=asked, right=right))
    return page


def draw_timing(result: TimingResult) -> Page:
    """Show where the milliseconds of a view's batches went."""
    parts = tuple(result.batches[0].milliseconds) if result.batches else ()
    rows = tuple(
        (
            _tick_range(one),
            _time(one.committed_at),
            *("–" if (spent := one.milliseconds[part]) is None else f"{spent:.1f}" for part in parts),
            _count(one.spark_job_count),
        )
        for one in result.batches
    )
    headings = ("ticks", "committed", *parts, "Spark jobs")
    grid = Grid(headings=headings, rows=rows, right=frozenset({*headings} - {"committed"}))
    return [Line(text=f'view "{result.view}": milliseconds of each batch, of all its views together'), grid]


def _tick_range(entry: HistoryEntry | BatchTiming) -> str:
    return f"{entry.lo + 1}" if entry.hi == entry.lo + 1 else f"{entry.lo + 1}–{entry.hi}"


def draw_explain(result: ExplainResult) -> Page:
    """Show how a view is maintained, in five lines."""
    more = f"`headwater explain {result.view} --full` shows every step"
    return [*(Line(text=line) for line in result.summary), Line(text=more)]


def draw_explain_in_full(result: ExplainResult) -> Page:
    """Show how a view is maintained, step by step."""
    return [Line(text=result.text)]


def draw_check(result: CheckResult) -> Page:
    """Show what the judge found, and where a promise was broken."""
    grid = Grid(
        headings=("view", "promised", "found", "states checked", "judged by", "through tick"),
        rows=tuple(
            (
                view.view,
                view.promised.value,
                view.verdict.guarantee.value,
                _count(view.verdict.states_checked),
                _engines(view),
                str(view.tick),
            )
            for view in result.views
        ),
        right=frozenset({"states checked", "through tick"}),
    )
    broken = [Line(text=f'view "{view.view}": {view.verdict}', style=_BAD) for view in result.views if not view.kept]
    good = Line(text="every promise was kept", style=_GOOD)
    return [grid, Line(text=f"judged by each view's own SQL: {result.rewriting}", style=_QUIET), *(broken or [good])]


def _engines(view: ViewCheck) -> str:
    """Return who judged a view: one engine, or several with the number of states of each."""
    if len(view.judged_by) == 1:
        return next(iter(view.judged_by))
    return ", ".join(f"{engine} {count}" for engine, count in view.judged_by.items())


def draw_release(result: ReleaseResult) -> Page:
    """Show what was released, and when it will be done."""
    part = result.released
    when = "is accepted now" if result.maintained else "will be accepted by the next `headwater run`"
    return [
        Line(
            text=f'released "{part.id}": its part of {", ".join(part.arrived)} {when}, without the others', style=_GOOD
        ),
        Line(text=f"one of {', '.join(part.missing)} that comes late becomes a tick of its own", style=_QUIET),
    ]


def draw_refresh(result: RefreshResult) -> Page:
    """Show from where to where views were brought."""
    rows = tuple((view.name, str(view.lo), str(view.hi)) for view in result.views)
    by = "by the maintainer that runs" if result.maintained else "by this command, since no maintainer runs"
    return [
        Grid(headings=("view", "from tick", "to tick"), rows=rows, right=frozenset({"from tick", "to tick"})),
        Line(text=f"up to date, {by}, {result.seconds:.1f} s", style=_GOOD),
    ]


def draw_teardown(result: TeardownResult) -> Page:
    """Show what was dropped, and what is left."""
    return [
        *(Line(text=f"dropped {dropped.what} at {dropped.source}") for dropped in result.dropped),
        *(Line(text=f"could not drop at {failed.source}: {failed.what}", style=_BAD) for failed in result.failed),
        *(Line(text=f"left at {slot.source}: {slot}", style=_WARN) for slot in result.left),
        Line(text=f"the warehouse stays in {result.warehouse}", style=_QUIET),
    ]


def draw_demo(result: DemoResult) -> Page:
    """Show a few rows at two ticks, what the judge found at every tick, and where to go next."""
    states = sum(view.verdict.states_checked for view in result.check.views)
    found = "every one was exact" if result.check.kept else "not every one was right"
    commits = _several(result.commit_count, "commit")
    transactions = _several(result.transaction_count, "transaction")
    answers = f"{_several(result.corrected_answer_count, 'answer')} of {result.answer_count:,}"
    return [
        *(block for sample in result.samples for block in (*_sample(sample), Line(text=""))),
        *draw_check(result.check),
        Line(text=""),
        Line(text=f"{transactions} of {_several(result.source_count, 'server')} became as many ticks, in {commits}"),
        Line(text=f"{answers} came from another moment than was needed, and were corrected by rebasing"),
        Line(
            text=f"{_several(states, 'state')} recomputed from what the servers' own triggers noted: {found}",
            style=_GOOD if result.check.kept else _BAD,
        ),
        Line(text=f"{result.seconds:.0f} s, and nothing of it is left running", style=_QUIET),
        Line(text=""),
        Line(text="see it: `headwater demo --ui` shows all of this in a browser while it plays"),
        Line(text="next: `headwater init shop` makes a project for databases of your own"),
    ]


def _sample(sample: Sample) -> Sequence[Line | Grid]:
    rows = tuple(tuple(_cell(value) for value in row) for row in sample.rows)
    numbers = frozenset(
        column
        for column, *values in zip(sample.columns, *sample.rows, strict=True)
        if any(isinstance(value, int | float | Decimal) for value in values)
    )
    title = f"{sample.view} at tick {sample.tick}"
    return [Grid(title=title, headings=sample.columns, rows=rows, right=numbers)]


def _source_row(source: SourceStatus) -> tuple[str, ...]:
    return (
        source.name,
        source.state.value
        + ("" if source.polled_every_seconds is None else f", polled every {source.polled_every_seconds:g} s"),
        ", ".join(map(str, source.positions)),
        "" if source.last_transaction is None else str(source.last_transaction),
        source.lag if source.lag_bytes is None else _count(source.lag_bytes),
        "" if source.lag_seconds is None else f"{source.lag_seconds:.1f}",
    )


def _readings(result: StatusResult) -> list[Grid]:
    numbers = ("rows read", "of about", "rows per second", "seconds left")
    rows = tuple(
        (
            one.relation,
            *map(_count, (one.rows_read, one.rows_estimated, round(one.rows_per_second))),
            "" if one.seconds_left is None else f"{one.seconds_left:,.0f}",
        )
        for source in result.sources
        for one in source.reading
    )
    title = "relations that are read for the first time"
    return [Grid(title=title, headings=("relation", *numbers), rows=rows, right=frozenset(numbers))] if rows else []


def _message_numbers(count: MessageCount) -> tuple[str, ...]:
    numbers = (count.probe_count, count.key_count, count.row_count, count.byte_count, count.corrected_row_count)
    return tuple(_count(number) for number in numbers)


def _waiting_row(one: WaitingPart) -> tuple[str, ...]:
    return (one.id, ", ".join(one.arrived), ", ".join(one.missing), f"{one.age_seconds:,.0f}")


def _self_maintained(result: StatusResult) -> list[Grid]:
    numbers = ("batches", "without asking", "keys known")
    rows = tuple(
        (one.view, _count(one.batch_count), _count(one.unasked_count), _count(one.known_key_count))
        for one in result.self_maintenance
    )
    title = "views that ask only for what they do not know"
    return [Grid(title=title, headings=("view", *numbers), rows=rows, right=frozenset(numbers))] if rows else []


def _due(view: ViewStatus) -> str:
    if view.due_at is None:
        return view.refresh
    return f"{view.refresh}, {'now' if view.due_at <= datetime.now(UTC) else f'next {_time(view.due_at)}'}"


def _view_row(view: ViewStatus) -> tuple[str, ...]:
    ticks = tuple("" if tick is None else str(tick) for tick in (view.birth, view.frontier))
    return (view.name, view.guarantee.value, *ticks, _count(view.row_count), _due(view))


def _source_error(source: SourceStatus) -> Sequence[Line]:
    if not source.last_error:
        return ()
    error = Line(text=f'source "{source.name}": {source.last_error}{_retry(source)}', style=_BAD)
    return (error, Line(text=f"  do: {source.hint}")) if source.hint else (error,)


def _retry(source: SourceStatus) -> str:
    return "" if source.retry_in_seconds is None else f" (trying again in {source.retry_in_seconds:.0f} s)"


def _cell(value: object) -> str:
    return value if isinstance(value, str) else format_row((value,))[1:-1]


def _count(count: int | None, before: str = "") -> str:
    return "" if count is None else f"{before}{count:,}"


def _several(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def _time(time: datetime) -> str:
    return time.isoformat(sep=" ", timespec="seconds")
