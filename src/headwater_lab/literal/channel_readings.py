"""Literal readings that concern the channels and not the algorithm: what is left out of the protocol against faults.

Each is played with version numbers over channels with faults (`lossy_world`), and each fails there (PAPERS.md §4,
erratum 3; §1): without the version on the answer, 428 of 1,000 runs on channels that reorder end wrong; without
re-requests 498 of 1,000 end incomplete; without heartbeats a lost last notification is never noticed.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater_lab.lossy_world import Protocol
from headwater_lab.world import Served, seen_by_arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelReading:
    """A protocol that leaves something out: its name, what is wrong with it, and itself."""

    name: str
    wrong: str
    protocol: Protocol


def no_version(served: Served) -> int:  # noqa: ARG001 - nothing is written on it
    """Return the version of an answer that says none: it is used as soon as it arrives."""
    return 0


CHANNEL_READINGS = (
    ChannelReading(
        name="fifo-inference-misordered",
        wrong="what an answer saw is inferred from when it arrives, though messages overtake each other",
        protocol=Protocol(version_of=no_version, sight_of=seen_by_arrival),
    ),
    ChannelReading(
        name="no-heartbeat",
        wrong="it is not noticed that a source's last notification was lost",
        protocol=Protocol(heartbeat=False),
    ),
    ChannelReading(
        name="no-re-request",
        wrong="a lost notification is noticed and never sent again",
        protocol=Protocol(re_request=False),
    ),
)
