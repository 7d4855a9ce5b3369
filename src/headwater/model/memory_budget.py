"""How the memory of the maintainer's process is divided: one number of the project, `[maintenance] memory`, in shares.

    memory ─┬─ 1/8  captures   transactions on their way from the sources to the change log
            ├─ 1/8  tail       the newest rows of the change log
            ├─ 1/8  journal    changes of views that are committed and not in the views' own tables yet
            ├─ 1/4  rows       rows of replicas and group tables that are looked up
            └─ 3/8  batch      what one batch computes with

What does not fit into its share is not refused. Captures are written to temporary files, or wait in their source's own
log. Of the change log the oldest rows are let go, and are read from its files. The journal is folded earlier. Rows that
are looked up are mapped from files. A batch that is too large is computed from files on Spark. Mapped pages are not
counted: the system takes them back when it needs them. Nor are the interpreter and the libraries, which take about
250 MB, and small buffers of a fixed size, which are named where they are.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Self

DEFAULT_BYTES = 2 * 10**9
"""What `[maintenance] memory` is unless the project says otherwise."""
LEAST_BYTES = 10**5
MOST_BYTES = 2**50

_ROW_BYTES_IN_BATCH = 1_000
"""About what a signed row takes while a batch computes with it: on the way in, joined, on the way out."""


class Share:
    """A part of the budget. What holds memory takes it here, and gives it back. Threads may share it."""

    def __init__(self, limit_bytes: int) -> None:
        """Begin with nothing taken."""
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        """What is taken now."""
        self.mapped_bytes = 0
        """What is mapped from files instead. It has no limit."""
        self._lock = threading.Lock()

    def take(self, byte_count: int) -> bool:
        """Take some bytes if there is room for them, and tell whether there was.

        >>> share = Share(10)
        >>> share.take(7), share.take(4), share.held_bytes
        (True, False, 7)
        """
        with self._lock:
            if self.held_bytes + byte_count > self.limit_bytes:
                return False
            self.held_bytes += byte_count
            return True

    def give_back(self, byte_count: int) -> None:
        """Give back what was taken."""
        with self._lock:
            self.held_bytes -= byte_count
            assert self.held_bytes >= 0, "nothing is given back that was not taken"

    def note_mapped(self, byte_count: int) -> None:
        """Count bytes that are mapped from a file from now on, or no longer if they are fewer than none."""
        with self._lock:
            self.mapped_bytes += byte_count


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBudget:
    """The shares of one process.

    >>> budget = MemoryBudget.of(800)
    >>> budget.tail_bytes, budget.rows.limit_bytes, budget.batch_bytes, budget.spill_bytes(source_count=5)
    (100, 200, 300, 5)
    """

    limit_bytes: int
    rows: Share = field(compare=False)
    """For rows of replicas and group tables, and their indexes."""

    @classmethod
    def of(cls, limit_bytes: int) -> Self:
        """Return a budget of which nothing is taken."""
        return cls(limit_bytes=limit_bytes, rows=Share(limit_bytes // 4))

    @property
    def tail_bytes(self) -> int:
        """How much of the change log is held."""
        return self.limit_bytes // 8

    @property
    def journal_bytes(self) -> int:
        """How large the journal's changes may be before they are folded, which reads them once more."""
        return self.limit_bytes // 16

    @property
    def batch_bytes(self) -> int:
        """What a batch may take."""
        return 3 * self.limit_bytes // 8

    @property
    def queue_bytes(self) -> int:
        """How large captures may be together that wait to be appended, and those that one append takes."""
        return self.limit_bytes // 32

    def spill_bytes(self, source_count: int) -> int:
        """Return how large the rows of one source may become while they are gathered. The others go to files."""
        return self.limit_bytes // 32 // max(1, source_count)

    def incomplete_bytes(self, source_count: int) -> int:
        """Return how much of one source may wait for the other parts of global transactions."""
        return self.limit_bytes // 32 // max(1, source_count)

    def batch_rows(self, most: int) -> int:
        """Return up to how many signed rows a bag is held in memory: `most`, or fewer if the share is smaller.

        >>> MemoryBudget.of(2 * 10**9).batch_rows(300_000), MemoryBudget.of(10**7).batch_rows(300_000)
        (300000, 3750)
        """
        return max(1, min(most, self.batch_bytes // _ROW_BYTES_IN_BATCH))


DEFAULT_BUDGET = MemoryBudget.of(DEFAULT_BYTES)
"""For what runs outside of a maintainer. Nothing is counted in it for long."""
SPILL_BYTES = DEFAULT_BUDGET.spill_bytes(1)
"""What a single source may gather in memory unless the project says otherwise."""
