"""Placing: where in the order of a source's ticks an answer belongs, if anywhere.

An answer of a live source saw a set of its transactions. An algorithm that needs channels in order can use it only
if that set is the source's ticks up to one of them: the answer is then delivered after that tick and before the next.

    ticks of s         3    5    6    8          5 was delivered when the question was asked
    seen               x    x    x               place 6: it is delivered after 6
    seen               x         x               a hole: 6 was seen and 5, before it, was not
    seen               x                         forgot: 5 was delivered already, and the answer does not know it

The last two fit nowhere and are asked for again. Both happen where a commit is in the log before it can be seen (a
synchronous standby); they pass.

`after` is a tick up to which everything was visible when the question was sent. It must not be taken from an answer
that came in meanwhile: one that was read later may come in earlier, and says nothing of this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from headwater.model.position import Tick
from headwater.model.transaction import Seen

AcceptedTicks = Iterable[tuple[Tick, int, str]]
"""A source's ticks after `after`, in order, with what readers know their transactions by: an identity, in a log.

Some may share a tick."""


def place(accepted: AcceptedTicks, seen: Seen, after: Tick, delivered: Tick) -> Tick | None:
    """Return the last tick that an answer saw, if it saw all before it, all that was delivered, and nothing after it.

    >>> from headwater.model.transaction import SeenUpTo
    >>> seen = SeenUpTo(last=69)
    >>> place([(Tick(5), 55, ""), (Tick(6), 60, ""), (Tick(8), 80, "")], seen, Tick(3), Tick(5))
    6
    """
    upto, is_over = after, False
    for tick, sights in _by_tick(accepted, seen):
        if sights == {True} and not is_over:
            upto = tick
            continue
        if True in sights or tick <= delivered:
            return None
        is_over = True
    return upto


def seen_upto(accepted: AcceptedTicks, seen: Seen, after: Tick) -> Tick:
    """Return the last tick of a source up to which everything was seen.

    >>> from headwater.model.transaction import SeenUpTo
    >>> seen = SeenUpTo(last=89, hidden=frozenset({60}))
    >>> seen_upto([(Tick(5), 55, ""), (Tick(6), 60, ""), (Tick(8), 80, "")], seen, Tick(3))
    5
    """
    for tick, sights in _by_tick(accepted, seen):
        if sights != {True}:
            break
        after = tick
    return after


def is_half_seen(accepted: AcceptedTicks, seen: Seen) -> bool:
    """Tell whether of some tick one transaction was seen and another was not: such an answer can be brought nowhere."""
    return any(len(sights) > 1 for _, sights in _by_tick(accepted, seen))


def _by_tick(accepted: AcceptedTicks, seen: Seen) -> Iterable[tuple[Tick, set[bool]]]:
    for tick, parts in groupby(accepted, key=itemgetter(0)):
        yield tick, {seen.sees(identity, log) for _, identity, log in parts}
