"""What the maintainer says of its sources, in a small file that `status` reads without asking it.

The file is replaced as a whole, about twice a second, and at once when somebody waits for what it says. It is for
people, for `query --after` and for readers that wait for a source's log; nothing that has to be right depends on it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import HeadwaterError, NotReadable, SourceLost
from headwater.model.position import Position, Positions, Tick, of_source, written_positions
from headwater.model.project import Project
from headwater.observe.status import (
    MemoryStatus,
    MessageCount,
    RelationReading,
    SelfMaintenanceCount,
    SourceState,
    SourceStatus,
    WaitingPart,
)
from headwater.storage.notes import write_text
from headwater.warehouse.folders import STATUS
from headwater.warehouse.followed import noted_positions, noted_status
from headwater.warehouse.lease import maintainer_is_alive
from headwater.warehouse.query import Warehouse

if TYPE_CHECKING:  # `status` reads what the maintainer said, and needs nothing of it
    from headwater.changelog.accept import Acceptor
    from headwater.changelog.change_log import ChangeLog
    from headwater.changelog.follow import SourceThread
    from headwater.changelog.global_parts import Incomplete
    from headwater.changelog.global_transaction_buffer import Piece
    from headwater.model.memory_budget import MemoryBudget
    from headwater.observe.messages import Messages
    from headwater.warehouse.journal import Journal


def memory_status(
    budget: MemoryBudget, acceptor: Acceptor, log: ChangeLog, journal: Journal, spark_limit_bytes: int | None
) -> MemoryStatus:
    """Return what this process holds."""
    arrow_bytes, captures_bytes = pa.total_allocated_bytes(), acceptor.waiting_bytes
    tail_bytes, journal_bytes = log.tail.byte_count, journal.held_bytes
    known_bytes = captures_bytes + tail_bytes + journal_bytes + budget.rows.held_bytes
    return MemoryStatus(
        limit_bytes=budget.limit_bytes,
        used_bytes=max(arrow_bytes, known_bytes),
        arrow_bytes=arrow_bytes,
        captures_bytes=captures_bytes,
        tail_bytes=tail_bytes,
        journal_bytes=journal_bytes,
        rows_bytes=budget.rows.held_bytes,
        batch_bytes=max(0, arrow_bytes - known_bytes),
        mapped_bytes=budget.rows.mapped_bytes,
        spark_limit_bytes=spark_limit_bytes,
    )


def write_status(
    warehouse: str, acceptor: Acceptor, messages: Messages, memory: MemoryStatus, *, bootstrapping: bool
) -> None:
    """Say how every source is doing, what was asked, and what is held."""
    accepted, committed_at, now = acceptor.accepted_to(), acceptor.committed_at(), datetime.now(UTC)
    sources = {
        name: {
            "state": _state(thread, bootstrapping=bootstrapping).value,
            "positions": written_positions(of_source(accepted, name)),
            **_lag(thread, of_source(accepted, name), committed_at.get(name), now),
            "error": "" if thread.error is None else _told(thread.error),
            "hint": "" if thread.error is None else thread.error.hint,
            "retry_at": thread.retry_at,
            "polled_every_seconds": thread.source.abilities.polled_every_seconds,
            "reading": [asdict(one) for one in messages.reading(name)] if bootstrapping else [],
        }
        for name, thread in acceptor.threads().items()
    }
    asked = {
        "since": messages.since.isoformat(),
        "counts": [asdict(count) for count in messages.counts()],
        "tested": [asdict(count) for count in messages.tested()],
    }
    waiting = [_waiting_part(one) for one in acceptor.holding.waiting]
    said = {"said_at": now.isoformat(), "sources": sources, "messages": asked, "waiting_parts": waiting}
    write_text(warehouse, STATUS, json.dumps({**said, "memory": asdict(memory)}))


def _waiting_part(one: Incomplete[Piece]) -> dict[str, object]:
    return {
        "id": one.id,
        "arrived": [part.source for part in one.arrived],
        "missing": one.missing,
        "committed_at": min(part.value.committed_at for part in one.arrived).isoformat(),
    }


def _lag(thread: SourceThread, accepted: Positions, committed_at: datetime | None, now: datetime) -> dict[str, object]:
    """Return how far behind a source we are, while it tells."""
    behind = thread.lag.behind(accepted, committed_at, now) if thread.is_connected else None
    if behind is None:
        return {"lag": "", "lag_bytes": None, "lag_seconds": None}
    in_bytes = behind.distance.amount if behind.distance.unit == "bytes" else None
    return {"lag": str(behind.distance), "lag_bytes": in_bytes, "lag_seconds": behind.seconds}


def _told(error: HeadwaterError) -> str:
    return error.summary + (f": {error.detail}" if error.detail else "")


def _state(thread: SourceThread, *, bootstrapping: bool) -> SourceState:
    if thread.lost is not None:
        return SourceState.LOST
    if not thread.is_connected:
        return SourceState.UNAVAILABLE
    return SourceState.BOOTSTRAPPING if bootstrapping else SourceState.FOLLOWING


def read_sources(project: Project, warehouse: Warehouse) -> tuple[SourceStatus, ...]:
    """Return how the sources were doing when the maintainer last said so, and how far their logs were followed."""
    sources, alive = noted_status(warehouse.path).get("sources", {}), maintainer_is_alive(warehouse.path)
    known = warehouse.log.positions()
    slots = {name: slot.name for name, slot in warehouse.log.slots().items() if slot.has_begun}
    return tuple(
        replace(
            _status(source.name, sources.get(source.name), of_source(known, source.name), alive=alive),
            last_transaction=_last_transaction(warehouse, of_source(known, source.name)),
            slot=slots.get(source.name, ""),
        )
        for source in project.sources
    )


def _last_transaction(warehouse: Warehouse, held_to: Positions) -> Position | None:
    """Return where the newest transaction ends that the log holds of a source. None if it holds none."""
    with suppress(SourceLost, NotReadable):  # another server's log, or one that retention has dropped
        ticks = [(tick, one.source) for one in held_to.values() if (tick := warehouse.log.tick_at(one)) is not None]
        if ticks:
            tick, source = max(ticks)
            *_, (_, newest) = warehouse.log.transactions(source, Tick(tick - 1), tick)
            return newest.position
    return None


def forget_sources(warehouse: str, names: Collection[str]) -> None:
    """Forget what was said of sources, because what was made there has been dropped."""
    said = dict(noted_status(warehouse))
    if names & said.get("sources", {}).keys():
        said["sources"] = {name: one for name, one in said["sources"].items() if name not in names}
        write_text(warehouse, STATUS, json.dumps(said))


def read_messages(warehouse: Warehouse) -> tuple[datetime | None, tuple[MessageCount, ...]]:
    """Return since when the last maintainer counted, and what it asked of the sources."""
    said = noted_status(warehouse.path).get("messages")
    if said is None:
        return None, ()
    return datetime.fromisoformat(said["since"]), tuple(MessageCount(**count) for count in said["counts"])


def read_memory(warehouse: Warehouse) -> MemoryStatus | None:
    """Return what a running maintainer has said that it holds. None where none runs."""
    said = noted_status(warehouse.path).get("memory")
    return MemoryStatus(**said) if said is not None and maintainer_is_alive(warehouse.path) else None


def read_self_maintenance(warehouse: Warehouse) -> tuple[SelfMaintenanceCount, ...]:
    """Return how often the views of the last maintainer could do without asking."""
    return tuple(
        SelfMaintenanceCount(**count) for count in noted_status(warehouse.path).get("messages", {}).get("tested", ())
    )


def read_waiting_parts(warehouse: Warehouse) -> tuple[WaitingPart, ...]:
    """Return the global transactions that were incomplete when the last maintainer told."""
    now = datetime.now(UTC)
    said = [
        (one, datetime.fromisoformat(one["committed_at"]))
        for one in noted_status(warehouse.path).get("waiting_parts", ())
    ]
    return tuple(
        WaitingPart(
            id=one["id"],
            arrived=tuple(one["arrived"]),
            missing=tuple(one["missing"]),
            committed_at=committed_at,
            age_seconds=max(0.0, (now - committed_at).total_seconds()),
        )
        for one, committed_at in said
    )


def _status(name: str, said: Mapping[str, Any] | None, held: Positions, *, alive: bool) -> SourceStatus:
    if said is None:
        return SourceStatus(name=name, state=SourceState.NOT_STARTED, positions=tuple(held.values()))
    retry_at = said["retry_at"]
    known = tuple((noted_positions(name, said) or held).values())
    state = SourceState(said["state"])
    is_lost = state is SourceState.LOST and bool(said["error"])  # 0.1 also wrote this when a maintainer ended
    polled = said.get("polled_every_seconds")
    if not alive and not is_lost:  # what is lost stays so until it is mended
        return SourceStatus(name=name, state=SourceState.NOT_STARTED, positions=known, polled_every_seconds=polled)
    return SourceStatus(
        name=name,
        state=state,
        positions=known,
        lag=str(said.get("lag", "")),
        lag_bytes=said.get("lag_bytes"),
        lag_seconds=said.get("lag_seconds"),
        last_error=str(said["error"]),
        hint=str(said.get("hint", "")),
        retry_in_seconds=max(0.0, retry_at - time.time()) if isinstance(retry_at, float) else None,
        reading=tuple(RelationReading(**one) for one in said.get("reading", ())),
        polled_every_seconds=polled,
    )
