"""A view of any SQL, understood: a DAG of segments over relations (paper 004's normal form).

    relations ──► segment ──► segment ──► ... ──► the view

Every segment is one of a few steps, and each step turns the signed, stamped changes of its inputs into those of its
output, exactly, tick by tick. Everything else that SQL can say reduces to these (DESIGN §3).

| step | gives | needs of the warehouse, besides its inputs' changes |
|---|---|---|
| join | selections, projections, inner joins (`JoinView`) | old rows of its other inputs that the changes reach |
| group | rows per key, and totals per key (COUNT, SUM) | its own old rows of the touched keys |
| regroup | anything computed within a partition: MIN, windows, top-k | its input's old rows of the touched partitions |
| union | a sum of inputs with signs: UNION ALL, and L minus what matched | nothing |
| recompute | anything Spark can run, once per commit | all rows of its inputs |

A segment is named like a relation (`SegmentName`), so that a join reads a segment as it reads a relation.

Invariants
1. A segment reads relations and segments before it in the list; the last one is the view.
2. Columns of segments have neutral names, but for the last, whose columns are the view's outputs.
3. A segment is kept (its rows are in the warehouse) if it is the view, or if some step looks old rows of it up
   (`lookups`) and its author does not do without (`group_tables`), or if its author wants it kept for tracing
   (`keep_lineage`). Old rows of other segments are computed where they are looked up; most exist only as changes that
   flow through a batch.
4. The count of a row in a segment is never negative: a union with a minus sign takes away only what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from headwater.deltas.extent import Extent
from headwater.deltas.order import Order
from headwater.model.relation import Relation, RelationName, SegmentName
from headwater.views.steps.derivation import Derivation
from headwater.views.steps.join import JoinView
from headwater.views.steps.kept_lineage import KeptLineage
from headwater.views.steps.sizes import Estimates, Fanout, Sizes
from headwater.views.text.upstream_views import ViewText, whole_text

if TYPE_CHECKING:  # the law of a join speaks of whole views, too
    from headwater.views.steps.change_plan import ChangePlan

Held = tuple[Relation, Sequence[str]]
"""A relation or segment, and some of its columns."""
Leads = Callable[[Relation, Iterable[str]], bool]
"""Tells whether values of such columns lead to few rows."""


class Needs(Enum):
    """Which old rows a step needs besides the changes of its inputs."""

    PARTNERS = "old rows of its other inputs that the changes reach"
    OWN = "its own old rows of the touched keys"
    PARTITIONS = "its input's old rows of the touched partitions"
    NOTHING = "nothing"
    EVERYTHING = "all rows of its inputs"


class Speech(Protocol):
    """How the author of a view says columns, orders and joins (`explain/steps`)."""

    def columns(self, name: RelationName, held: Iterable[str]) -> str:
        """Return columns of a relation or segment as the author knows them."""
        ...

    def ordered(self, name: RelationName, order: Order) -> str:
        """Return an order of a relation's or segment's rows."""
        ...

    def joined(self, join: JoinView) -> list[str]:
        """Return what a join does, in lines."""
        ...

    def spelled(self, text: str) -> str:
        """Return a text with functions as the author spells them."""
        ...


class Step(Protocol):
    """One kind of step: all that is asked of it, in one file (`join_step`, `group_step`, ...), listed in `kinds`.

    `segment` is the segment that has this step, `segments` are those of its view, by name.
    """

    @property
    def kind(self) -> str:
        """What it is called. The names of segments begin with it."""
        ...

    @property
    def identity(self) -> str:
        """What tells it from other steps. The names of segments are made of it, so it stays as it is."""
        ...

    @property
    def operands(self) -> tuple[RelationName, ...]:
        """What it reads, as often as it reads it."""
        ...

    @property
    def join(self) -> JoinView | None:
        """The join that it is, if it is one."""
        ...

    @property
    def partition(self) -> tuple[RelationName, tuple[str, ...]] | None:
        """The input that it partitions, and by which keys, if it does."""
        ...

    @property
    def row_keys(self) -> tuple[str, ...] | None:
        """The columns of which every value has one row, if it groups by them."""
        ...

    @property
    def needs(self) -> Needs:
        """Which old rows it needs besides the changes of its inputs."""
        ...

    @property
    def reads_own_rows(self) -> bool:
        """Whether it looks at its own old rows, where they are kept."""
        ...

    @property
    def needed_rows(self) -> Mapping[RelationName, Extent]:
        """By input, the rows that make a difference to it."""
        ...

    @property
    def join_count(self) -> int:
        """How many joins it computes."""
        ...

    @property
    def aggregate_count(self) -> int:
        """How many aggregates it computes."""
        ...

    def whole_sql(self, segment: Segment, tables: Mapping[RelationName, str]) -> str:
        """Return the query for its rows. `tables` names a table of plain rows per input, columns in their order."""
        ...

    def change_plan(self, segment: Segment, segments: Segments) -> ChangePlan:
        """Return how its changes are computed: its law, and the old rows that the law takes."""
        ...

    def looked_up(self, segment: Segment) -> Iterable[tuple[RelationName, tuple[str, ...]]]:
        """Return whose old rows it looks up, and by which columns. () means that it needs all of them."""
        ...

    def leads_below(self, carried: Sequence[Held], leads: Leads) -> bool:
        """Tell whether values of what is carried lead to few rows of every operand."""
        ...

    def input_columns(self, segment: Segment, segments: Segments) -> list[tuple[Relation, Mapping[str, str]]]:
        """Return for every operand which of its columns the step's columns hold, as they are: lookups go by these."""
        ...

    def unique_columns(self, segments: Segments) -> tuple[str, ...] | None:
        """Return columns that identify its rows: () if there is one row at most, None if rows may be equal."""
        ...

    def passed(self, segment: Segment, column: str, segments: Segments) -> Iterable[tuple[RelationName, str]]:
        """Return the columns of inputs that its column is taken from, perhaps with a type or a default around it."""
        ...

    def column_below(self, segment: Segment, column: str, segments: Segments) -> tuple[RelationName, str] | None:
        """Return the column of an input whose statistics hold for its column, if one is known."""
        ...

    def column_meaning(self, segment: Segment, column: str, segments: Segments) -> exp.Expr:
        """Return what its column means to the view's author, in terms of relations' columns."""
        ...

    def fanouts(self, segment: Segment, sizes: Sizes) -> dict[RelationName, Fanout]:
        """Return by input what one changed row of it leads to."""
        ...

    def most_read(self, segment: Segment, changed: RelationName, sizes: Sizes) -> float:
        """Return how many rows it can read at most, however many rows of an input have changed."""
        ...

    def rows_behind(self, sizes: Sizes) -> float:
        """Return how many rows are read to compute one of its rows."""
        ...

    def output_rows(self, sizes: Sizes) -> float:
        """Return how many rows it has, guessed from those of its inputs."""
        ...

    def estimated_rows(self, estimates: Estimates) -> float:
        """Return how many rows it has, from what sources know of their columns."""
        ...

    def derivation(self, segment: Segment) -> Derivation:
        """Return what its rows are made from."""
        ...

    def words(self, segment: Segment, speech: Speech) -> list[str]:
        """Return what it does, in lines, in the words of the view's author."""
        ...

    def computed_words(self, segment: Segment, speech: Speech) -> str:
        """Return what it computes from whole groups, partitions or inputs, in the words of the view's author."""
        ...

    def maintained(self, segment: Segment) -> str:
        """Return how it is maintained, for `explain`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One step and what it gives: `relation` has the name, the columns and their Spark types.

    `origin` is the upstream view whose text it comes from. It is empty if that is the view's own text. Its rows will be
    looked up by its first columns that are `looked_up_by`, where that is known: on disk they lie in their order.
    """

    relation: Relation
    step: Step
    is_kept: bool
    origin: str = ""
    looked_up_by: tuple[str, ...] = ()

    @property
    def name(self) -> RelationName:
        """The segment's name."""
        return self.relation.name

    @property
    def inputs(self) -> tuple[RelationName, ...]:
        """The relations and segments it reads, each once."""
        return tuple(dict.fromkeys(self.step.operands))

    def whole_sql(self, tables: Mapping[RelationName, str]) -> str:
        """Return the query for its rows: how a segment is computed when it is new, or where it is not kept.

        A step's law gives changes, this gives the state. Both agree at every tick: the tests of the laws say so.
        `tables` names a table per input, with its columns in their order, in which a row that is there k times stands
        k times.
        """
        return self.step.whole_sql(self, tables)


