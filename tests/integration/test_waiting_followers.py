"""A follower that waits for room goes on telling its server that it is there, and keeps its connection."""

from __future__ import annotations

import queue
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.changelog.follow import Followed, SourceThread
from headwater.model.relation import RelationName
from headwater.observe.events import Event, SourceConnected
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.postgres import PostgresSource

_TIMEOUT_SECONDS = 2
_TRANSACTIONS = 40
_ROWS = 500


@pytest.fixture(scope="module")
def impatient() -> Iterator[EmbeddedServer]:
    directory = Path(tempfile.mkdtemp(prefix="headwater-test-"))
    server = EmbeddedServer(directory, settings={"fsync": "off", "wal_sender_timeout": f"{_TIMEOUT_SECONDS}s"})
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(directory)


@pytest.mark.live
@pytest.mark.parametrize("waits_for", ["the queue", "what is held"])
def test_a_follower_that_waits_is_not_thrown_out(impatient: EmbeddedServer, waits_for: str) -> None:
    impatient.execute("DROP TABLE IF EXISTS items; CREATE TABLE items (id int, text text)")
    source = PostgresSource(name="shop", url=impatient.url(), project="patient")
    name, slot = RelationName(source="shop", name="items"), source.new_slot()
    start = source.prepare([name], slot, is_new=True)
    out: queue.Queue[Followed] = queue.Queue(1)
    heard: list[Event] = []
    is_full = waits_for == "what is held"
    thread = SourceThread(
        source, source.inspect([name]).relations, slot, lambda: start, out, heard.append, lambda: is_full
    )
    for number in range(_TRANSACTIONS):  # much more than a socket holds
        impatient.execute(f"INSERT INTO items SELECT {number}, repeat('x', 1000) FROM generate_series(1, {_ROWS})")
    thread.start()
    try:
        time.sleep(2.5 * _TIMEOUT_SECONDS)
        is_full = False
        found = 0
        deadline = time.monotonic() + 60
        while found < _TRANSACTIONS * _ROWS:
            assert time.monotonic() < deadline
            capture = out.get(timeout=30).capture
            found += 0 if capture is None else sum(table.num_rows for table in capture.rows.values())
    finally:
        thread.stop()
    assert [type(event) for event in heard] == [SourceConnected], "one connection was enough"
    assert found == _TRANSACTIONS * _ROWS
    source.teardown(slot, {})
