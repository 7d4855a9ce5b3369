"""What the demo counts of the maintainer's events."""

from __future__ import annotations

from headwater.observe.events import BatchCommitted, Event, ProbeAnswered


class Tally:
    """A listener that counts commits, and the answers of sources that had to be corrected by rebasing."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.commit_count = 0
        self.answer_count = 0
        self.corrected_answer_count = 0

    def __call__(self, event: Event) -> None:
        """Count an event."""
        match event:
            case BatchCommitted():
                self.commit_count += 1
            case ProbeAnswered(corrected_row_count=corrected_row_count):
                self.answer_count += 1
                self.corrected_answer_count += corrected_row_count > 0
            case _:
                pass
