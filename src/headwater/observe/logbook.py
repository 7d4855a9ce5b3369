"""Events as log lines: one short sentence each, at the level at which a person wants to read it."""

from __future__ import annotations

import logging
from typing import assert_never

from headwater.errors import HeadwaterError
from headwater.model.position import Tick
from headwater.observe.events import (
    BatchCommitted,
    BatchStarted,
    BootstrapProgress,
    CheckEstimated,
    CheckpointRolled,
    CheckProgress,
    Event,
    Housekept,
    Idle,
    PlanningStarted,
    ProbeAnswered,
    ProjectChanged,
    ProjectRefused,
    ProjectWarned,
    PublishFailed,
    SelfMaintenanceTested,
    SourceConnected,
    SourceDisconnected,
    SourceGone,
    SourceWarning,
    SparkStarted,
    SparkStarting,
    TransactionsAccepted,
    ViewBorn,
    ViewComputed,
    ViewDropped,
    ViewPublished,
    ViewStopped,
    WarehouseAdopted,
    WarehouseUpgraded,
)

_LOGGER = logging.getLogger("headwater")


def log_event(event: Event) -> None:
    """Write an event to the logger `headwater`. This is a listener."""
    level, sentence = level_of(event), sentence_of(event)
    _LOGGER.log(level, "%s", sentence)


def level_of(event: Event) -> int:
    """Return how much an event matters: what a person must act on is an error, what repairs itself a warning.

    >>> logging.getLevelName(level_of(Idle(tick=Tick(3))))
    'DEBUG'
    """
    match event:
        case ViewStopped() | SourceGone() | ProjectRefused():
            return logging.ERROR
        case (
            SourceDisconnected()
            | SourceWarning()
            | ProjectWarned()
            | PublishFailed()
            | (WarehouseAdopted() | WarehouseUpgraded())
        ):
            return logging.WARNING
        case SourceConnected() | BatchCommitted() | ViewBorn() | ViewDropped() | ProjectChanged():
            return logging.INFO
        case SparkStarting() | PlanningStarted() | BootstrapProgress() | CheckProgress() | CheckEstimated():
            return logging.INFO
        case TransactionsAccepted() | BatchStarted() | ProbeAnswered() | ViewComputed() | SelfMaintenanceTested():
            return logging.DEBUG
        case SparkStarted() | CheckpointRolled() | Housekept() | ViewPublished() | Idle():
            return logging.DEBUG
        case _:
            assert_never(event)


