"""What things cost stands once, with the bench that measured it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import headwater
from headwater.model import costs

PACKAGE = Path(headwater.__file__).parent
ROOT = PACKAGE.parent.parent


def measured_elsewhere(text: str) -> list[str]:
    """Return the constants of a module, or of its classes, that look like a cost: milliseconds, or parts of one."""
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ) if isinstance(value, ast.Constant) and isinstance(value.value, float):
                if "millisecond" in name.lower() or 0 < value.value < 0.001:
                    found.append(name)
    return found


def test_costs_stand_once() -> None:
    texts = {file: file.read_text() for file in PACKAGE.rglob("*.py") if file != PACKAGE / "model" / "costs.py"}
    assert not {file: names for file, text in texts.items() if (names := measured_elsewhere(text))}


def test_a_cost_that_stands_elsewhere_is_noticed() -> None:
    assert measured_elsewhere("_JOB_MILLISECONDS = 100.0") == ["_JOB_MILLISECONDS"]
    assert measured_elsewhere("class A:\n    lookup_milliseconds: ClassVar[float] = 1.0") == ["lookup_milliseconds"]
    assert measured_elsewhere("_ROW_SECONDS = 0.3e-6") == ["_ROW_SECONDS"]
    assert measured_elsewhere("WAIT_SECONDS = 5.0\nlookup_milliseconds = costs.JOB") == []


def test_benches_that_are_named_are_there() -> None:
    named = set(re.findall(r"bench/[\w/]+\.(?:md|py)", Path(costs.__file__).read_text()))
    assert len(named) > 3
    assert not [name for name in named if not (ROOT / name).exists()]
