"""Shells complete verbs and options."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = 'import sys; sys.argv = ["headwater"]; from headwater.cli import main; main()'


def completed(words: str) -> list[str]:
    asked = {"_HEADWATER_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    return done.stdout.split()


@pytest.mark.parametrize(("words", "expected"), [("headwater sta", ["status"]), ("headwater query --fo", ["--format"])])
def test_the_shell_is_told_what_may_come_next(words: str, expected: list[str]) -> None:
    assert completed(words) == expected
