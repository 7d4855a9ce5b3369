"""Bring base relations in DuckDB from tick to tick by the change log: what `check` recomputes views over.

    shown by a snapshot, the log taken back to the first tick ──► rows(first) ── Δ(first + 1) ──► rows(first + 1) ──► …

The log is read in parts of bounded size, each copied into a table of DuckDB's. A tick then costs what it changed and
one look through each relation that it took rows from. Rows that went give their memory back when a part is done.

Invariant: a row is taken away only where it was; a log that says otherwise is not gone along with.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot.errors import SqlglotError

from headwater.changelog.change_log import ChangeLog
from headwater.errors import HeadwaterError
from headwater.judge.replay import BaseRelations, duckdb_type, place_of, quoted_name
from headwater.judge.roll_back import RelationInSnapshot, Sightings
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Relation, RelationName
from headwater.storage.few_rows import read_in_parts


class NotJudgedHere(Exception):
    """Something that DuckDB cannot judge."""


@contextmanager
def as_not_judged() -> Iterator[None]:
    """Turn what keeps DuckDB from judging into `NotJudgedHere`."""
    import duckdb  # noqa: PLC0415 - only a judge needs it

    try:
        yield
    except (duckdb.Error, SqlglotError, TypeError, HeadwaterError) as error:  # TypeError: a value that has no hash
        raise NotJudgedHere from error


class BaseWalk:
    """The base relations, brought from tick to tick by the log."""

    def __init__(self, base: BaseRelations, log: ChangeLog) -> None:
        """Begin with no relations."""
        self._base = base
        self._log = log
        self._relations: dict[RelationName, LoggedRelationRows] = {}
        self.broken: set[RelationName] = set()
        self._end = Tick(0)
        self._start = Tick(0)

    def add(self, relation: Relation, staged: RelationInSnapshot, start: Tick, end: Tick, most_rows: int) -> None:
        """Put a relation's rows as of the first tick into DuckDB."""
        if not staged.columns:
            raise NotJudgedHere
        number = len(self._relations)
        self._start, self._end = start, end
        rows = LoggedRelationRows(
            self._base, relation, staged.columns, number, self._log.parts(relation.name, staged.columns, start, end)
        )
        sightings = Sightings.of(staged, self._log)
        after = sightings.oldest_correction(start)
        rows.begin(
            read_in_parts(staged.files, relation.arrow_schema(staged.columns)),
            (
                sightings.corrected(part, start)
                for part in self._log.parts(relation.name, staged.columns, after, self._log.last_tick)
            ),
            most_rows,
        )
        self._relations[relation.name] = rows

    def go_to(self, tick: Tick, most_rows: int) -> set[RelationName]:
        """Apply what the log holds up to a tick, and return what was changed."""
        changed = set()
        for name, rows in self._relations.items():
            if name in self.broken:
                continue
            try:
                with as_not_judged():
                    if rows.go_to(tick, most_rows):
                        changed.add(name)
            except NotJudgedHere:
                self.broken.add(name)
        return changed

    def change_counts(self, names: set[RelationName]) -> dict[RelationName, int]:
        """Return how many ticks changed each relation."""
        counts = {}
        for name in names:
            total, last = 0, list[int]()
            for part in self._log.parts(name, (), self._start, self._end):
                ticks = pc.unique(part[TICK]).to_pylist()
                total += len(ticks) - (ticks[:1] == last)
                last = ticks[-1:] or last
            counts[name] = total
        return counts


