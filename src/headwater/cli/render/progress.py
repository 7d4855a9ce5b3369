"""Events while a long verb runs: bars and one moving line on a terminal, log lines elsewhere, on standard error."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn

from headwater.cli.render.json_text import to_json
from headwater.errors import HeadwaterError
from headwater.observe.events import (
    BatchCommitted,
    BootstrapProgress,
    CheckEstimated,
    CheckProgress,
    Event,
    Idle,
    Listener,
    PlanningStarted,
    SparkStarted,
    SparkStarting,
    TransactionsAccepted,
    fan_out,
    ignore_event,
)
from headwater.observe.logbook import level_of, log_event, sentence_of

_COUNTED_SECONDS = 10.0


class LogForm(Enum):
    """How events are written while a verb runs."""

    TEXT = "text"
    JSON = "json"


@contextmanager
def progress(*, as_json: bool, debug: bool, log_form: LogForm = LogForm.TEXT) -> Iterator[Listener]:
    """Give a block the listener that fits where its output goes."""
    if log_form is LogForm.JSON:
        with _json_lines(logging.DEBUG if debug else logging.INFO) as listener:
            yield listener
    elif debug:
        yield log_event
    elif as_json:
        yield ignore_event
    elif sys.stderr.isatty():
        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            transient=True,
        ) as bars:
            yield fan_out(_Bars(bars), _Notices(bars))
    else:
        yield _WrittenLines()


@contextmanager
def _json_lines(level: int) -> Iterator[Listener]:
    """Write each event as one line of JSON, and so what libraries and our own modules log."""
    root, handler = logging.getLogger(), logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonRecord())
    before = root.handlers
    root.handlers = [handler]

    def listen(event: Event) -> None:
        if level_of(event) >= level:
            sys.stderr.write(json_line(event) + "\n")
            sys.stderr.flush()

    try:
        yield listen
    finally:
        root.handlers = before


def json_line(event: Event) -> str:
    """Return an event as one line: when, how much it matters, its name, its sentence, and all that it says.

    >>> from headwater.model.position import Tick
    >>> json.loads(json_line(Idle(tick=Tick(3))))["fields"]
    {'tick': 3}
    """
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    told = {name: _error(value) if isinstance(value, HeadwaterError) else value for name, value in values.items()}
    level, name = logging.getLevelName(level_of(event)).lower(), type(event).__name__
    return _json_text(level, name, sentence_of(event), {"fields": to_json(told)})


def _error(error: HeadwaterError) -> dict[str, str]:
    return {"code": error.code, "summary": error.summary, "detail": error.detail, "hint": error.hint}


def _json_text(level: str, name: str, message: str, more: dict[str, object]) -> str:
    said = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, "event": name}
    return json.dumps({**said, "message": message, **more}, ensure_ascii=False, allow_nan=False)


class _JsonRecord(logging.Formatter):
    """Formats what is logged beside the events."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line, with its traceback if it has one."""
        trace = {"traceback": self.formatException(record.exc_info)} if record.exc_info else {}
        return _json_text(record.levelname.lower(), record.name, record.getMessage(), {**trace})


class _Bars:
    """One bar per relation that is read and view that is checked, and one for ticks accepted and committed."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, event: Event) -> None:
        match event:
            case SparkStarting() | PlanningStarted():
                self._advance(sentence_of(event), None, None)
            case SparkStarted():
                self._bars.remove_task(self._tasks.pop(sentence_of(SparkStarting())))
            case BootstrapProgress(relation=relation, rows_read=rows, finished=finished):
                total = rows if finished else max(rows, event.rows_estimated)
                self._advance(f"reading {relation}", rows, total, note=_pace(event))
            case CheckProgress(view=view, states_checked=checked, states_expected=expected):
                self._advance(f"checking {view}", checked, expected)
            case TransactionsAccepted(last=last):
                self._advance("ticks", None, last)
            case BatchCommitted(hi=hi) | Idle(tick=hi):
                self._advance("ticks", hi, None)
            case _:
                pass

    def _advance(self, what: str, done: int | None, total: int | None, note: str = "") -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=None, note="")
        self._bars.update(self._tasks[what], completed=done, total=total, note=note)


def _pace(event: BootstrapProgress) -> str:
    """Return how fast a relation is read, and how long that takes."""
    left = "" if event.finished or event.seconds_left is None else f", {event.seconds_left:,.0f} s left"
    return f"{event.rows_per_second:,.0f} rows/s{left}"


class _Notices:
    """What a person must know stands above the bars and stays."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars

    def __call__(self, event: Event) -> None:
        if level_of(event) >= logging.WARNING or isinstance(event, CheckEstimated):
            self._bars.console.print(sentence_of(event), style="yellow", markup=False, highlight=False)


class _WrittenLines:
    """A line for what matters. Of what is counted row by row, one now and then and one in the end."""

    def __init__(self) -> None:
        self._counted_at = time.monotonic()

    def __call__(self, event: Event) -> None:
        match event:
            case BootstrapProgress(finished=False):
                if time.monotonic() - self._counted_at < _COUNTED_SECONDS:
                    return
                self._counted_at = time.monotonic()
            case CheckProgress() if event.states_checked < event.states_expected:
                if time.monotonic() - self._counted_at < _COUNTED_SECONDS:
                    return
                self._counted_at = time.monotonic()
            case _:
                pass
        if level_of(event) >= logging.INFO:
            sys.stderr.write(sentence_of(event) + "\n")
