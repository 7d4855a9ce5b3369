"""Sources that are polled: databases and folders that have no log we can read."""

from headwater.sources.polled.source import PolledSource

__all__ = ["PolledSource"]
