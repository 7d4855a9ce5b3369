"""What may be kept for a view, and how many ways there are to keep it (paper 004, §4.1 and §4.3).

| component | may keep |
|---|---|
| relation | a replica (BT), or not |
| segment below the topmost | its group table (AG), or not |
| segment that joins | its lineage view (LV), its split lineage tables (SLT), or neither |

A segment with one operand has no lineage view: it would be the operand itself. Nor has a union: it would be them all.

Erratum: Example 4.2 counts 2^6 · 3^2 = 384 sets for HighProfit; it is 576.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain, product
from math import prod

from headwater.advisor.structure import GroupTable, Structure


class AuxiliaryKind(Enum):
    """The kinds of auxiliary tables, by the paper's initials."""

    REPLICA = "BT"
    GROUP_TABLE = "AG"
    LINEAGE_VIEW = "LV"
    SPLIT_LINEAGE = "SLT"


@dataclass(frozen=True, slots=True)
class Auxiliary:
    """One auxiliary table that may be kept: a kind, of a relation or a segment. SLT are several tables, kept together.

    >>> print(Auxiliary("Store", AuxiliaryKind.REPLICA))
    BT Store
    """

    of: str
    kind: AuxiliaryKind

    def __str__(self) -> str:
        """Return the kind's initials and the name."""
        return f"{self.kind.value} {self.of}"


Kept = frozenset[Auxiliary]
"""A set of auxiliary tables: what an algorithm chooses."""

NOTHING: Kept = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    """Everything that may be kept for a view. Of each choice, one or none."""

    choices: tuple[tuple[Auxiliary, ...], ...]

    @property
    def size(self) -> int:
        """How many sets there are."""
        return prod(1 + len(choice) for choice in self.choices)

    @property
    def candidates(self) -> tuple[Auxiliary, ...]:
        """All auxiliary tables, in order."""
        return tuple(chain.from_iterable(self.choices))

    @property
    def lineage_choices(self) -> tuple[tuple[Auxiliary, Auxiliary], ...]:
        """The lineage view and the split lineage tables of each segment that joins, topmost first."""
        return tuple((choice[0], choice[1]) for choice in self.choices if len(choice) > 1)

    def sets(self) -> Iterator[Kept]:
        """Yield every set."""
        options = [(NOTHING, *(frozenset({one}) for one in choice)) for choice in self.choices]
        for parts in product(*options):
            yield NOTHING.union(*parts)

    def admits(self, kept: Kept, more: Auxiliary) -> bool:
        """Tell whether a table may be kept besides others: not twice, and not both LV and SLT of one segment."""
        choice = next(choice for choice in self.choices if more in choice)
        return not kept & frozenset(choice)


def search_space(structure: Structure) -> SearchSpace:
    """Return what may be kept for a view: segments first, the topmost before all, then relations."""
    choices: list[tuple[Auxiliary, ...]] = []
    for segment in structure.segments:
        if segment is not structure.top and segment.group_table is GroupTable.CHOSEN:
            choices.append((Auxiliary(segment.name, AuxiliaryKind.GROUP_TABLE),))
        if segment.is_join and segment.may_keep_lineage:
            choices.append(
                (
                    Auxiliary(segment.name, AuxiliaryKind.LINEAGE_VIEW),
                    Auxiliary(segment.name, AuxiliaryKind.SPLIT_LINEAGE),
                )
            )
    choices += [(Auxiliary(relation.name, AuxiliaryKind.REPLICA),) for relation in structure.relations]
    return SearchSpace(choices=tuple(choices))
