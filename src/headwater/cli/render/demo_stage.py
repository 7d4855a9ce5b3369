"""The demo while it plays: a moving picture on a terminal, a line every now and then elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from headwater.demo.scenes import ConsoleOpened, DemoEvent, DemoListener, Pulse, Replayed, Scene
from headwater.observe.events import BatchCommitted, BootstrapProgress, CheckEstimated, CheckProgress, Idle
from headwater.observe.logbook import level_of, log_event, sentence_of

_LINE_SECONDS = 5.0
_REPLAY_PARTS = 4
_WIDTHS = (20, 15, 8, 12, 12)


@contextmanager
def stage(*, as_json: bool, debug: bool) -> Iterator[DemoListener]:
    """Give a block the listener that fits where its output goes."""
    if debug:
        yield _log
    elif as_json:
        yield lambda _: None
    elif sys.stdout.isatty():
        with Live(console=Console(highlight=False), refresh_per_second=8, transient=True) as live:
            yield _Picture(live)
    else:
        yield _Lines()


class _Picture:
    """Everything at a glance: the scenes so far, sources, views, and a bar for what takes time."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._scene: Scene | None = None
        self._scene_began = time.monotonic()
        self._done: list[str] = []
        self._pulse: Pulse | None = None
        self._commit_count = 0
        self._bar: tuple[float, float] | None = None
        self._note = ""
        self._spinner = Spinner("dots")

    def __call__(self, event: DemoEvent) -> None:
        match event:
            case Scene():
                self._turn_to(event)
            case Pulse():
                self._pulse = event
                self._bar = (event.part, 1.0) if self._scene is Scene.WRITING else None
            case ConsoleOpened(address=address):
                self._live.console.print(f"the console is at {address}", markup=False)
            case Replayed(tick=tick, through=through):
                self._bar, self._note = (tick, through), f"tick {tick:,} of {through:,}"
            case BatchCommitted():
                self._commit_count += 1
            case _ if level_of(event) >= logging.WARNING:
                self._live.console.print(sentence_of(event), style="yellow", markup=False)
            case _:
                return
        self._live.update(self._draw())

    def _turn_to(self, scene: Scene) -> None:
        now = time.monotonic()
        if self._scene is not None:
            self._live.console.print(Text(f"✓ {self._scene.value}  ({now - self._scene_began:.1f} s)", style="green"))
        self._scene, self._scene_began, self._bar, self._note = scene, now, None, ""

    def _draw(self) -> Group:
        parts: list[Text | Table | Spinner] = []
        if self._scene is not None:
            self._spinner.update(text=Text(self._scene.value, style="bold"))
            parts.append(self._spinner)
        if self._bar is not None:
            done, total = self._bar
            row = Table.grid(padding=(0, 1))
            row.add_row(Text(" "), ProgressBar(total=total, completed=min(done, total), width=50), Text(self._note))
            parts.append(row)
        if self._pulse is not None and self._scene in (Scene.BIRTH, Scene.WRITING, Scene.SETTLING):
            parts += [Text(), _source_table(self._pulse), Text(), _view_table(self._pulse), Text(), self._counts()]
        return Group(*parts)

    def _counts(self) -> Text:
        accepted = 0 if self._pulse is None else self._pulse.accepted
        return Text(f"  {accepted:,} ticks accepted, {self._commit_count:,} commits", style="dim")


def _source_table(pulse: Pulse) -> Table:
    table = _table("source", "tables", "commits", "followed to", "bytes behind")
    for source in pulse.sources:
        position = "" if source.position is None else str(source.position).removeprefix(f"{source.name}:")
        behind = "" if source.lag_bytes is None else f"{source.lag_bytes:,}"
        table.add_row(source.name, source.tables, f"{source.commit_count:,}", position, behind)
    return table


def _view_table(pulse: Pulse) -> Table:
    table = _table("view", "", "rows", "at tick", "ticks behind")
    for view in pulse.views:
        if view.frontier is None:
            table.add_row(view.name, "", "", "not born yet", "")
            continue
        rows = "" if view.row_count is None else f"{view.row_count:,}"
        table.add_row(view.name, "", rows, f"{view.frontier:,}", f"{max(0, pulse.accepted - view.frontier):,}")
    return table


def _table(*headings: str) -> Table:
    """Return a table whose columns are as wide as those of the other, so that they stand still."""
    table = Table(header_style="bold", box=None, padding=(0, 1, 0, 1))
    for heading, width in zip(headings, _WIDTHS, strict=True):
        table.add_column(
            heading, justify="left" if heading in ("source", "view", "tables", "") else "right", min_width=width
        )
    return table


class _Lines:
    """A line for every scene, and one every few seconds within it."""

    def __init__(self) -> None:
        self._commit_count = 0
        self._told_at = 0.0
        self._parts_told = 0

    def __call__(self, event: DemoEvent) -> None:
        match event:
            case Scene():
                _write(event.value)
            case Pulse() if time.monotonic() - self._told_at >= _LINE_SECONDS:
                self._told_at = time.monotonic()
                _write(f"  {self._pulse_line(event)}")
            case Replayed(tick=tick, through=through) if tick * _REPLAY_PARTS >= (self._parts_told + 1) * through:
                self._parts_told += 1
                _write(f"  tick {tick:,} of {through:,}")
            case ConsoleOpened(address=address):
                _write(f"  the console is at {address}")
            case BatchCommitted():
                self._commit_count += 1
            case Pulse() | Replayed() | BootstrapProgress() | CheckEstimated() | CheckProgress() | Idle():
                return
            case _ if level_of(event) >= logging.WARNING:
                _write(f"  {sentence_of(event)}")
            case _:
                return

    def _pulse_line(self, pulse: Pulse) -> str:
        sources = ", ".join(f"{source.name} {source.commit_count:,}" for source in pulse.sources)
        behind = sum(source.lag_bytes or 0 for source in pulse.sources)
        views = ", ".join(
            f"{view.name} {'not born yet' if view.row_count is None else f'{view.row_count:,} rows'}"
            for view in pulse.views
        )
        return (
            f"commits at sources: {sources}; {behind:,} bytes behind; {pulse.accepted:,} ticks accepted; "
            f"{self._commit_count:,} commits; {views}"
        )


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _log(event: DemoEvent) -> None:
    match event:
        case Scene():
            logging.getLogger("headwater").info("%s", event.value)
        case ConsoleOpened(address=address):
            logging.getLogger("headwater").info("the console is at %s", address)
        case Pulse() | Replayed():
            return
        case _:
            log_event(event)
