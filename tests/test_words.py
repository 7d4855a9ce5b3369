"""Names and sentences are plain: no private English, one class for one name, docstrings that open with a sentence."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"
CODE = sorted(SOURCES.rglob("*.py"))
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "decisions"),
]

FORBIDDEN = {
    "whoever": "name the subject: the reader, the caller, the maintainer",
    "whichever": "any, or the cheaper one",
    "nobody is there": "there is no terminal",
    "so many": "how many, or this many",
    "anew": "again",
    "newborn": "new",
    "lives? on": "needs, or reads",
    "waited for company": "wait",
    "at hand": "current",
    "(?:is|are|was|were|be|been) told": "is reported, is shown, or knows",
    "signs? of life": "heartbeat",
    "hidden tables?": "auxiliary table",
    "lower views?": "upstream view",
    "unheard": "ignore",
}
"""Phrases that a reader who is not a native speaker stumbles over, each with what to write instead."""


def name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def phrases(text: str) -> Iterator[str]:
    """Yield the forbidden phrases of a text, each with its line and what to write instead."""
    for number, line in enumerate(text.splitlines(), start=1):
        for phrase, instead in FORBIDDEN.items():
            if found := re.search(rf"\b{phrase}\b", line, flags=re.IGNORECASE):
                yield f'line {number}: "{found[0]}"; write: {instead}'


def long_openings(text: str) -> Iterator[str]:
    """Yield the docstrings whose first line has a semicolon."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, kinds) and ";" in (opening := (ast.get_docstring(node) or "").partition("\n")[0]):
            yield opening


@pytest.mark.parametrize("file", CODE, ids=name)
def test_code_is_in_plain_words(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert not [*phrases(text), *long_openings(text)]


@pytest.mark.parametrize("page", DOCUMENTS, ids=name)
def test_documents_are_in_plain_words(page: Path) -> None:
    assert not list(phrases(page.read_text(encoding="utf-8")))


def test_no_class_name_stands_twice() -> None:
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in CODE]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert not {one for one, count in names.items() if count > 1}


def test_what_is_not_plain_is_noticed() -> None:
    assert list(phrases("It is read\nanew by whoever asks.")) == [
        'line 2: "whoever"; write: name the subject: the reader, the caller, the maintainer',
        'line 2: "anew"; write: again',
    ]
    assert not list(phrases("The reader is overdue and the company renews."))
    assert list(long_openings('def f():\n    """Return it; None if there is none.\n\n    More; of it.\n    """')) == [
        "Return it; None if there is none."
    ]
