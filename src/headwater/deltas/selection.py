"""A test of one column that means the same everywhere: no cast, no rounding, nothing that can raise."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

COMPARE: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
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

SIGNS: Mapping[str, str] = MappingProxyType(
    {"equal": "=", "not_equal": "<>", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
)
"""The same as SQL writes them."""

_IMPLIED: Mapping[tuple[str, str], Callable[[Any, Any], bool]] = MappingProxyType(
    {
        ("less", "less"): operator.le,
        ("less", "less_equal"): operator.le,
        ("less", "not_equal"): operator.le,
        ("less_equal", "less"): operator.lt,
        ("less_equal", "less_equal"): operator.le,
        ("less_equal", "not_equal"): operator.lt,
        ("greater", "greater"): operator.ge,
        ("greater", "greater_equal"): operator.ge,
        ("greater", "not_equal"): operator.ge,
        ("greater_equal", "greater"): operator.gt,
        ("greater_equal", "greater_equal"): operator.ge,
        ("greater_equal", "not_equal"): operator.gt,
        ("not_equal", "not_equal"): operator.eq,
    }
)
"""How the bound of the first comparison has to lie to that of the second, so that the first implies the second."""


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

    def implies(self, other: Selection) -> bool:
        """Tell whether a value that passes is sure to pass the other. Values of two types are not compared.

        >>> few = Selection(column="n", compare="less", values=(3,))
        >>> [few.implies(Selection(column="n", compare="less_equal", values=(n,))) for n in (2, 3)]
        [False, True]
        """
        if self.column != other.column or len({type(value) for value in (*self.values, *other.values)}) > 1:
            return False
        if self.compare == "equal":
            return all(other.passes(value) for value in self.values)
        lies = _IMPLIED.get((self.compare, other.compare))
        return lies is not None and lies(self.values[0], other.values[0])

    def __str__(self) -> str:
        """Return the selection as SQL writes it."""
        texts = [str(value) if isinstance(value, int | Decimal) else f"'{value}'" for value in self.values]
        if len(texts) > 1:
            return f"{self.column} IN ({', '.join(texts)})"
        return f"{self.column} {SIGNS[self.compare]} {texts[0]}"
