"""One view at one moment, and its changes as they are committed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.api.results import When
from headwater.deltas.on_arrow import ArrowBag, unfolded
from headwater.model.position import Tick
from headwater.model.relation import TICK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.api.session import Headwater

_LOOK_SECONDS = 0.5


class ViewReader:
    """One view at one moment."""

    def __init__(self, project: Headwater, name: str, moment: When | None) -> None:
        """Use `Headwater.view`."""
        self._project = project
        self._name = name
        self._moment = moment

    def at(self, moment: When) -> ViewReader:
        """Return a reader of the view at a tick, a source's position, or a time."""
        return ViewReader(self._project, self._name, moment)

    def df(self) -> DataFrame:
        """Return the rows as a Spark DataFrame."""
        return self._project.sql(f"SELECT * FROM `{self._name}`", at=self._moment)

    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self._project.query(f"SELECT * FROM `{self._name}`", at=self._moment).table

    def trace(self, where: str | None = None, *, whole_rows: bool = False) -> dict[str, DataFrame]:
        """Return the source rows that derived the rows for which a condition is true, by relation, as Spark DataFrames.

        A row that its relation holds k times stands k times.
        """
        from headwater.deltas.on_spark import to_dataframe  # noqa: PLC0415 - most readers need no Spark

        found = self._project.trace(self._name, where=where, at=self._moment, whole_rows=whole_rows)
        spark = self._project.spark
        return {one.relation: to_dataframe(spark, unfolded(ArrowBag(one.rows))) for one in found.relations}

    def changes(self, after: When, upto: When | None = None, *, follow: bool = False) -> Iterator[pa.Table]:
        """Yield the rows that came (`_count` above 0) and went after a moment, in the order of `_tick`.

        It ends at `upto`, or at the newest state. With `follow` it waits there for further commits and never ends.
        """
        found = self._project.changes(self._name, after, upto)
        yield found
        while follow:
            if found.num_rows:
                after = Tick(found[TICK][-1].as_py())
            time.sleep(_LOOK_SECONDS)  # the maintainer is another process: only its commits tell how far it has come
            found = self._project.changes(self._name, after)
            if found.num_rows:
                yield found
