"""What `prove` answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.model.position import Tick

OWN_ERRORS = frozenset({"HW-251", "HW-281", "HW-501", "HW-502", "HW-503", "HW-504"})
"""Steps that differ from the SQL, a view that is not understood, rows that contradict each other: our own errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongState:
    """A state that was not what the author's text gives, and the file that plays it again."""

    file: str
    sql: str
    tick: Tick
    difference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveResult:
    """What random views and histories showed, in all runs of one record."""

    seed: int
    view_count: int
    """Distinct texts that were accepted."""
    state_count: int
    """States compared, each at a tick that changed something the view reads."""
    judged_by_spark: int
    """Views whose author's text was run by Spark; of the others by DuckDB."""
    pair_count: int
    """Pairs of constructs that are in enough accepted views."""
    pairs_possible: int
    """Pairs that are not refused by rule."""
    ruled_out: Mapping[str, str]
    """Pairs that are refused by rule, with the code."""
    refused: Mapping[str, int]
    """Refused texts by code."""
    stopped: Mapping[str, int]
    """Views that had no state from some tick on, by code; their states before it were compared."""
    unjudged: tuple[str, ...]
    """Texts that were maintained, and that no engine could run over whole relations."""
    disagreed: tuple[str, ...]
    """Texts for which DuckDB gives another state than the view and Spark, with the first difference."""
    wrong: tuple[WrongState, ...]
    seconds: float

    @property
    def own_failures(self) -> Mapping[str, int]:
        """Refusals and stops that are Headwater's own errors, by code."""
        found = Counter(self.refused) + Counter(self.stopped)
        return {code: count for code, count in found.items() if code in OWN_ERRORS}

    @property
    def is_proved(self) -> bool:
        """Whether no state was wrong, Headwater failed over no view, and every view could be judged."""
        return not self.wrong and not self.own_failures and not self.unjudged

    @property
    def refused_share(self) -> float:
        """The share of texts that were refused."""
        refused = sum(self.refused.values())
        return refused / (refused + self.view_count) if refused else 0.0
