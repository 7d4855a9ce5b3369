"""PostgreSQL as a source: its logical log is followed, its snapshots are read and probed."""

from headwater.sources.postgres.source import PostgresSource

__all__ = ["PostgresSource"]
