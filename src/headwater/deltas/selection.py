"""A test of one column that means the same everywhere: no cast, no rounding, nothing that can raise."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

COMPARE: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        "equal": operator.eq,
        "not_equal": operator.ne,
        "less": operator.lt,
        "less_equal": operator.le,
        "greater": operator.gt,
        "greater_equal": operator.ge,
    }
)
"""The comparisons, by the names that Arrow has for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A column's value compares so with a value of the column's type, or equals one of several. NULL never does.

    >>> early = Selection(column="day", compare="less", values=(3,))
    >>> [early.passes(value) for value in (1, 5, None)]
    [True, False, False]
    """

    column: str
    compare: str
    values: tuple[Any, ...]

    def passes(self, value: Any) -> bool:
        """Tell whether a value of the column passes."""
        return value is not None and any(COMPARE[self.compare](value, other) for other in self.values)
