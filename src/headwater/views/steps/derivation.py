"""What the rows of a step are made from, as data: `lineage` goes along it, down to source rows and up to view rows.

| derivation | a row is made from | example |
|---|---|---|
| `FromJoin` | one row of every occurrence, for which all conditions are TRUE | a join |
| `FromPartition` | all rows of its input with its keys | a group, aggregates of a regroup |
| `FromRow` | the same row of its input | the first rows of a regroup |
| `FromWindow` | all rows of its partition, and the row itself first | windows of a regroup |
| `FromMembers` | the same row of a member that is added and not taken away | a union |
| `FromEverything` | all rows of its inputs: nothing is known of what it does | a recomputation |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.model.relation import RelationName
from headwater.views.steps.computed import First, Windows
from headwater.views.steps.join import JoinView


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """An input of a union, added or taken away."""

    input: RelationName
    sign: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FromJoin:
    """One row of every occurrence."""

    join: JoinView


@dataclass(frozen=True, slots=True, kw_only=True)
class FromPartition:
    """All rows of the input with the row's keys."""

    input: RelationName
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FromRow:
    """The same row of the input, which is among the first."""

    input: RelationName
    first: First


@dataclass(frozen=True, slots=True, kw_only=True)
class FromWindow:
    """All rows of the row's partition. `passed` are the output columns that are columns of the input, with these."""

    input: RelationName
    keys: tuple[str, ...]
    computed: Windows
    passed: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FromMembers:
    """The same row of a member. Columns go by their order."""

    inputs: tuple[Signed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FromEverything:
    """All rows of the inputs."""

    inputs: tuple[RelationName, ...]


Derivation = FromJoin | FromPartition | FromRow | FromWindow | FromMembers | FromEverything
