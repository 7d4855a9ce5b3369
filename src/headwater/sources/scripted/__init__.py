"""A source in memory that does exactly what a script says: for proofs, and for tests that need no server."""

from headwater.sources.scripted.database import ScriptedDatabase
from headwater.sources.scripted.rows import Changes, Values, table_of
from headwater.sources.scripted.source import ScriptedSource

__all__ = ["Changes", "ScriptedDatabase", "ScriptedSource", "Values", "table_of"]
