"""What an algorithm asks and is answered: events in, effects out, no I/O.

An algorithm is a generator. It yields row requests that do not depend on each other, is sent their results in the same
order, and returns its own result. Who looks the rows up (a live source, a replica on Spark, a script in a test) is not
its business.
"""

from __future__ import annotations

from typing import Protocol

from headwater.deltas.lookup import B_co, Sight
from headwater.model.position import Tick
from headwater.model.relation import RelationName


class Log(Protocol[B_co]):
    """The accepted transactions, as far as an algorithm may look: all that a result saw are known by then."""

    def seen_after(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> B_co:
        """Return the signed rows of the transactions that were seen and whose tick is after this one."""
        ...

    def unseen_upto(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> B_co:
        """Return the signed rows of the transactions that were not seen and whose tick is not after this one."""
        ...
