"""Materialized SQL views over several independent databases, kept exact on Apache Spark by moving only what changed.

① a source commits; its log is followed. ② the transaction is appended to the change log and gets the next tick.
③ the batch of new ticks becomes the exact change of every view at every tick. ④ all kept tables move in one commit.
⑤ readers see the views at any tick.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.runtime.events import Listener
    from headwater.session import Headwater

__all__ = ["HeadwaterError", "open"]


def open(path: str | Path = ".", *, listener: Listener | None = None) -> Headwater:  # noqa: A001 - `headwater.open` reads well
    """Open the project in a folder; Spark and the drivers are imported only now."""
    from headwater.runtime.events import unheard  # noqa: PLC0415 - importing headwater must stay quick
    from headwater.session import open_project  # noqa: PLC0415 - as above

    return open_project(path, listener=listener or unheard)
