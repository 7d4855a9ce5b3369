"""Table 1 of paper 000, as printed: what it claims of five algorithms, to stand beside what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A line of the table."""

    architecture: str
    consistency: str
    messages: str
    comments: str


TABLE_1: Mapping[str, Claim] = {
    "eca": Claim(
        architecture="centralized",
        consistency="strong",
        messages="O(1)",
        comments="remote compensation, quadratic message size, requires quiescence",
    ),
    "strobe": Claim(
        architecture="distributed",
        consistency="strong",
        messages="O(n)",
        comments="unique key assumption, requires quiescence",
    ),
    "c-strobe": Claim(
        architecture="distributed",
        consistency="complete",
        messages="O(n!)",
        comments="unique key assumption, not scalable",
    ),
    "sweep": Claim(architecture="distributed", consistency="complete", messages="O(n)", comments="local compensation"),
    "nested-sweep": Claim(
        architecture="distributed",
        consistency="strong",
        messages="O(n)",
        comments="local compensation, requires non-interference",
    ),
}
"""The paper's lines, by the names that the algorithms have here."""
