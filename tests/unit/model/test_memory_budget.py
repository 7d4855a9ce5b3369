"""The shares of a budget: together no more than the whole, and given back what was taken, whoever takes it."""

from __future__ import annotations

import threading

import pytest

from headwater.model.memory_budget import LEAST_BYTES, MemoryBudget, Share


@pytest.mark.parametrize("limit_bytes", [LEAST_BYTES, 2 * 10**9, 10**12 + 7])
@pytest.mark.parametrize("source_count", [1, 7])
def test_all_shares_together_are_no_more_than_the_whole(limit_bytes: int, source_count: int) -> None:
    budget = MemoryBudget.of(limit_bytes)
    gathered = budget.spill_bytes(source_count) * source_count
    incomplete = budget.incomplete_bytes(source_count) * source_count
    captures = gathered + 2 * budget.queue_bytes + incomplete  # those that wait, and those that are appended
    journal = 2 * budget.journal_bytes  # what is held, and what is read to fold it
    shares = (captures, budget.tail_bytes, journal, budget.rows.limit_bytes, budget.batch_bytes)
    assert 0.99 * limit_bytes < sum(shares) <= limit_bytes
    assert budget.batch_rows(10**12) * 1_000 <= budget.batch_bytes


def test_threads_take_no_more_than_there_is() -> None:
    share = Share(1_000)
    taken = [0] * 8

    def work(number: int) -> None:
        for turn in range(2_000):
            size = (number * 31 + turn * 17) % 90 + 1
            if share.take(size):
                assert share.held_bytes <= share.limit_bytes
                taken[number] += 1
                share.give_back(size)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(taken)
    assert share.held_bytes == 0
