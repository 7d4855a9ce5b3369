"""Positions in the log of a Delta table: versions, each with the proof of its commit file."""

from __future__ import annotations

from headwater.model.position import Notation, Position
from headwater.sources.delta.commits import proof_of
from headwater.sources.delta.lake import Table

NOTATION = Notation(history="table id")


def position_at(
    table: Table, table_id: str, version: int, content: bytes | None = None, *, proof: bytes | None = None
) -> Position:
    """Return the position after a version. Its commit file is read unless it or its proof is given."""
    if proof is None:
        said = table.commit_bytes(version) if content is None else content
        proof = b"" if said is None else proof_of(said)
    return Position(
        source=table.relation.source,
        log=table.log,
        history=table_id,
        offset=version,
        notation=NOTATION,
        proof=proof,
    )
