"""Delta Lake tables as a source: each table is a log of its own, and its versions are its transactions."""

from headwater.sources.delta.source import DeltaSource

__all__ = ["DeltaSource"]
