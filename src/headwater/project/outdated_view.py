"""A view whose text was changed, and which the warehouse still keeps as it was."""

from __future__ import annotations

from headwater.errors import HeadwaterError
from headwater.views.steps.segments import SegmentedView
from headwater.warehouse.catalog import ViewEntry


def refuse_outdated(entry: ViewEntry, view: SegmentedView) -> None:
    """Refuse to compare a kept view with its text, if that is another one by now."""
    if (entry.sql, entry.lower, entry.completed) != (view.sql, view.lower_texts, view.completed):
        raise HeadwaterError(
            f'view "{entry.name}" is not yet what the project says',
            code="HW-536",
            detail="its SQL, that of a view it reads, or the columns that complete its order were changed, and the "
            "warehouse still keeps the old one",
            hint="wait until it is built again (`headwater status`), then try again",
        )
