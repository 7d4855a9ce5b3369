"""How much a test plays: enough to notice a mistake on every build, all of it with `make thorough`."""

from __future__ import annotations

import os
from typing import Any

import pytest

THOROUGH = bool(os.environ.get("HEADWATER_THOROUGH"))


HELD_ROWS = os.environ.get("HEADWATER_TEST_HELD_ROWS")
"""Up to how many rows the bags of a batch are held, in suites that are played again with few."""


def forms(settings: str) -> str:
    """Return the settings of a project, with the line between held and stored rows where this run has it."""
    own = f"[settings.batch]\nheld_rows = {HELD_ROWS}\n"
    return f"{settings}\n{own}" if HELD_ROWS and "[settings.batch]" not in settings else settings


def volume(quick: int, thorough: int) -> int:
    return thorough if THOROUGH else quick


def in_short(*cases: Any, keep: tuple[int, ...] = (0,)) -> list[Any]:
    """Return cases of which only some are played by `make test`."""
    marked = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [
        pytest.param(*case, marks=() if number in keep else pytest.mark.thorough) for number, case in enumerate(marked)
    ]
