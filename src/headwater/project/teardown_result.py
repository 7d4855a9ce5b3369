"""What `teardown` answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Something that was dropped at a source."""

    source: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftSlot:
    """A slot of the project that is not this warehouse's, and how much log its source keeps for it."""

    source: str
    slot: str
    is_in_use: bool
    held_bytes: int
    what: str
    """What the source calls it, with its name."""
    drop: str
    """The statement that drops it at the source."""

    def __str__(self) -> str:
        """Say what it does to the source, and how to get rid of it.

        >>> slot = LeftSlot(source="shop", slot="s_1", is_in_use=False, held_bytes=3 << 20, what="replication slot s_1",
        ...                 drop="SELECT pg_drop_replication_slot('s_1')")
        >>> str(slot)[:54]
        'replication slot s_1 is not in use and holds back 3 MB'
        """
        used = "is in use" if self.is_in_use else "is not in use"
        return (
            f"{self.what} {used} and holds back {self.held_bytes / 1024 / 1024:,.0f} MB of the "
            "source's log: another warehouse of this project follows by it, or it was left there; if it is not needed: "
            f"{self.drop}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TeardownResult:
    """What was dropped at the sources, what was left to others, what could not be reached. The warehouse stays."""

    dropped: tuple[Dropped, ...]
    failed: tuple[Dropped, ...]
    warehouse: str
    left: tuple[LeftSlot, ...] = ()
