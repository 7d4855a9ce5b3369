"""How a step's changes are computed: what the engine has to run, as data. The engine performs it (`engine/batch`).

| plan | takes besides its inputs' changes | example |
|---|---|---|
| `JoinChanges` | old rows of the other inputs that the changes reach | a join |
| `LawOverOldRows` | old rows of one segment under the keys that the changes touch | a group, a regroup |
| `SumOfChanges` | nothing | a union |
| `WholeAgain` | all rows of its inputs | a recomputation |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.laws.join import law_sql
from headwater.views.steps.computed import First
from headwater.views.steps.join import JoinView

if TYPE_CHECKING:  # plans are made without Spark
    from headwater.deltas.stored_bag import Bag

_CHANGES, _OLD = "changes", "old"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinChanges:
    """Sweep over the join's occurrences, then its law over rows with their ticks."""

    join: JoinView

    @property
    def sql(self) -> str:
        """The law, as `explain` shows it."""
        return law_sql(self.join, {name: name.label for name in self.join.relations}, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LawOverOldRows:
    """A law over the changes of one input, and the old rows of one segment under the keys that they touch.

    `law` takes the names of both tables. `hot_law` gives a query that is cheaper where many changes meet many old rows,
    if there is one.
    `first`, if it is set, are the rows of the whole input that count: then no others are needed.
    """

    changed: RelationName
    old: RelationName
    keys: tuple[str, ...]
    law: Callable[[str, str], str]
    hot_law: Callable[[str, str], str | None] = lambda *_: None
    first: First | None = None
    alters_partitions: bool = False
    """Whether all rows of a key may change whenever some row of it does."""
    impossible_tick: Callable[[pa.Table], Tick | None] = lambda _: None
    """Given the step's changes, the first tick at which they cannot be."""

    @property
    def sql(self) -> str:
        """The law, as `explain` shows it."""
        return self.law(_CHANGES, _OLD)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumOfChanges:
    """The changes of all inputs, added up by `total`."""

    total: Callable[[Mapping[RelationName, Bag]], Bag]
    sql: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeAgain:
    """The whole query over what the inputs hold before and after the batch."""

    inputs: tuple[RelationName, ...]
    sql: str = ""


ChangePlan = JoinChanges | LawOverOldRows | SumOfChanges | WholeAgain