def sentence_of(event: Event) -> str:  # noqa: C901, PLR0911, PLR0912 — one sentence per kind of event, in one place
    """Return an event as one sentence.

    >>> sentence_of(BatchCommitted(lo=Tick(3), hi=Tick(7), row_count=12, seconds={"spark": 0.21, "commit": 0.02}))
    'committed ticks 4 to 7: 12 rows in 0.23 s (spark 0.21, commit 0.02)'
    >>> sentence_of(ViewDropped(view="sales"))
    'view "sales" is no longer kept'
    """
    match event:
        case SparkStarting():
            return "starting Spark…"
        case SparkStarted(seconds=seconds):
            return f"Spark started in {seconds:.1f} s"
        case PlanningStarted(views=views, sources=sources):
            return f"planning {_several(views, 'view')} over {_several(sources, 'source')}…"
        case SourceConnected(source=source, positions=positions):
            return f'following source "{source}" from {", ".join(map(str, positions))}'
        case SourceDisconnected(source=source, error=error, retry_in_seconds=seconds):
            return f'source "{source}" cannot be followed now, trying again in {seconds:.2g} s: {error.summary}'
        case SourceGone(source=source, error=error):
            return f'source "{source}" is lost: {error.summary}. {_why(error)}'
        case SourceWarning(source=source, sentence=sentence):
            return f'source "{source}": {sentence}'
        case TransactionsAccepted(source=source, first=first, last=last, row_count=row_count, position=position):
            return f'accepted {_ticks(first, last)} from source "{source}" up to {position}: {_rows(row_count)}'
        case BatchStarted(lo=lo, hi=hi):
            return f"computing {_ticks(Tick(lo + 1), hi)}"
        case ProbeAnswered():
            return (
                f'{event.relation} answered {event.key_count} keys for view "{event.view}": {_rows(event.row_count)}, '
                f"{event.byte_count} bytes in {event.seconds:.3f} s, {event.corrected_row_count} corrected by rebasing"
            )
        case ViewComputed(view=view, lo=lo, hi=hi, changed_rows=changed, row_count=row_count):
            read = sum(event.read_rows.values())
            what = f'view "{view}" computed for {_ticks(Tick(lo + 1), hi)}'
            return f"{what}: {_rows(changed)} changed, {read} read, {row_count} in the view"
        case SelfMaintenanceTested(view=view, lo=lo, hi=hi, suffices=suffices, known_key_count=key_count):
            asked = "no source was asked" if suffices else "sources were asked for the rest"
            return f'view "{view}", {_ticks(Tick(lo + 1), hi)}: {key_count} keys were known, {asked}'
        case BatchCommitted(lo=lo, hi=hi, row_count=row_count, seconds=seconds):
            parts = ", ".join(f"{part} {spent:.2f}" for part, spent in seconds.items())
            total = sum(seconds.values())
            return f"committed {_ticks(Tick(lo + 1), hi)}: {_rows(row_count)} in {total:.2f} s ({parts})"
        case ViewBorn(view=view, tick=tick):
            return f'view "{view}" is readable from tick {tick} on'
        case ViewStopped(view=view, tick=tick, error=error):
            return f'view "{view}" stopped at tick {tick}: {error.summary}'
        case ViewDropped(view=view):
            return f'view "{view}" is no longer kept'
        case ProjectChanged(steps=steps):
            return f"the project was changed: {', '.join(steps) or 'no view changes'}"
        case ProjectRefused(error=error):
            return f"the project was changed and is refused, the old one goes on: {error.summary}. {_why(error)}"
        case ProjectWarned(warning=warning):
            return f"warning: {warning}"
        case WarehouseAdopted(project=project, warehouse=warehouse):
            return f'"{warehouse}" did not say which project it belongs to; it now belongs to "{project}"'
        case WarehouseUpgraded(warehouse=warehouse, before=before, after=after):
            return f'"{warehouse}" is upgraded from format {before} to {after}; older versions cannot read it any more'
        case BootstrapProgress(relation=relation, rows_read=rows_read, finished=True):
            return f"read {relation}: {_rows(rows_read)}, {event.rows_per_second:.0f} rows/s"
        case BootstrapProgress(relation=relation, rows_read=rows_read, rows_estimated=rows_estimated):
            left = "" if event.seconds_left is None else f", {event.seconds_left:.0f} s left"
            about = f"{rows_read} of about {_rows(rows_estimated)}"
            return f"reading {relation}: {about}, {event.rows_per_second:.0f} rows/s{left}"
        case CheckEstimated(states_expected=states, recomputed_expected=recomputed, seconds=seconds_left):
            several = f"{len(event.views)} views" if len(event.views) > 1 else f'view "{event.views[0]}"'
            runs = f"{states} states of {several}, {recomputed} of them recomputed"
            return f"checking {runs}: this takes about {seconds_left:.0f} s"
        case CheckProgress(view=view, states_checked=checked, states_expected=expected):
            return f'checking view "{view}": {checked} of {expected} states'
        case CheckpointRolled(table=table, tick=tick, seconds=seconds):
            return f"rolled the checkpoint of {table} to tick {tick} in {seconds:.2f} s"
        case Housekept(table=table, files_removed=files_removed, seconds=seconds):
            return f"removed {files_removed} files of {table} in {seconds:.2f} s"
        case ViewPublished(view=view, tick=tick, rows_added=added, rows_removed=removed, seconds=seconds):
            moved = f"{_rows(added)} added, {removed} removed in {seconds:.2f} s"
            return f'published view "{view}" at tick {tick}: {moved}'
        case PublishFailed(view=view, error=error):
            return f'view "{view}" could not be published, trying again: {error.summary}. {_why(error)}'
        case Idle(tick=tick):
            return f"idle at tick {tick}"
        case _:
            assert_never(event)


def _why(error: HeadwaterError) -> str:
    return ". ".join(part for part in (error.detail, error.hint) if part).replace("\n", " ")


def _ticks(first: Tick, last: Tick) -> str:
    return f"tick {first}" if first == last else f"ticks {first} to {last}"


def _rows(count: int) -> str:
    return _several(count, "row")


def _several(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"
