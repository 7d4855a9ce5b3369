"""② Accept transactions once, in order, durably."""

from headwater.changelog.change_log import AcceptedSpan, ChangeLog
from headwater.changelog.tail import Tail

__all__ = ["AcceptedSpan", "ChangeLog", "Tail"]
