"""A server forgets what we acknowledged and nothing else, even while it sends a transaction that began long ago."""

from __future__ import annotations

import time
from typing import Any

from headwater.model.position import LSN, Position


def confirmed(world: Any) -> int:
    [(text,)] = world.execute(
        f"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = '{world.slot}'"
    )
    return LSN.parse(text)


def test_rows_from_before_the_acknowledged_position_acknowledge_nothing(world: Any) -> None:
    """While such rows come, we ask how far the server is, and it answers among them."""
    world.execute("CREATE TABLE items (id int, text text)")
    world.declare("items")
    follower = world.follow()
    with world.connect() as long:
        long.execute("INSERT INTO items SELECT g, repeat('x', 500) FROM generate_series(1, 60000) g")
        world.execute("INSERT INTO items VALUES (-1, 'durable')")
        durable = world.transactions(world.captures(follower))[-1].position
        follower.acknowledge(durable)
        follower.next_capture(0.05)
        world.execute("INSERT INTO items VALUES (-2, 'not durable')")
        [held] = world.transactions(world.captures(follower))
    far = Position(source=held.source, history=held.position.history, offset=held.position.offset + (1 << 40))
    follower.hasten(far)
    deadline = time.monotonic() + 30
    while (capture := follower.next_capture(0.01)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)  # so that the server has to wait for us, and looks at what we ask
    assert capture.transactions[-1].position > held.position
    time.sleep(0.2)
    assert durable.offset <= confirmed(world) < held.position.offset
