"""What a view needs of its relations: the columns that some segment names, and the rows that some occurrence can join.

Law. Every segment that reads a relation is a join, and a join leaves out at once what fails the selections of its
occurrences. So for any rows R of a relation, and any extent P that covers what is needed of it,

    segments over P(R) = segments over R         and so        the view's own SQL over P(R) = the view's SQL over R

since segments and SQL give the same on any rows, those that are left in P(R) among them. (An SQL that raises on a row
outside of P may not raise without it.) A relation that anything but a join would read is needed with all its rows.
"""

from __future__ import annotations

from headwater.deltas.extent import NOTHING, Content
from headwater.model.relation import RelationName
from headwater.views.steps.segments import SegmentedView


def needed_content(view: SegmentedView) -> dict[RelationName, Content]:
    """Return what a view needs of each relation that it reads."""
    rows = dict.fromkeys(view.relations, NOTHING)
    for segment in view.segments:
        for name, extent in segment.step.needed_rows.items():
            if name in rows:
                rows[name] = rows[name].plus(extent)
    return {name: Content(columns=columns, rows=rows[name]) for name, columns in view.relations.items()}
