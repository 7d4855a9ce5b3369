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

Segments are named like relations, under the source `segments`, so that a join reads a segment as it reads a relation.

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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headwater.deltas.order import Order
from headwater.relation import Relation, RelationName
from headwater.views.kept_lineage import KeptLineage
from headwater.views.lower_views import ViewText, whole_text
from headwater.views.normal_form import JoinView

SEGMENTS = "segments"
"""The source under which segments are named; no project may call a source so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStep:
    """Selections, projections and inner joins of relations and segments."""

    view: JoinView


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A column summed up per key: `total` is the sum of its values that are not NULL, `known` is how many those are."""

    column: str
    total: str
    known: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStep:
    """One row per key that has rows: the key, the number of rows, and totals. NULL keys are keys.

    The output's columns are the keys (with the names they have in the input), `rows`, and each total's two columns.
    Without keys there is one row always, also over no rows at all.
    Only for totals that are exact in any order: integers and decimals.
    """

    input: RelationName
    keys: tuple[str, ...]
    rows: str
    totals: tuple[Total, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """Aggregate functions over a partition's rows, one row per partition: `outputs` are (name, Spark expression)."""

    outputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Window functions over a partition's rows, one row per row: (name, Spark expression).

    An expression writes `{partition}` after PARTITION BY, for what Headwater partitions by.
    """

    outputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The first rows of a partition in an order, as they are; it names every column of the input, so it is total."""

    order: Order
    limit: int
    offset: int = 0

    @property
    def last(self) -> int:
        """The place of the last row that shows, counted from one."""
        return self.offset + self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class RegroupStep:
    """What is computed within a partition, anew for every partition that changes; keys may be none: one partition.

    The output's columns are the keys and the outputs of `Aggregates`, the outputs of `Windows`, or the input's columns
    for `First`. Without keys `Aggregates` gives one row always.
    """

    input: RelationName
    keys: tuple[str, ...]
    computed: Aggregates | Windows | First


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """An input of a union, added or taken away."""

    input: RelationName
    sign: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionStep:
    """The sum of inputs with signs; all have the output's column types, in order."""

    inputs: tuple[Signed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputeStep:
    """Spark SQL over whole inputs, run once per commit: `sql` writes `{name}` for each input's table."""

    inputs: tuple[RelationName, ...]
    sql: str


Step = JoinStep | GroupStep | RegroupStep | UnionStep | RecomputeStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One step and what it gives: `relation` has the name, the columns and their Spark types.

    `origin` is the lower view whose text it comes from; empty if that is the view's own. By its first columns that are
    `looked_up_by` its rows will be sought, where that is known: on disk they lie in their order.
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
        match self.step:
            case JoinStep():
                return tuple(self.step.view.relations)
            case GroupStep() | RegroupStep():
                return (self.step.input,)
            case UnionStep():
                return tuple(dict.fromkeys(signed.input for signed in self.step.inputs))
            case RecomputeStep():
                return self.step.inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a part of a view is computed anew instead of incrementally, and what would help."""

    code: str
    segment: RelationName
    what: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentedView:
    """A view as the segments that give it, in order; `sql` is the text as its author wrote it.

    `completed` is its whole text with orders completed (`compile.complete_orders`); empty if it leaves none open.

    `lower` are the views that it reads, itself or through others, each after those that it reads. `lineage` is what is
    kept of its joins so that its rows can be traced. `named` are the relations that its text names; one that no segment
    reads makes no difference to its rows.
    """

    name: str
    sql: str
    segments: tuple[Segment, ...]
    reasons: tuple[Reason, ...] = ()
    path: str = ""
    lower: tuple[ViewText, ...] = ()
    lineage: tuple[KeptLineage, ...] = ()
    completed: str = ""
    named: tuple[Relation, ...] = ()

    @property
    def whole(self) -> str:
        """The text that gives its rows by itself: lower views and all orders are in it."""
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
        """The names and texts of lower views, as a warehouse remembers them."""
        return tuple((text.name, text.sql) for text in self.lower)

    @property
    def joins(self) -> tuple[JoinView, ...]:
        """The join steps, in order."""
        return tuple(segment.step.view for segment in self.segments if isinstance(segment.step, JoinStep))

    @property
    def only_join(self) -> JoinView | None:
        """The view as one join of relations, if it is nothing more."""
        step = self.output.step
        return step.view if len(self.segments) == 1 and isinstance(step, JoinStep) else None

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
                if name.source != SEGMENTS:
                    known = {*needed.get(name, ()), *columns}
                    needed[name] = tuple(column for column in described[name].column_names if column in known)
        return needed


def described_relations(joins: Iterable[JoinView]) -> dict[RelationName, Relation]:
    """Return the relations of sources that joins read, as their sources describe them."""
    occurring = (occurrence.relation for join in joins for occurrence in join.occurrences)
    return {relation.name: relation for relation in occurring if relation.name.source != SEGMENTS}
