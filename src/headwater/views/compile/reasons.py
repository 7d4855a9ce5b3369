"""Why a part of a view is recomputed: one table for the compiler, for `explain`, and for the reference page.

Codes are stable, like those of refusals. `whole` says that all rows of the part's input are read whenever it changes,
not only those of touched partitions; a strict view may not have such a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwater.views.steps.segments import SegmentedView


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """A reason to recompute: what it is about, and what would help."""

    code: str
    what: str
    remedy: str
    whole: bool = False


EXTREME = Why(
    code="HW-260",
    what="MIN and MAX are found again among the distinct values of every group that changes",
    remedy="nothing to do: only touched groups are read",
)
NO_TOTAL = Why(
    code="HW-261",
    what="the aggregate is no sum and no count, so it is computed again for every group that changes",
    remedy="nothing to do: only touched groups are read",
)
SEVERAL_DISTINCT = Why(
    code="HW-262",
    what="DISTINCT of several kinds, or beside MIN and MAX, is computed again for every group that changes",
    remedy="compute one kind of DISTINCT per view, and join the views when reading",
)
WINDOW = Why(
    code="HW-263",
    what="window functions are computed again for every partition that changes",
    remedy="nothing to do: only touched partitions are read",
)
WHOLE_WINDOW = Why(
    code="HW-264",
    what="a window function without PARTITION BY looks at all rows whenever one of them changes",
    remedy="add PARTITION BY",
    whole=True,
)
FIRST = Why(
    code="HW-265",
    what="ORDER BY ... LIMIT is computed again from the first rows of its input whenever one of them changes",
    remedy="nothing to do: the first rows and some more are kept, all are read only when those are used up",
)
SINGLE_VALUE = Why(
    code="HW-266",
    what="a sub-query that stands for a value and is no aggregate is read again where it changes: it must have one row",
    remedy="write it as an aggregate: (SELECT MAX(x) ...)",
)
MAKES_ROWS = Why(
    code="HW-267",
    what="LATERAL, VALUES, functions that make rows, and queries without FROM are recomputed at every commit",
    remedy="write the rows into a table of a source, and join it",
    whole=True,
)
LINKED = Why(
    code="HW-268",
    what="the sub-query depends on its outer query as no join can: the view is recomputed at every commit",
    remedy="link it by equalities in its WHERE, inner.x = outer.y, without LIMIT, DISTINCT, UNION or windows in it",
    whole=True,
)
UNCOMMON = Why(
    code="HW-269",
    what="no incremental form is known for this construct: the view is recomputed at every commit",
    remedy="write it with joins, groups, set operations and sub-queries",
    whole=True,
)
DOUBLES = Why(
    code="HW-271",
    what="sums of doubles are put together from their exact parts for every group that changes",
    remedy="nothing to do: only touched groups are read",
)
COPIES = Why(
    code="HW-272",
    what="INTERSECT ALL and EXCEPT ALL count the copies of every row that changes again",
    remedy="nothing to do: only copies of touched rows are read",
)
CHOSEN = Why(
    code="HW-273",
    what="the project chose to recompute the view from whole relations at every refresh",
    remedy='remove maintenance = "recompute-…" for this view',
    whole=True,
)
FIRST_OF_ALL = Why(
    code="HW-274",
    what="LIMIT over arrays, and OFFSET without LIMIT, look at all rows of their input whenever one of them changes",
    remedy="leave arrays out of the view, or say LIMIT; or limit the rows when reading",
    whole=True,
)
UNTYPED = Why(
    code="HW-280",
    what="a step that would follow changes cannot be run by Spark: the view is recomputed at every commit",
    remedy="if the text has a NULL without a type, give it one: CAST(NULL AS INT); else please report the view's text",
    whole=True,
)

WHYS: tuple[Why, ...] = (
    EXTREME,
    NO_TOTAL,
    SEVERAL_DISTINCT,
    WINDOW,
    WHOLE_WINDOW,
    FIRST,
    SINGLE_VALUE,
    MAKES_ROWS,
    LINKED,
    UNCOMMON,
    DOUBLES,
    COPIES,
    CHOSEN,
    FIRST_OF_ALL,
    UNTYPED,
)


def whole_inputs(view: SegmentedView) -> Iterator[str]:
    """Yield a warning for every part of a view that reads all its input whenever something changes, unless chosen."""
    whole = {why.code for why in WHYS if why.whole} - {CHOSEN.code}
    for reason in view.reasons:
        if reason.code in whole:
            yield f'view "{view.name}": {reason.what} [{reason.code}]. To avoid it: {reason.remedy}'


class NoIncrementalForm(Exception):
    """Raised inside the compiler when a construct has no incremental form."""

    def __init__(self, why: Why, construct: str) -> None:
        """Remember the reason, and what in the text it is about."""
        super().__init__(f"{why.what} ({construct})" if construct else why.what)
        self.why = why
        self.construct = construct
