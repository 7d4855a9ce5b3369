"""The first rows of a bag in an order, kept while the bag changes, and what of a batch can show among the first m.

    bag, in order     a   b   c   d   e   f   g   h   ...
    kept              a   b   c   d   e                    all rows up to some place
    batch touches     ×       ×               ×            m = 2: b and d stay there all the time, so that nothing
    can show          a   b   c   d                        after d is ever among the first two

A row that no change of the batch touches is there at every tick of it. So once m such rows are passed nothing that
comes later can be among the first m at any tick: what is after them need not be looked at, changed or not.

Invariants
1. What is kept is netted, in order, and all of the bag up to the last row that is kept; the whole bag if it says so.
2. The order is total: two rows that are equal in it are equal. So rows that a caller brings have one zero and one NaN:
   to Spark -0.0 and 0.0 are equal, to Arrow they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.lookup import NO_TICK, RowRequest, RowResult
from headwater.deltas.on_arrow import ArrowBag, summed_up
from headwater.deltas.order import Order, in_order, perhaps_upto, places_upto, upto
from headwater.model.relation import COUNT

_IS_TOUCHED = "_is_touched"
_FEWEST_ROWS, _MOST_ROWS = 4_096, 262_144
"""Rows that are sought at a time among the parts of a bag: a small buffer, larger where most of what came went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """What of a batch can show among the first rows: changes, and old rows of the bag with `_count`."""

    changes: pa.Table
    old: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRows:
    """The first rows of a bag, with `_count`. Once they are more than `most` the last are let go.

    `read_rows` is how many rows were read to find them, if they were not kept.
    """

    order: Order
    rows: pa.Table
    is_whole: bool
    most: int
    read_rows: int = 0

    @classmethod
    def of(cls, rows: pa.Table, order: Order, count: int) -> Self:
        """Return the first `count` of netted rows, or all if they are fewer."""
        ordered = in_order(rows, order, count).slice(0, count)
        return cls(order=order, rows=ordered, is_whole=rows.num_rows <= count, most=2 * count, read_rows=rows.num_rows)

    @classmethod
    def of_parts(cls, schema: pa.Schema, parts: Callable[[], Iterable[pa.Table]], order: Order, count: int) -> Self:
        """Return the first `count` rows of a bag that is given in parts: signed entries of a schema, not netted.

        The parts are read several times, and few rows are held. Each round takes the next rows that ever came, and then
        what went of them: there are many rounds only where nearly all rows went.
        """
        found = [schema.empty_table()]
        after: pa.Table | None = None
        size, known, read_rows, is_last = max(count, _FEWEST_ROWS), 0, 0, False
        while not is_last and known < count:
            came = _NextRows(order=order, after=after, most=size)
            for part in parts():
                came.take(part)
            if came.rows is None:
                is_last = True
                break
            went = (part.filter(pc.less(part[COUNT], 0)) for part in parts())
            left = summed_up(pa.concat_tables([came.rows, *(came.among(part) for part in went if part.num_rows)]))
            assert not pc.any(pc.less(left[COUNT], 0)).as_py(), "the count of a row is never negative"
            found.append(in_order(left, order))
            known, read_rows, is_last = known + left.num_rows, read_rows + came.read_count, came.is_last
            after, size = came.last, min(2 * size, _MOST_ROWS)
        rows = pa.concat_tables(found)
        is_whole = is_last and rows.num_rows <= count
        return cls(order=order, rows=rows.slice(0, count), is_whole=is_whole, most=2 * count, read_rows=read_rows)

    @classmethod
    def of_result(cls, result: RowResult[ArrowBag], order: Order) -> Self:
        """Return the first rows that a lookup found, in the order that was asked for."""
        rows, read = result.rows.counted, result.read_count
        read_rows = rows.num_rows if read is None else read
        return cls(order=order, rows=rows, is_whole=result.is_whole, most=rows.num_rows, read_rows=read_rows)

    def after(self, changes: pa.Table) -> FirstRows:
        """Return the first rows once the bag has changed by signed rows: perhaps fewer."""
        reaching = self.reaching(changes)
        if not reaching.num_rows:
            return self
        rows = in_order(summed_up(pa.concat_tables([self.rows, reaching.select(self.rows.column_names)])), self.order)
        is_whole = self.is_whole and rows.num_rows <= self.most
        return replace(self, rows=rows.slice(0, self.most), is_whole=is_whole)

    def reaching(self, changes: pa.Table) -> pa.Table:
        """Return the changes that are not after the last row that is kept. All, if all rows are kept."""
        return changes if self.is_whole else self._upto_last(changes)

    def showing(self, changes: pa.Table, count: int) -> Showing | None:
        """Return what of a batch can show among the first `count` rows. None if too few are kept to tell."""
        if not count:
            return Showing(changes=changes.slice(0, 0), old=self.rows.slice(0, 0))
        bound = self._last_untouched(changes, count)
        if bound is not None:
            return Showing(changes=upto(changes, bound, self.order), old=upto(self.rows, bound, self.order))
        return Showing(changes=changes, old=self.rows) if self.is_whole else None

    def _last_untouched(self, changes: pa.Table, count: int) -> pa.Table | None:
        """Return the row with which the rows that no change touches become `count`, if they do."""
        names = [by.column for by in self.order]
        old = self.rows.select([*names, COUNT]).append_column(_IS_TOUCHED, _repeated(0, self.rows))
        touched = changes.select(names).append_column(COUNT, _repeated(0, changes))
        both = pa.concat_tables(
            [old, touched.append_column(_IS_TOUCHED, _repeated(1, changes)).select(old.schema.names)]
        )
        grouped = both.group_by(names, use_threads=False).aggregate([(COUNT, "sum"), (_IS_TOUCHED, "max")])
        untouched = in_order(grouped.filter(pc.equal(grouped[f"{_IS_TOUCHED}_max"], 0)), self.order)
        passed = pc.cumulative_sum(untouched[f"{COUNT}_sum"])
        place = pc.index(pc.greater_equal(passed, count), value=True).as_py()
        return None if place < 0 else untouched.select(names).slice(place, 1)

    def _upto_last(self, changes: pa.Table) -> pa.Table:
        if not self.rows.num_rows:
            return changes.slice(0, 0)
        return upto(changes, self.rows.slice(self.rows.num_rows - 1, 1), self.order)


