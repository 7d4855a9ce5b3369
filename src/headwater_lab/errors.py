"""The errors that only the lab raises."""

from __future__ import annotations

from headwater.errors import HeadwaterError


class InvalidScenario(HeadwaterError):
    """A scenario is not written as one, or cannot be played as it is written."""
