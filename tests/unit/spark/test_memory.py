"""How much memory the virtual machine gets that we start: what the user says, else the project, else three GB."""

from __future__ import annotations

import os
from typing import Any

import pytest
from pyspark import SparkContext

from headwater.spark import gateway, session

NAME = "SPARK_DRIVER_MEMORY"


class Launched(Exception):
    """The virtual machine would have been started."""


@pytest.mark.parametrize(
    ("said", "memory_bytes", "expected"),
    [(None, None, "3g"), (None, 5 * 2**30, "5120m"), ("7g", 5 * 2**30, "7g"), ("7g", None, "7g")],
)
def test_who_says_how_much(
    said: str | None, memory_bytes: int | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(NAME, raising=False)
    if said is not None:
        monkeypatch.setenv(NAME, said)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    started: dict[str, Any] = {}

    def launch(_conf: object, options: dict[str, Any]) -> None:
        options["env"] = dict(os.environ)
        started.update(options["env"])
        raise Launched

    monkeypatch.setattr(gateway, "launch_gateway", launch)
    with pytest.raises(Launched):
        session._build((), memory_bytes)
    assert started[NAME] == expected
