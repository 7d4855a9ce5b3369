"""`headwater changes`: what it prints sums up to what the view shows, tick by tick, in every form."""

from __future__ import annotations

import io
import json
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from served import Served
from typer.testing import CliRunner
from written_project import TICKS, state_at

from headwater.cli.app import app


def printed(written: Served, *arguments: str) -> bytes:
    done = CliRunner().invoke(app, ["changes", *arguments, "--project", str(written.project.project.folder)])
    assert done.exit_code == 0, done.output
    return done.stdout_bytes


def sums(rows: list[dict[str, object]]) -> dict[int, Counter[tuple[object, ...]]]:
    found: dict[int, Counter[tuple[object, ...]]] = {}
    for row in rows:
        tick, count = row.pop("_tick"), row.pop("_count")
        assert isinstance(tick, int)
        assert isinstance(count, int)
        found.setdefault(tick, Counter())[tuple(row.values())] += count
    return found


@pytest.mark.parametrize("view", ["sold", "totals"])
def test_changes_lead_from_state_to_state(written: Served, view: str) -> None:
    rows = pa.ipc.open_stream(io.BytesIO(printed(written, view, "--from", "3", "--to", "29", "--format", "arrow")))
    by_tick = sums(rows.read_all().to_pylist())
    assert set(by_tick) <= set(range(4, 30))
    state = state_at(3)[view]
    for tick in range(4, 30):
        state.update(by_tick.get(tick, {}))
        assert Counter({row: count for row, count in state.items() if count}) == state_at(tick)[view], tick


def test_every_form_has_the_same_rows(written: Served) -> None:
    lines = printed(written, "totals", "--from", "20", "--format", "jsonl").decode().splitlines()
    as_lines = [json.loads(line) for line in lines]
    as_csv = printed(written, "totals", "--from", "20", "--format", "csv").decode().splitlines()
    found = pa.ipc.open_stream(io.BytesIO(printed(written, "totals", "--from", "20", "--format", "arrow"))).read_all()
    assert [(row["_tick"], row["_count"], row["city"], Decimal(row["paid"])) for row in as_lines] == [
        (row["_tick"], row["_count"], row["city"], row["paid"]) for row in found.to_pylist()
    ]
    assert len(as_csv) == len(as_lines) + 1
    document = json.loads(printed(written, "totals", "--from", "20", "--json"))
    assert len(document["rows"]) == len(as_lines)
    assert f"{len(as_lines)} changes of view" in printed(written, "totals", "--from", "20").decode()
    assert max(row["_tick"] for row in as_lines) == TICKS
