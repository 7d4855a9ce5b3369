"""Materialized SQL views over several independent databases, kept exact on Apache Spark by moving only what changed.

① a source commits; its log is followed. ② the transaction is appended to the change log and gets the next tick.
③ the batch of new ticks becomes the exact change of every view at every tick. ④ all kept tables move in one commit.
⑤ readers see the views at any tick.
"""

from headwater.api.opening import open  # noqa: A004 - `headwater.open` reads well
from headwater.errors import HeadwaterError

__all__ = ["HeadwaterError", "open"]
