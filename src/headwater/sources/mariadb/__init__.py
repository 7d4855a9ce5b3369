"""MariaDB (and, untested, MySQL) as a source: its binary log is followed, its tables are read and probed."""

from headwater.sources.mariadb.source import MariadbSource

__all__ = ["MariadbSource"]
