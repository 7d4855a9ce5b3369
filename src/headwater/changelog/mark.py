"""What every commit of the change log says about the whole log, so that opening it reads one commit and no rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.position import Position, Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMark:
    """The newest tick, the newest position of every source, and the epoch of the writer that said so.

    >>> mark = LogMark(tick=Tick(7), epoch=2, positions={"shop": Position(source="shop", history="71:1", offset=90)})
    >>> LogMark.parse(mark.text()) == mark
    True
    """

    tick: Tick
    epoch: int
    positions: Mapping[str, Position]

    def text(self) -> str:
        """Return the mark as it is written."""
        positions = {source: [position.history, position.offset] for source, position in self.positions.items()}
        return json.dumps({"tick": self.tick, "epoch": self.epoch, "positions": positions}, sort_keys=True)

    def numbers(self) -> dict[str, int]:
        """Return what Delta keeps as application transactions."""
        return {"headwater": self.tick, "headwater.epoch": self.epoch}

    @staticmethod
    def parse(text: str) -> LogMark:
        """Read a written mark."""
        value = json.loads(text)
        positions = {
            source: Position(source=source, history=history, offset=offset)
            for source, (history, offset) in value["positions"].items()
        }
        return LogMark(tick=Tick(value["tick"]), epoch=value["epoch"], positions=positions)
