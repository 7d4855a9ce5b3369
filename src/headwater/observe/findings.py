"""What was looked at before a run: each thing, whether it is as it should be, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Fitness(Enum):
    """Whether something is as it should be."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found of one thing, and what to do about it."""

    subject: str
    health: Fitness
    found: str
    remedy: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorResult:
    """All findings, in the order in which `run` needs the things."""

    findings: tuple[Finding, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing stands in the way of `run`."""
        return all(one.health is not Fitness.ERROR for one in self.findings)