@dataclass(slots=True, kw_only=True)
class _NextRows:
    """The first rows after one in an order, of entries that come part by part: those with counts above zero, summed."""

    order: Order
    after: pa.Table | None
    most: int
    rows: pa.Table | None = None
    is_last: bool = True
    """Whether no row was left out because it came later in the order."""
    read_count: int = 0

    def take(self, entries: pa.Table) -> None:
        """Take what matters of some entries."""
        self.read_count += entries.num_rows
        came = self._behind(entries.filter(pc.greater(entries[COUNT], 0)))
        if self.rows is not None and self.rows.num_rows == self.most:
            near = perhaps_upto(came, self.last, self.order)
            self.is_last = self.is_last and near.num_rows == came.num_rows
            came = near
        if came.num_rows:
            both = summed_up(came if self.rows is None else pa.concat_tables([self.rows, came]))
            self.rows = in_order(both, self.order).slice(0, self.most)
            self.is_last = self.is_last and both.num_rows <= self.most

    def among(self, entries: pa.Table) -> pa.Table:
        """Return those of some entries that lie where these rows lie."""
        return upto(self._behind(perhaps_upto(entries, self.last, self.order)), self.last, self.order)

    @property
    def last(self) -> pa.Table:
        """The last of the rows."""
        assert self.rows is not None, "there are some"
        return self.rows.slice(self.rows.num_rows - 1, 1)

    def _behind(self, entries: pa.Table) -> pa.Table:
        if self.after is None:
            return entries
        ordered = in_order(entries, self.order)
        return ordered.slice(places_upto(ordered, self.after, self.order))


def limited(result: RowResult[Any], request: RowRequest[Any]) -> RowResult[Any]:
    """Return the first of rows that were found whole, in the order of the request, and hold them.

    All, as they are, if it has no limit.
    """
    if request.limit is None:
        return result
    assert result.is_whole, "the first rows are chosen from all"
    if result.rows.held is None:
        rows = result.rows.first(request.order, request.limit + 1)
        is_whole = len(rows) <= request.limit
        return replace(
            result,
            rows=rows if is_whole else ArrowBag(rows.table.slice(0, request.limit)),
            is_whole=is_whole,
            read_count=result.rows.most,
        )
    first = FirstRows.of(summed_up(result.rows.counted), request.order, request.limit)
    return replace(
        result, rows=ArrowBag.of_counted(first.rows, NO_TICK), is_whole=first.is_whole, read_count=first.read_rows
    )


def _repeated(value: int, rows: pa.Table) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.int64()), rows.num_rows)
