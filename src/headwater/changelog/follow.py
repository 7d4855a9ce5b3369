"""One thread per source: follow its log, and come back when the connection is lost.

The thread hands over (capture, followed_to) pairs through a queue that is bounded by their size, so a source that
writes faster than the log accepts waits in its own log, not in our memory. Meanwhile we report to its server that we
are there. A lost connection and a refused login are tried again, for ever, less and less often. What can never get
better (rights, a lost slot, a changed table) ends the thread, and `lost` says why. A relation that was altered at the
source ends it too: what was committed before is handed over, and nothing after. Any other exception is trouble of our
own (a full disk): it ends the thread as well, and the maintainer raises it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from headwater.changelog.capture_parts import slice_capture
from headwater.errors import HeadwaterError, SourceLost, SourceRefused, SourceUnavailable
from headwater.model.position import Position, Positions, by_log
from headwater.model.relation import Relation
from headwater.model.settings import DEFAULTS, CaptureSettings
from headwater.model.transaction import Capture
from headwater.observe.events import Listener, SourceConnected, SourceDisconnected, SourceGone, SourceWarning
from headwater.observe.lag import Lag
from headwater.sources.source import Follower, Source

_POLL_SECONDS = 0.05
_LOOK_SECONDS = 0.5
_PAUSE_SECONDS = 0.02
_SMALLEST_BYTES = 500
_SHORT_TIMES = 2
"""A log is short when it holds less beyond what we have than this many times what we lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What a source's thread hands over: new transactions, if any, and how far its logs have been followed."""

    source: str
    capture: Capture | None
    followed_to: Positions

    @property
    def byte_count(self) -> int:
        """About how large it is."""
        return _SMALLEST_BYTES + (0 if self.capture is None else self.capture.byte_count)


class HandedOver(queue.Queue[Followed]):
    """What the threads of sources have handed over, and is not taken yet. It is full by bytes, not by number.

    What is larger than its limit goes in where there is room for anything: so no capture is too large for it.
    """

    def __init__(self, limit_bytes: int) -> None:
        """Begin empty."""
        self.byte_count = 0
        super().__init__(max(1, limit_bytes))

    def _qsize(self) -> int:
        return self.byte_count

    def _put(self, item: Followed) -> None:
        super()._put(item)
        self.byte_count += item.byte_count

    def _get(self) -> Followed:
        item = super()._get()
        self.byte_count -= item.byte_count
        return item


