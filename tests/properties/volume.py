"""How much a test plays: enough to notice a mistake on every build, all of it with `make thorough`."""

from __future__ import annotations

import os

THOROUGH = bool(os.environ.get("HEADWATER_THOROUGH"))


def volume(quick: int, thorough: int) -> int:
    return thorough if THOROUGH else quick