Segments = Mapping[RelationName, Segment]
"""Segments of a view by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputeReason:
    """Why a part of a view is recomputed instead of maintained incrementally, and what would help."""

    code: str
    segment: RelationName
    what: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentedView:
    """A view as the segments that give it, in order. `sql` is the text as its author wrote it.

    `completed` is its whole text with orders completed (`compile.complete_orders`); empty if it leaves none open.

    `lower` are the views that it reads, itself or through others, each after those that it reads. `lineage` is what is
    kept of its joins so that its rows can be traced. `named` are the relations that its text names; one that no segment
    reads makes no difference to its rows.
    """

    name: str
    sql: str
    segments: tuple[Segment, ...]
    reasons: tuple[RecomputeReason, ...] = ()
    path: str = ""
    lower: tuple[ViewText, ...] = ()
    lineage: tuple[KeptLineage, ...] = ()
    completed: str = ""
    named: tuple[Relation, ...] = ()

    @property
    def whole(self) -> str:
        """The text that gives its rows by itself: upstream views and all orders are in it."""
        return self.completed or whole_text(self.sql, self.lower)

    @property
    def output(self) -> Segment:
        """The segment that is the view."""
        return self.segments[-1]

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the view's columns, in order."""
        return self.output.relation.column_names

    @property
    def unread(self) -> frozenset[RelationName]:
        """The segments that are kept for tracing, and seldom asked for otherwise: they are not held in memory."""
        return frozenset(one.whole.name for one in self.lineage)

    @property
    def lower_texts(self) -> tuple[tuple[str, str], ...]:
        """The names and texts of upstream views, as a warehouse remembers them."""
        return tuple((text.name, text.sql) for text in self.lower)

    @property
    def joins(self) -> tuple[JoinView, ...]:
        """The join steps, in order."""
        return tuple(segment.step.join for segment in self.segments if segment.step.join is not None)

    @property
    def only_join(self) -> JoinView | None:
        """The view as one join of relations, if it is nothing more."""
        return self.output.step.join if len(self.segments) == 1 else None

    @property
    def described(self) -> Mapping[RelationName, Relation]:
        """The relations that its text names, as their sources describe them, whether a segment reads them or not."""
        return {**described_relations(self.joins), **{relation.name: relation for relation in self.named}}

    @property
    def relations(self) -> Mapping[RelationName, tuple[str, ...]]:
        """The relations of sources that this view reads, each with the columns that some segment needs."""
        needed: dict[RelationName, tuple[str, ...]] = {}
        for join in self.joins:
            described = {occurrence.relation.name: occurrence.relation for occurrence in join.occurrences}
            for name, columns in join.relations.items():
                if not isinstance(name, SegmentName):
                    known = {*needed.get(name, ()), *columns}
                    needed[name] = tuple(column for column in described[name].column_names if column in known)
        return needed


def described_relations(joins: Iterable[JoinView]) -> dict[RelationName, Relation]:
    """Return the relations of sources that joins read, as their sources describe them."""
    occurring = (occurrence.relation for join in joins for occurrence in join.occurrences)
    return {relation.name: relation for relation in occurring if not isinstance(relation.name, SegmentName)}