class SourceThread:
    """Follows one source until it is stopped."""

    def __init__(
        self,
        source: Source,
        relations: Sequence[Relation],
        slot: str,
        held_to: Callable[[], Positions],
        out: queue.Queue[Followed],
        listener: Listener,
        is_full: Callable[[], bool] = lambda: False,
        settings: CaptureSettings = DEFAULTS.capture,
    ) -> None:
        """`held_to` says how far the change log durably holds this source, whenever it is asked.

        While `is_full`, nothing more is read: the rest waits in the source's own log.
        """
        self.source = source
        self.relations = tuple(relations)
        self.error: HeadwaterError | None = None
        """What is wrong with the source now."""
        self.lost: HeadwaterError | None = None
        """Why the source is lost for good."""
        self.failure: BaseException | None = None
        """What ended the thread, if it was not the source."""
        self.is_connected = False
        self.retry_at: float | None = None
        self._slot = slot
        self._held_to = held_to
        self._out = out
        self._listener = listener
        self._is_full = is_full
        self._settings = settings
        self._stop = threading.Event()
        self._follower: Follower | None = None
        self._wanted: dict[str, Position] = {}
        self._is_log_short = False
        self._hastened = threading.Event()
        self.lag = Lag(source.distance)
        self._looked_at = 0.0
        self._thread = threading.Thread(target=self._run, name=f"follow {source.name}", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until the connection is closed."""
        self._stop.set()
        self._thread.join(timeout=30)

    @property
    def has_ended(self) -> bool:
        """Whether the thread gave up for good, or was stopped."""
        return not self._thread.is_alive()

    def acknowledge(self, position: Position) -> None:
        """Let the source forget its log up to here."""
        follower = self._follower
        if follower is not None:
            follower.acknowledge(position)

    def hasten(self, position: Position) -> None:
        """Say that somebody waits for this position."""
        self._wanted[position.log_name] = position
        self._hastened.set()
        follower = self._follower
        if follower is not None:
            follower.hasten(position)

    def _run(self) -> None:
        retry_seconds = self._settings.reconnect_first_seconds
        while not self._stop.is_set():
            try:
                self._follow_once()
                retry_seconds = self._settings.reconnect_first_seconds
            except SourceUnavailable as error:
                if self.is_connected:
                    retry_seconds = self._settings.reconnect_first_seconds
                self.is_connected = False
                self.error = error
                self.retry_at = time.time() + retry_seconds
                self._listener(SourceDisconnected(source=self.source.name, error=error, retry_in_seconds=retry_seconds))
                self._stop.wait(retry_seconds)
                retry_seconds = min(2 * retry_seconds, self._settings.reconnect_longest_seconds)
            except HeadwaterError as error:
                self.is_connected, self.retry_at = False, None
                self.error = self.lost = error
                self._listener(SourceGone(source=self.source.name, error=error))
                return
            except BaseException as error:  # noqa: BLE001 - kept, and raised by the maintainer's loop
                self.is_connected, self.retry_at = False, None
                self.failure = error
                return

    def _follow_once(self) -> None:
        follower = self.source.follow(self.relations, self._slot, self._held_to())
        try:
            self._follower = follower
            self.is_connected, self.error, self.retry_at = True, None, None
            self._listener(SourceConnected(source=self.source.name, positions=tuple(follower.followed_to().values())))
            for wanted in tuple(self._wanted.values()):
                follower.hasten(wanted)
            handed_over: Positions | None = None
            while not self._stop.is_set():
                if self._is_full():
                    self._wait(follower)
                    self._stop.wait(_POLL_SECONDS)
                    continue
                capture = follower.next_capture(_POLL_SECONDS)
                followed_to = follower.followed_to()
                self._look(follower)
                if capture is not None and capture.altered:
                    self._stop_before(capture, follower)
                if capture is not None or handed_over != followed_to:
                    self._hand_over(self._followed(capture, followed_to), follower)
                    handed_over = followed_to
                if capture is not None:
                    self._pause()
        finally:
            self._follower = None
            follower.close()

    def _followed(self, capture: Capture | None, followed_to: Positions) -> Followed:
        return Followed(source=self.source.name, capture=capture, followed_to=followed_to)

    def _stop_before(self, capture: Capture, follower: Follower) -> None:
        """Hand over what was committed before a relation was altered, and raise that it was."""
        first = min(capture.altered)
        if first:
            before = slice_capture(capture, 0, first)
            self._hand_over(self._followed(before, by_log(one.position for one in before.transactions)), follower)
        raise altered_relation(capture)

    def _pause(self) -> None:
        """Let some transactions come before the next capture, which costs much the same for one as for twenty."""
        self._hastened.wait(_PAUSE_SECONDS)
        self._hastened.clear()

    def _hand_over(self, followed: Followed, follower: Follower) -> None:
        while not self._stop.is_set():
            try:
                self._out.put(followed, timeout=_POLL_SECONDS)
            except queue.Full:
                self._wait(follower)
                continue
            return

    def _wait(self, follower: Follower) -> None:
        """Do what a connection needs while nothing is read from it."""
        follower.keep_alive()
        self._look(follower)

    def _look(self, follower: Follower) -> None:
        """See where the source's logs end, and where they begin, now and then."""
        if time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            end = follower.log_end()
            self.lag.look(end, datetime.now(UTC))
            self._warn_of_short_log(follower.log_begin(), end)
            self._looked_at = time.monotonic()

    def _warn_of_short_log(self, begin: Positions, end: Positions) -> None:
        """Warn when a source that does not hold its log for us will soon have deleted what we still need.

        The log of one that is polled is our own.
        """
        if not self.source.abilities.tells_every_transaction:
            return
        held = self._held_to()
        short = [
            (left, behind)
            for name in begin.keys() & held.keys() & end.keys()
            if (behind := self.source.distance(held[name], end[name])).amount > 0
            and (left := self.source.distance(begin[name], held[name])).amount < _SHORT_TIMES * behind.amount
        ]
        if short and not self._is_log_short:
            left, behind = short[0]
            sentence = (
                f"its log may soon be deleted before it was read: we are {behind} behind, and it keeps only {left} "
                "more than we need; let it keep its log for longer"
            )
            self._listener(SourceWarning(source=self.source.name, sentence=sentence))
        self._is_log_short = bool(short)


def altered_relation(capture: Capture) -> SourceRefused:
    """Return the error of the first relation that a capture says was altered."""
    first = min(capture.altered)
    name, what = next(iter(capture.altered[first].items()))
    at = capture.transactions[first].position
    return SourceRefused(
        f'relation "{name}" was altered at the source',
        code="HW-341",
        detail=f"{what} (at {at}); the log of the source does not tell how the rows that were there have changed",
        hint=f"`headwater teardown --source {name.source}` and `headwater run` read this source again, with its views; "
        "those of other sources go on",
    )


def raise_if_lost(threads: Mapping[str, SourceThread], *, any_one: bool) -> None:
    """Raise why sources are lost for good: if all are, or any one if that is wanted.

    Views of the other sources go on, unless the run was asked to fail fast. A run that has lost all its sources ends in
    any case: nothing would ever change, and the supervisor of the process should know.
    """
    lost = [thread.lost for thread in threads.values() if thread.lost is not None]
    if not lost or (len(lost) < len(threads) and not any_one):
        return
    if len(lost) == 1:
        raise lost[0]
    raise SourceLost(
        "all sources are lost" if len(lost) == len(threads) else "several sources are lost",
        code="HW-602",
        detail="\n".join(error.summary + (f": {error.detail}" if error.detail else "") for error in lost),
        hint="\n".join(dict.fromkeys(error.hint for error in lost if error.hint)),
    )
