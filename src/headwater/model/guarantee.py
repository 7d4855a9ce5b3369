"""How faithfully a view follows its sources: complete > strong > weak > convergent > none.

Let the right states of a view be what its SQL gives after the transactions 1..t, for every tick t. A reader then sees

- complete: every right state, each at its tick, none skipped, merged, reordered or invented;
- strong: only right states, in order, ending at the right one; some may be skipped;
- weak: only right states, in any order;
- convergent: the right state in the end, whatever came before;
- none: not even that.
"""

from __future__ import annotations

from enum import Enum


class Guarantee(Enum):
    """A level of consistency. The better one is the greater one.

    >>> Guarantee.COMPLETE > Guarantee.STRONG > Guarantee.NONE
    True
    >>> max(Guarantee.WEAK, Guarantee.CONVERGENT)
    <Guarantee.WEAK: 'weak'>
    """

    NONE = "none"
    CONVERGENT = "convergent"
    WEAK = "weak"
    STRONG = "strong"
    COMPLETE = "complete"

    def __lt__(self, other: Guarantee) -> bool:
        """Tell whether another level promises more."""
        return self._rank < other._rank

    def __le__(self, other: Guarantee) -> bool:
        """Tell whether another level promises at least as much."""
        return self._rank <= other._rank

    @property
    def _rank(self) -> int:
        return tuple(Guarantee).index(self)
