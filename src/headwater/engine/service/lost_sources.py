"""When a source is lost for good: whether the run goes on without it, and what it says when it does not.

Views of the other sources go on, unless the run was asked to fail fast. A run that has lost all its sources ends in any
case: nothing would ever change, and whoever watches over the process should know.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.changelog.follow import SourceThread
from headwater.errors import SourceLost


def raise_if_lost(threads: Mapping[str, SourceThread], *, any_one: bool) -> None:
    """Raise why sources are lost for good: if all are, or any one if that is wanted."""
    lost = [thread.lost for thread in threads.values() if thread.lost is not None]
    if not lost or (len(lost) < len(threads) and not any_one):
        return
    if len(lost) == 1:
        raise lost[0]
    raise SourceLost(
        "all sources are lost" if len(lost) == len(threads) else "several sources are lost",
        code="HW-602",
        detail="\n".join(error.summary + (f": {error.detail}" if error.detail else "") for error in lost),
        hint="\n".join(dict.fromkeys(error.hint for error in lost if error.hint)),
    )
