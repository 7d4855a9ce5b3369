"""What was traced: a tree from a view's rows down to source rows, and the source rows by relation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa

from headwater.deltas.lookup import Origin
from headwater.deltas.on_arrow import ArrowBag
from headwater.engine.state.sought import OF
from headwater.model.relation import COUNT, TICK, RelationName, SegmentName


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """Rows of a relation, or of a segment worth showing, that rows above derive from.

    `rows` has the columns, `_count` (how often the relation holds the row) and `#of`: the place, among the rows above,
    of the one that it derives (NULL: all of them). `below` is what these rows derive from in turn; relations have none.
    """

    name: RelationName
    title: str
    origin: Origin
    rows: pa.Table
    below: tuple[Traced, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the rows' own columns."""
        return tuple(name for name in self.rows.column_names if name not in (COUNT, OF))


def roots_of_leaves(traced: Sequence[Traced], count: int) -> Iterator[tuple[Traced, list[frozenset[int]]]]:
    """Yield what was traced of relations, with the places of the selected rows that each of its rows derives.

    `count` rows were selected.
    """
    yield from _with_roots(traced, [frozenset({place}) for place in range(count)])


def _with_roots(traced: Sequence[Traced], above: list[frozenset[int]]) -> Iterator[tuple[Traced, list[frozenset[int]]]]:
    every = frozenset().union(*above)
    for one in traced:
        roots = [every if of is None else above[of] for of in one.rows[OF].to_pylist()]
        if isinstance(one.name, SegmentName):
            yield from _with_roots(one.below, roots)
        else:
            yield one, roots


def source_rows(traced: Sequence[Traced]) -> dict[RelationName, pa.Table]:
    """Return the traced rows of every relation, each different row once, with `_count`."""
    parts: dict[RelationName, list[ArrowBag]] = {}
    for leaf in leaves(traced):
        rows = leaf.rows.drop_columns([OF])
        stamped = rows.append_column(TICK, pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows))
        parts.setdefault(leaf.name, []).append(ArrowBag(stamped))
    return {name: _once(bags) for name, bags in sorted(parts.items())}


def leaves(traced: Sequence[Traced]) -> Iterator[Traced]:
    """Yield what was traced of relations."""
    for one in traced:
        if isinstance(one.name, SegmentName):
            yield from leaves(one.below)
        else:
            yield one


def _once(bags: Sequence[ArrowBag]) -> pa.Table:
    """Return the rows of all parts, each once: a row found twice is the same rows of its relation."""
    every = reduce(lambda one, other: one.plus(other), bags)
    return every.widest(every).table.drop_columns([TICK])
