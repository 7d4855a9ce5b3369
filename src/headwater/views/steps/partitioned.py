"""What the steps have in common that partition one input by keys: a group, and a regroup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwater.deltas.extent import EVERYTHING, Extent
from headwater.model.relation import RelationName
from headwater.views.steps.segments import Held, Leads
from headwater.views.steps.sizes import Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionedStep:
    """A step over the partitions of one input. Without keys, all rows are one partition."""

    input: RelationName
    keys: tuple[str, ...]

    join = None
    join_count = 0

    @property
    def identity(self) -> str:
        """All that it says."""
        return repr(self)

    @property
    def operands(self) -> tuple[RelationName, ...]:
        """Its input."""
        return (self.input,)

    @property
    def partition(self) -> tuple[RelationName, tuple[str, ...]]:
        """Its input, by its keys."""
        return self.input, self.keys

    @property
    def needed_rows(self) -> Mapping[RelationName, Extent]:
        """All."""
        return {self.input: EVERYTHING}

    def leads_below(self, carried: Sequence[Held], leads: Leads) -> bool:
        """Tell whether the keys that it shows lead to few rows of its input."""
        return all(leads(*held) for held in carried)

    def rows_behind(self, sizes: Sizes) -> float:
        """Return the rows of one partition."""
        return sizes.read(self.input, sizes.partition(self.input, self.keys))