class LoggedRelationRows:
    """A relation in DuckDB, and its signed rows of the log beside it, of a part at a time."""

    def __init__(
        self,
        base: BaseRelations,
        relation: Relation,
        columns: Sequence[str],
        number: int,
        parts: Iterator[pa.Table],
    ) -> None:
        """Make the table that parts of the log are copied into."""
        self._run = base.connection.execute
        self._connection = base.connection
        self._parts = parts
        self._carried: pa.Table | None = None
        self._ticks: deque[Tick] = deque()
        self._ended = False
        self._place = place_of(relation.name)
        self._source = quoted_name(relation.name.source)
        self._pending, self._number = f"memory.main.pending_{number}", number
        self._names = [quoted_name(name) for name in columns]
        types = "".join(
            f"{quoted_name(one.name)} {duckdb_type(one.type)}, " for one in relation.columns if one.name in columns
        )
        self._run(f"CREATE TABLE {self._pending} ({types}{TICK} BIGINT, {COUNT} BIGINT)")
        self._listed = ", ".join(self._names)
        self._row_count = 0

    def begin(self, shown: Iterator[pa.Table], corrections: Iterator[pa.Table], most_rows: int) -> None:
        """Sum up what was shown and what has to be taken back or added. Only sums are held."""
        net = f"memory.main.net_{self._number}"
        grouped = f"{self._listed}, sum({COUNT})::BIGINT AS {COUNT}"
        self._run(f"CREATE TABLE {net} AS SELECT * EXCLUDE ({TICK}) FROM {self._pending} LIMIT 0")
        counted = (part.append_column(COUNT, pa.repeat(pa.scalar(1, pa.int64()), part.num_rows)) for part in shown)
        for part in chain(counted, corrections):
            if not part.num_rows:
                continue
            self._load(part)
            self._run(
                f"CREATE OR REPLACE TABLE {net} AS SELECT {grouped} FROM "
                f"(SELECT * FROM {net} UNION ALL SELECT * EXCLUDE ({TICK}) FROM {self._pending}) "
                f"GROUP BY ALL HAVING sum({COUNT}) <> 0"
            )
            self._require(self._one(f"SELECT count(*) FROM {net}") <= most_rows)
        self._require(self._one(f"SELECT count(*) FROM {net} WHERE {COUNT} < 0") == 0)
        self._require(self._one(f"SELECT coalesce(sum({COUNT}), 0)::BIGINT FROM {net}") <= most_rows)
        self._run(f"INSERT INTO {self._place} ({self._listed}) SELECT {self._expanded(net)}")
        self._run(f"DROP TABLE {net}")
        self._run(f"TRUNCATE {self._pending}")
        self._row_count = self._one(f"SELECT count(*) FROM {self._place}")
        self._prepare()

    def _prepare(self) -> None:
        """Prepare what every tick does: take rows away, and add rows."""
        netted = (
            f"SELECT {self._listed}, sum({COUNT})::BIGINT AS {COUNT} FROM {self._pending} "
            f"WHERE {TICK} > $1 AND {TICK} <= $2 GROUP BY {self._listed} "
            f"HAVING sum({COUNT})"
        )
        same = " AND ".join(f"held.{name} IS NOT DISTINCT FROM gone.{name}" for name in self._names)
        by = ", ".join(f"held.{name}" for name in self._names)
        self._run(
            f"PREPARE {self._gone} AS DELETE FROM {self._place} WHERE rowid IN (SELECT id FROM ("
            f"SELECT held.rowid AS id, row_number() OVER (PARTITION BY {by}) AS number, gone.{COUNT} AS most "
            f"FROM {self._place} AS held JOIN ({netted} < 0) AS gone ON {same}) WHERE number <= -most)"
        )
        self._run(f"PREPARE {self._due} AS SELECT coalesce(sum(-{COUNT}), 0)::BIGINT FROM ({netted} < 0)")
        self._run(
            f"PREPARE {self._new} AS INSERT INTO {self._place} ({self._listed}) "
            f"SELECT {self._expanded(f'({netted} > 0)')}"
        )

    @property
    def _gone(self) -> str:
        return f"gone_{self._number}"

    @property
    def _due(self) -> str:
        return f"due_{self._number}"

    @property
    def _new(self) -> str:
        return f"new_{self._number}"

    def go_to(self, tick: Tick, most_rows: int) -> bool:
        """Apply the rows up to a tick. Tell whether there were any."""
        moved = False
        while True:
            before, upto = None, None
            while self._ticks and self._ticks[0] <= tick:
                upto = self._ticks.popleft()
                before = Tick(upto - 1) if before is None else before
            if before is not None and upto is not None:
                moved = True
                self._apply(before, upto, most_rows)
            if self._ticks or not self._read_on():
                return moved

    def _apply(self, after: Tick, upto: Tick, most_rows: int) -> None:
        due = self._one(f"EXECUTE {self._due}({after}, {upto})")
        if due:
            gone = self._one(f"EXECUTE {self._gone}({after}, {upto})")
            self._require(gone == due)
            self._row_count -= gone
        self._row_count += self._one(f"EXECUTE {self._new}({after}, {upto})")
        self._require(self._row_count <= most_rows)

    def _read_on(self) -> bool:
        """Load the next part of the log, and return False at the end. The last tick of a part may go on, and waits."""
        if self._ended:
            return False
        part = next(self._parts, None)
        if part is None:
            self._ended, whole = True, self._carried
            self._carried = None
        else:
            joined = part if self._carried is None else pa.concat_tables([self._carried, part])
            last = pc.max(joined[TICK])
            whole, self._carried = (
                joined.filter(pc.equal(joined[TICK], last) if keep else pc.less(joined[TICK], last))
                for keep in (False, True)
            )
        if whole is not None and whole.num_rows:
            self._load(whole)
            self._ticks.extend(Tick(tick) for tick in sorted(pc.unique(whole[TICK]).to_pylist()))
            self._run(f"CHECKPOINT {self._source}")  # rows that went would stay in memory
        return True

    def _load(self, part: pa.Table) -> None:
        """Copy a part into DuckDB's own table: it must not filter or join tables of Arrow's."""
        stamped = part if TICK in part.column_names else part.append_column(TICK, pa.repeat(0, part.num_rows))
        named = ", ".join([*self._names, TICK, COUNT])
        self._connection.register("loaded", stamped)
        self._run(f"TRUNCATE {self._pending}")
        self._run(f"INSERT INTO {self._pending} ({named}) SELECT {named} FROM loaded")
        self._connection.unregister("loaded")

    def _expanded(self, counted: str) -> str:
        """Return the SELECT list and FROM that give each row as often as it is counted."""
        return f"{self._listed} FROM (SELECT {self._listed}, unnest(range({COUNT})) FROM {counted})"

    def _one(self, sql: str) -> int:
        [value] = self._run(sql).fetchone() or (0,)
        return int(value)

    def _require(self, holds: bool) -> None:
        if not holds:
            raise NotJudgedHere
