"""The results of checks, beside the warehouse's tables: one small file each, the newest are kept.

They are for people: what was compared, by which engine, and what was found. Nothing that has to be right reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from headwater.storage.notes import read_note, write_text
from headwater.storage.object_store import store_at

KEPT = 100
_FOLDER = "certificates"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedView:
    """What a check found for a view: the promise, what held, over how many states, by which engines, to which tick."""

    view: str
    promised: str
    found: str
    kept: bool
    states_checked: int
    judged_by: Mapping[str, int]
    birth: int
    tick: int
    first_bad_tick: int | None = None
    told: str = ""
    """What differs, if something does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The result of a check of some views."""

    checked_at: datetime
    seconds: float
    views: tuple[CertifiedView, ...] = field(default_factory=tuple)

    @property
    def kept(self) -> bool:
        """Whether every promise was kept."""
        return all(one.kept for one in self.views)

    @property
    def name(self) -> str:
        """The name of its file, which sorts by time."""
        return f"{self.checked_at:%Y%m%dT%H%M%S%f}"


def note_certificate(warehouse: str, certificate: Certificate) -> None:
    """Keep a certificate, and delete the oldest of too many."""
    write_text(warehouse, f"{_FOLDER}/{certificate.name}.json", msgspec.json.encode(certificate).decode())
    names = _names(warehouse)
    for name in names[:-KEPT]:
        store_at(f"{warehouse}/{_FOLDER}").delete(name)


def read_certificates(warehouse: str) -> tuple[Certificate, ...]:
    """Return the certificates that are kept, oldest first."""

    def parse(said: Any) -> Certificate:
        return msgspec.convert(said, Certificate)

    found = (read_note(f"{warehouse}/{_FOLDER}", name, parse) for name in _names(warehouse))
    return tuple(one for one in found if one is not None)


def _names(warehouse: str) -> list[str]:
    return sorted(store_at(f"{warehouse}/{_FOLDER}").names())
