"""A folder of Delta tables as a source: see `headwater.sources.source`.

- A version of a table is a transaction of that table. No transaction has a part in two tables.
- What recognises a log is the table's id and, because copies share it, the content of the last commit file.
- The log is kept by a clock of its own (`delta.logRetentionDuration`), and data files by another one
  (`delta.deletedFileRetentionDuration`); what was deleted too early is a lost source.
- Any version whose files are there can be read, so an answer shows exactly what the change log holds.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from headwater.errors import HeadwaterError
from headwater.model.memory_budget import SPILL_BYTES
from headwater.model.position import Distance, Position, Positions, by_log
from headwater.model.relation import Relation, RelationName, arrow_type
from headwater.model.transaction import Capture, SeenOfLogs
from headwater.sources.delta.follower import DeltaFollower, TableLog, require_proof
from headwater.sources.delta.lake import Lake, position_at
from headwater.sources.delta.snapshot import DeltaReader, DeltaSnapshot, position_name, shown_tables
from headwater.sources.delta.state import load_state
from headwater.sources.delta.types import columns_of
from headwater.sources.measure import ColumnMeasure, RelationMeasure, SourceMeasure
from headwater.sources.source import (
    Abilities,
    Inspection,
    ProjectSlots,
    SourceSettings,
    TornDown,
    missing_relation,
)

_ABILITIES = Abilities(
    shares_snapshots=True, exports_snapshots=False, reads_as_of=True, holds_log=False, tells_every_transaction=True
)
_TEXT_BYTES = 16.0
_BYTES_PER_SECOND = 200e6
_OPEN_SECONDS = 0.005


class DeltaSource:
    """See `headwater.sources.source.Source`."""

    default_schema = "."
    """The folder itself. No relation is named so."""

    def __init__(self, name: str, lake: Lake, *, spill_bytes: int = SPILL_BYTES) -> None:
        """Keep where the tables are."""
        self.name = name
        self.lake = lake
        self._spill_bytes = spill_bytes
        self._described: dict[RelationName, int] = {}

    @classmethod
    def connect(cls, settings: SourceSettings) -> Self:
        """Return the source that a URL names: `delta:/srv/lake`."""
        settings.allow_options()
        return cls(settings.name, Lake.at(settings.url(), settings.name), spill_bytes=settings.spill_bytes)

    @property
    def abilities(self) -> Abilities:
        """What Delta tables can do."""
        return _ABILITIES

    def inspect(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations. A table that cannot be read is refused, the others are described."""
        relations: list[Relation] = []
        refusals: list[HeadwaterError] = []
        warnings: list[str] = []
        for name in names:
            table = self.lake.table(name)
            if not table.is_there:
                found = ", ".join(f"{self.name}.{one}" for one in self.lake.names()) or "none"
                refusals.append(missing_relation(name, f'"{table.path}" is no Delta table; tables here: {found}'))
                continue
            try:
                state = load_state(table)
            except HeadwaterError as refusal:
                refusals.append(refusal)
                continue
            self._described[name] = state.version
            columns, unusable = columns_of(state.layout.schema_text, state.layout.partition_columns)
            relations.append(Relation(name=name, columns=columns, unusable=unusable, row_estimate=state.row_count))
            if state.layout.configuration.get("delta.enableChangeDataFeed", "false").lower() != "true":
                warnings.append(
                    f"{name} has no change data feed: the change of a row is found by reading every file that was "
                    f"written for it. Let the owner run ALTER TABLE {str(name).partition('.')[2]} SET TBLPROPERTIES "
                    "(delta.enableChangeDataFeed = true)"
                )
        return Inspection(
            relations=tuple(relations),
            owner_sql=(),
            may_run_owner_sql=True,
            refusals=tuple(refusals),
            warnings=tuple(warnings),
        )

    def slots(self) -> ProjectSlots:
        """Return none: nothing is made at the tables."""
        return ProjectSlots(present={}, former="")

    def new_slot(self) -> str:
        """Return a name. Nothing is made."""
        return f"{self.name}_{secrets.token_hex(4)}"

    def prepare(self, relations: Sequence[RelationName], slot: str, *, is_new: bool) -> Positions:
        """Return where the logs end now."""
        del slot, is_new
        for refusal in self.inspect(relations).refusals:
            raise refusal
        return by_log(shown.position for shown in shown_tables([*map(self.lake.table, relations)], None).values())

    def follow(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> DeltaFollower:
        """Open the logs after the positions up to which the change log holds them."""
        del slot
        return DeltaFollower(self._logs(relations, held_to), spill_bytes=self._spill_bytes)

    def _logs(self, relations: Sequence[Relation], held_to: Positions) -> list[TableLog]:
        return [self._log(one, held_to.get(position_name(self.lake.table(one.name)))) for one in relations]

    def _log(self, relation: Relation, held: Position | None) -> TableLog:
        table = self.lake.table(relation.name)
        if held is not None:
            require_proof(table, held)
            log = TableLog(table, relation, held, self._described.get(relation.name, 0))
            log.end()
            return log
        versions = table.versions()
        if not versions:
            raise missing_relation(relation.name, f'"{table.path}" is no Delta table')
        state = load_state(table)
        return TableLog(table, relation, position_at(table, state.layout.table_id, versions[0]))

    def peek(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> Capture | None:
        """Return the transactions after some positions."""
        del slot
        return DeltaFollower(self._logs(relations, held_to), spill_bytes=self._spill_bytes, is_peek=True).next_capture(
            0.0
        )

    def snapshot(
        self, relations: Sequence[RelationName], *, bootstrap: bool = False, at: Positions | None = None
    ) -> DeltaSnapshot:
        """Open a snapshot of some relations, each as of its newest version, or of a version of the past."""
        del bootstrap
        return DeltaSnapshot(self.name, shown_tables([*map(self.lake.table, relations)], at))

    @contextmanager
    def join(self, said: Mapping[str, Any]) -> Iterator[DeltaReader]:
        """Not asked for: its snapshots are for one process."""
        raise AssertionError(f"its snapshots are for one process: {said}")
        yield  # pragma: no cover

    def login(self) -> str:
        """Return the URL."""
        return f"delta:{self.lake.path}"

    def read_seen(self, said: Mapping[str, Any]) -> SeenOfLogs:
        """Return what a reader has written of what it saw."""
        return SeenOfLogs.read(said)

    def distance(self, earlier: Position, later: Position) -> Distance:
        """Return how many versions lie between two positions."""
        return Distance(amount=max(0, later.offset - earlier.offset), unit="versions")

    def index_hint(self, relation: Relation, columns: Sequence[str]) -> str | None:
        """Return None: files are found by their statistics."""
        del relation, columns
        return None

    def measure(self, relations: Sequence[Relation]) -> SourceMeasure:
        """Say how many rows relations have, from their logs."""
        sizes = {relation.name: float(load_state(self.lake.table(relation.name)).row_count) for relation in relations}
        return SourceMeasure(
            relations={
                relation.name: RelationMeasure(
                    rows=sizes[relation.name],
                    columns={
                        column.name: ColumnMeasure(width=_width(column.type), distinct=max(sizes[relation.name], 1.0))
                        for column in relation.columns
                    },
                )
                for relation in relations
            },
            block_bytes=1 << 20,
            trip_seconds=_OPEN_SECONDS,
            byte_seconds=1 / _BYTES_PER_SECOND,
            block_seconds=(1 << 20) / _BYTES_PER_SECOND,
        )

    def teardown(self, slot: str | None, held_to: Positions) -> TornDown:
        """Drop nothing: nothing was made."""
        del slot, held_to
        return TornDown(dropped=(), left=())


def _width(kind: str) -> float:
    try:
        return float(arrow_type(kind).bit_width) / 8
    except ValueError:  # texts have no fixed width
        return _TEXT_BYTES
