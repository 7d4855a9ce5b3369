"""What is made once per Spark session is one thing, also when several threads ask for it first at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from headwater.deltas.on_spark import made_once

AT_ONCE = 4


def test_threads_that_ask_at_the_same_time_get_the_same() -> None:
    all_here = threading.Barrier(AT_ONCE)
    begun = threading.Event()

    @made_once
    def make(_name: str) -> object:
        begun.wait(0.2)  # long enough for the others to ask too
        return object()

    def ask(_: int) -> object:
        all_here.wait()
        return make("session")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = set(pool.map(ask, range(AT_ONCE)))
    assert len(made) == 1
    assert make("session") in made
    assert make("another") not in made
