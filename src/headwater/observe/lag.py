"""How far the change log is behind a source: in the unit of the source's own log, and in seconds.

How much log lies between two positions is for the source to say. Seconds cannot be read off a log that has not been
read yet, so they come from looking at where the log ended: everything that the source had logged by the moment of the
last look whose end has been reached is accepted.

    looks       12:00:01 at 100    12:00:02 at 180    12:00:03 at 240
    accepted    190, at 12:00:03   → 50 bytes and 1 second behind

After a pause the accepted position lies before the first look; then the newest accepted transaction says when it was
committed, by the source's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from headwater.model.position import Distance, Position, Positions

_MOST_LOOKS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """The lag of a source. `seconds` is None until a transaction was accepted."""

    distance: Distance
    seconds: float | None


class Lag:
    """Where a source's logs ended, look by look. One thread looks, another asks: what is read is replaced whole."""

    def __init__(self, distance: Callable[[Position, Position], Distance]) -> None:
        """Begin without measurements. The source says how far two positions are apart."""
        self._distance = distance
        self._looks: Mapping[str, tuple[tuple[datetime, Position], ...]] = {}

    def look(self, ends: Positions, now: datetime) -> None:
        """Note where the logs end now. With many looks, every second one is forgotten: old ones may be coarse."""
        found = {}
        for log, end in ends.items():
            looks = self._looks.get(log, ())
            looks = looks if len(looks) < _MOST_LOOKS else looks[::2]
            found[log] = (*(one for one in looks if one[1].history == end.history), (now, end))
        self._looks = found

    def behind(self, accepted: Positions, committed_at: datetime | None, now: datetime) -> Behind | None:
        """Return how far a source's logs are behind in all, and the one that is longest behind, or None if not known.

        Not known is what was never looked at.

        >>> from datetime import UTC, timedelta
        >>> def distance(earlier, later): return Distance(amount=later.offset - earlier.offset, unit="bytes")
        >>> start, lag = datetime(2026, 1, 1, tzinfo=UTC), Lag(distance)
        >>> def at(offset): return {"shop": Position(source="shop", history="1:1", offset=offset)}
        >>> for second, offset in enumerate((100, 180, 240), 1):
        ...     lag.look(at(offset), start + timedelta(seconds=second))
        >>> lag.behind(at(190), None, start + timedelta(seconds=3))
        Behind(distance=Distance(amount=50, unit='bytes'), seconds=1.0)
        >>> lag.behind(at(240), None, start + timedelta(seconds=9))
        Behind(distance=Distance(amount=0, unit='bytes'), seconds=0.0)
        >>> lag.behind(at(60), start - timedelta(seconds=7), start + timedelta(seconds=3))
        Behind(distance=Distance(amount=180, unit='bytes'), seconds=10.0)
        """
        logs = [self._log_behind(log, position, committed_at, now) for log, position in accepted.items()]
        known = [one for one in logs if one is not None]
        if not known or len(known) < len(logs):
            return None
        seconds = [one.seconds for one in known if one.seconds is not None]
        return Behind(
            distance=Distance(amount=sum(one.distance.amount for one in known), unit=known[0].distance.unit),
            seconds=max(seconds) if len(seconds) == len(known) else None,
        )

    def _log_behind(self, log: str, accepted: Position, committed_at: datetime | None, now: datetime) -> Behind | None:
        looks = [one for one in self._looks.get(log, ()) if one[1].history == accepted.history]
        if not looks:
            return None
        end = max(looks[-1][1], accepted)
        distance = self._distance(accepted, end)
        if end == accepted:
            return Behind(distance=distance, seconds=0.0)
        since = max((at for at, end in looks if end <= accepted), default=committed_at)
        return Behind(distance=distance, seconds=None if since is None else max(0.0, (now - since).total_seconds()))
