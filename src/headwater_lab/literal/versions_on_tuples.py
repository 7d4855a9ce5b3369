"""Version numbers attached to the rows of an answer, as paper 001's Lemma 1 has them: an empty answer has none.

    R1 = {(0,0)}, R2 = {}      R2 +(0,1), and R1 -(0,0) before the query arrives: the answer is empty

Nothing is compensated, because there is no row whose version could say so; the row that was there is never put back,
and the delete that follows takes away what was never added (PAPERS.md §4, erratum 1).
"""

from __future__ import annotations

from typing import Any

from headwater.deltas.lookup import RowRequest, RowResult
from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.version_numbers import by_versions
from headwater.maintenance.rebase import Log, rebase
from headwater.maintenance.visits import Manner
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return by_versions(view, lo, log, manner=Manner(closure=True, correct=rebase_rows))


def rebase_rows(probe: RowRequest[Any], answer: RowResult[Any], log: Log[Any], tick: Tick) -> Any:
    """Bring an answer to a tick by the version of its rows, if it has rows."""
    return rebase(probe, answer, log, tick) if len(answer.rows) else answer.rows


VERSIONS_ON_TUPLES = Variant(
    name="versions-on-tuples",
    of="version-numbers",
    wrong="an empty answer has no row to carry a version, and is not rebased",
    run=_run,
)
