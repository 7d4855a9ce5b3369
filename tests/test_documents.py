"""Documents are true: their Python runs, their links lead somewhere, and they name what is there."""

from __future__ import annotations

import doctest
import re
import runpy
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

PAGES: Mapping[str, Callable[[], str]] = runpy.run_path(str(ROOT / "docs" / "generate.py"))["PAGES"]


def name(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_python_in_documents_runs(document: Path) -> None:
    # a doctest ends at an empty line, so the fence that closes a block never looks like expected output
    assert doctest.testfile(str(document), module_relative=False, encoding="utf-8").failed == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8"))
    local = [target for target in targets if not target.startswith("http")]
    assert not [target for target in local if not (document.parent / target).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_toml_in_documents_is_toml(document: Path) -> None:
    for block in re.findall(r"```toml\n(.*?)```", document.read_text(encoding="utf-8"), flags=re.DOTALL):
        assert tomllib.loads(block)


def test_every_package_is_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = [folder.name for folder in (ROOT / "src" / "headwater").iterdir() if (folder / "__init__.py").exists()]
    assert not [package for package in packages if f"`{package}/`" not in text]


@pytest.mark.parametrize("page", PAGES)
def test_generated_pages_are_not_stale(page: str) -> None:
    written = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert written == PAGES[page](), "run `make docs`"


def test_every_code_is_among_the_errors() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    used = set(re.findall(r"HW-[0-9]{3}", text)) - {"HW-001"}  # an example in a docstring
    assert used == set(re.findall(r"^\| (HW-[0-9]{3}) \|", PAGES["errors.md"](), flags=re.MULTILINE))


def test_no_code_has_two_meanings() -> None:
    kinds: dict[str, set[str]] = {}
    for code, kind in re.findall(r"^\| (HW-[0-9]{3}) \| (\w+) \|", PAGES["errors.md"](), flags=re.MULTILINE):
        kinds.setdefault(code, set()).add(kind)
    assert not {code: found for code, found in kinds.items() if len(found) > 1}
