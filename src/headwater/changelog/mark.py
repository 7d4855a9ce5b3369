"""What every commit of the change log says about the whole log, so that opening it reads one commit and no rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headwater.model.position import Positions, Tick, read_positions, written_positions

_START = Tick(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSlot:
    """The slot by which the log follows a source, so that no other warehouse follows by it.

    Once it `has_begun`, the log holds everything that the source committed from the slot's first position on. What has
    a tick up to `since` was committed before that, and what was read of the source then was given up.
    """

    name: str
    has_begun: bool
    since: Tick = _START


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMark:
    """The newest tick, how far the log holds every source, by which slots, and the epoch of the writer that said so.

    A position of a source's log is where its newest transaction ends, or a later one up to which there is nothing for
    us. It is stored with its proof, by which the source recognises its log when it is followed again.

    >>> from headwater.model.position import Position
    >>> mark = LogMark(tick=Tick(7), epoch=2, positions={"shop": Position(source="shop", history="71:1", offset=90)},
    ...                slots={"shop": LogSlot(name="headwater_shop_1a2b3c4d", has_begun=True)})
    >>> LogMark.parse(mark.text()) == mark
    True
    """

    tick: Tick
    epoch: int
    positions: Positions
    slots: Mapping[str, LogSlot] = field(default_factory=dict)

    def text(self) -> str:
        """Return the mark as it is written."""
        positions = written_positions(self.positions)
        slots = {
            source: [slot.name, slot.has_begun, *([slot.since] if slot.since else [])]
            for source, slot in self.slots.items()
        }
        said = {"tick": self.tick, "epoch": self.epoch, "positions": positions, "slots": slots}
        return json.dumps(said, sort_keys=True)

    def numbers(self) -> dict[str, int]:
        """Return what Delta keeps as application transactions."""
        return {"headwater": self.tick, "headwater.epoch": self.epoch}

    def following(self, positions: Positions) -> LogMark:
        """Return the mark with logs of sources at these positions, where they are further than before."""
        further = {
            log: position
            for log, position in positions.items()
            if log not in self.positions or self.positions[log] < position
        }
        return replace(self, positions={**self.positions, **further}) if further else self

    @staticmethod
    def parse(text: str) -> LogMark:
        """Read a written mark. One from before slots were noted has none."""
        value = json.loads(text)
        positions = read_positions(value["positions"])
        slots = {
            source: LogSlot(name=name, has_begun=has_begun, since=Tick(since[0] if since else 0))
            for source, (name, has_begun, *since) in value.get("slots", {}).items()
        }
        return LogMark(tick=Tick(value["tick"]), epoch=value["epoch"], positions=positions, slots=slots)
