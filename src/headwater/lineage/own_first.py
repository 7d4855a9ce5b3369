"""Of all rows of a window's partition, those come first that the traced row itself is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from headwater.lineage.sought import OF
from headwater.lineage.traced import Traced


def own_first(every: Sequence[Traced], own: Sequence[Traced]) -> Iterator[Traced]:
    """Yield what was traced of whole partitions, the rows first that were traced of the rows themselves."""
    waiting = list(own)
    for one in every:
        mine = next((other for other in waiting if (other.name, other.title) == (one.name, one.title)), None)
        if mine is None:
            yield one
            continue
        waiting.remove(mine)
        known = set(_rows(mine.rows))
        is_own = [row in known for row in _rows(one.rows)]
        order = sorted(range(len(is_own)), key=lambda place: not is_own[place])
        yield replace(one, rows=one.rows.take(order), below=tuple(_moved(below, order) for below in one.below))


def _rows(rows: pa.Table) -> list[str]:
    return [repr(row) for row in rows.to_pylist()]


def _moved(below: Traced, order: list[int]) -> Traced:
    """Return what derives from rows that have other places now."""
    now = {was: place for place, was in enumerate(order)}
    of = pa.array([None if was is None else now[was] for was in below.rows[OF].to_pylist()], pa.int64())
    return replace(below, rows=below.rows.set_column(below.rows.column_names.index(OF), OF, of))
