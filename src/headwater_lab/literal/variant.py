"""A literal reading of a paper that fails: the corrected algorithm with one thing done as the paper's text has it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwater.maintenance.published.algorithms import DescribedAlgorithm, algorithm
from headwater.maintenance.published.messages import Algorithm


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One literal reading: its name, the algorithm it is a reading of, what is wrong with it, and how it runs."""

    name: str
    of: str
    wrong: str
    run: Algorithm

    @property
    def described(self) -> DescribedAlgorithm:
        """The reading with the claims of the algorithm it is a reading of: what it would have to keep."""
        return replace(algorithm(self.of), name=self.name, remark=self.wrong, run=self.run)
