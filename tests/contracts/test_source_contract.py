"""The contract of sources notices what is wrong with a source, and costs those nothing who do not use it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NOTICED = {
    "Twice": "test_nothing_is_lost_and_nothing_comes_twice_from_any_position",
    "Forgetful": "test_peeking_moves_nothing",
    "FirstOnly": "test_peeking_moves_nothing",
    "Backwards": "test_transactions_come_whole_and_in_the_order_of_their_positions",
    "Boastful": "test_what_a_snapshot_saw_is_what_the_log_tells_of_it",
    "Distinct": "test_probes_find_the_rows_of_their_keys",
    "NullMatches": "test_probes_find_the_rows_of_their_keys",
    "Lax": "test_texts_are_found_exactly",
    "Overlapping": "test_chunks_hold_every_row_once",
    "Destructive": "test_what_is_torn_down_is_gone_and_the_rest_is_left",
    "NeverBehind": "test_how_far_behind",
    "Silent": "test_a_table_that_is_altered_is_told_or_refused",
    "Trusting": "test_another_log_under_the_same_address_is_noticed",
    "Latest": "test_a_snapshot_of_the_past",
    "Stale": "test_a_snapshot_stays_as_it_is",
    "Drifting": "test_another_process_joins_a_snapshot",
    "Lingering": "test_another_process_joins_a_snapshot",
}
"""By which test of the contract each broken source is noticed, among others."""

RIGHT = ("Twice", "test_relations_are_described")
"""What is right of a broken source is not noticed."""


def test_every_broken_source_is_noticed() -> None:
    played = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-rf",
                "--tb=no",
                "-p",
                "no:cacheprovider",
                "--import-mode=prepend",
            ),
            *("-c", str(HERE.parents[1] / "pyproject.toml")),
            *(f"{HERE / 'broken_sources.py'}::TestBroken::{test}[{kind}]" for kind, test in [*NOTICED.items(), RIGHT]),
        ],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = set(re.findall(r"^FAILED \S+::(\w+)\[(\w+)\]", played.stdout, re.MULTILINE))
    assert failed == {(test, kind) for kind, test in NOTICED.items()}, played.stdout + played.stderr
    assert played.stdout.splitlines()[0].startswith("F" * len(NOTICED) + "."), played.stdout


def test_pytest_loads_nothing_heavy_for_those_who_do_not_use_it() -> None:
    program = (
        "import sys, headwater_contracts.plugin\n"
        "assert not {name for name in ('headwater', 'pyarrow', 'pyspark', 'psycopg') if name in sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
