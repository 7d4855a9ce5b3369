"""A step is told in one place: nothing outside of `views/steps` asks what kind it is, nor compares a segment's name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.views.steps.computed import Aggregates, First, Windows
from headwater.views.steps.kinds import KINDS
from headwater.views.steps.segments import Step

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "headwater"
STEPS = PACKAGE / "views" / "steps"
MODULES = sorted([*PACKAGE.rglob("*.py"), *PACKAGE.with_name("headwater_lab").rglob("*.py")])

KIND_NAMES = {kind.__name__ for kind in (*KINDS, Aggregates, Windows, First)}

MAY_ASK = {
    "views/compile/draft.py": "the compiler types what it is about to write",
    "views/compile/prune_columns.py": "the compiler leaves columns out of what it is about to write",
    "views/compile/write_segments.py": "the compiler writes the steps",
    "views/laws/extremes.py": "a law of MIN and MAX alone",
    "views/laws/regroup.py": "the law of a regroup, which has three forms",
}
"""Who may ask for a kind, and why."""

SEGMENTS_IN = "model/relation.py"


def place(file: Path) -> str:
    return file.relative_to(PACKAGE.parent).as_posix().removeprefix("headwater/")


def names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} | {
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)
    }


def asked_kinds(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the kinds of step that are matched on or tested for, with the line."""
    for node in ast.walk(tree):
        match node:
            case ast.MatchClass(cls=cls):
                found = names_in(cls)
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
                found = names_in(kinds)
            case ast.Compare(left=left, comparators=others) if any(
                isinstance(side, ast.Call) and names_in(side.func) == {"type"} for side in (left, *others)
            ):
                found = set[str]().union(*map(names_in, others))
            case _:
                continue
        yield from ((node.lineno, name) for name in sorted(found & KIND_NAMES))


def compared_segments(tree: ast.AST) -> Iterator[int]:
    """Yield the lines at which a text is compared with what stands for a source in segments' names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            is_named = any("SEGMENTS" in names_in(side) for side in sides)
            is_written = any(isinstance(side, ast.Constant) and side.value == "segments" for side in sides)
            of_source = any(isinstance(side, ast.Attribute) and side.attr == "source" for side in sides)
            if is_named or (is_written and of_source):
                yield node.lineno


@pytest.mark.parametrize("file", MODULES, ids=place)
def test_only_a_step_knows_its_kind(file: Path) -> None:
    if STEPS in file.parents or place(file) in MAY_ASK:
        return
    assert not list(asked_kinds(ast.parse(file.read_text(encoding="utf-8")))), "ask the step (`Step`) instead"


@pytest.mark.parametrize("name", MAY_ASK)
def test_who_may_ask_does(name: str) -> None:
    assert list(asked_kinds(ast.parse((PACKAGE / name).read_text(encoding="utf-8")))), "take it out of MAY_ASK"


@pytest.mark.parametrize("file", sorted(STEPS.glob("*.py")), ids=place)
def test_a_step_asks_for_no_kind_but_what_a_regroup_computes(file: Path) -> None:
    found = {name for _, name in asked_kinds(ast.parse(file.read_text(encoding="utf-8")))}
    assert found <= ({"Aggregates", "Windows", "First"} if file.name == "regroup_step.py" else set())


@pytest.mark.parametrize("file", MODULES, ids=place)
def test_a_segment_is_told_by_its_type(file: Path) -> None:
    if place(file) == SEGMENTS_IN:
        return
    assert not list(compared_segments(ast.parse(file.read_text(encoding="utf-8")))), "isinstance(name, SegmentName)"


def test_what_is_looked_for_is_found() -> None:
    asked = ast.parse("match step:\n  case JoinStep(): ...\nisinstance(step, GroupStep | UnionStep)\ntype(a) is First")
    assert sorted(asked_kinds(asked)) == [(2, "JoinStep"), (3, "GroupStep"), (3, "UnionStep"), (4, "First")]
    compared = ast.parse('name.source == SEGMENTS\nname.source != "segments"\n"segments" in told')
    assert list(compared_segments(compared)) == [1, 2]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_kind_is_one_file_with_all_that_is_asked(kind: type[Step]) -> None:
    assert kind.__module__ == f"headwater.views.steps.{kind.__name__.removesuffix('Step').lower()}_step"
    asked = {name for name in vars(Step) if not name.startswith("_")}
    assert not {name for name in asked if not hasattr(kind, name)}


def test_every_file_of_a_step_is_in_the_list() -> None:
    assert {file.stem for file in STEPS.glob("*_step.py")} == {kind.__module__.rsplit(".", 1)[1] for kind in KINDS}
