"""Documents are true: their Python runs, their links lead somewhere, and they name what is there."""

from __future__ import annotations

import doctest
import re
import runpy
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import pytest
from typer.main import get_group

from headwater.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
SCREEN = 45  # lines
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

OPTIONS = {
    verb: {"--help", "--version", *(option for parameter in command.params for option in parameter.opts)}
    for verb, command in get_group(app).commands.items()
}
GENERATED = runpy.run_path(str(ROOT / "docs" / "generate.py"))
PAGES: Mapping[str, Callable[[], str]] = GENERATED["PAGES"]


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
def test_links_to_sections_lead_to_one(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]*)#([^)]+)\)", document.read_text(encoding="utf-8"))
    local = [(target, section) for target, section in links if not target.startswith("http")]
    pages = {target: document.parent / target if target else document for target, _ in local}
    missing = [(target, section) for target, section in local if section not in sections(pages[target])]
    assert not missing


def sections(document: Path) -> set[str]:
    """Return the names by which the sections of a page can be linked to, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_verbs_in_documents_are_there(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:console|sh)?\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    shown = [line for block in blocks for line in re.findall(r"^(?:\$ )?headwater +(.*)", block, flags=re.MULTILINE)]
    inline = re.findall(r"`headwater ([^`]+)`", " ".join(text.split()))
    for command in (one for one in (*shown, *inline) if re.match(r"[a-z]", one)):
        verb, _, rest = command.partition(" ")
        assert verb in OPTIONS, command
        said = set(re.findall(r"(?<=\s)--[a-z-]+", f" {re.split('[#|]', rest)[0]}"))
        assert verb == "lab" or said <= OPTIONS[verb], command


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_toml_in_documents_is_toml(document: Path) -> None:
    for block in re.findall(r"```toml\n(.*?)```", document.read_text(encoding="utf-8"), flags=re.DOTALL):
        assert tomllib.loads(block)


def test_the_readme_is_three_screens_with_a_command_on_the_first() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 3 * SCREEN
    assert lines.index("```") < SCREEN
    sections = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert sections == ["Install", "Use it", "Why this, and why not", "How fast it is", "Guarantees and limits"]


def test_documents_are_in_the_order_a_newcomer_needs() -> None:
    index = ROOT / "docs" / "README.md"
    linked = [(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#]+)\)", index.read_text("utf-8"))]
    decisions = (ROOT / "docs" / "decisions").resolve()
    pages = [page for page in DOCUMENTS if page != index and decisions not in page.parents]
    assert not [name(page) for page in pages if page not in linked]
    order = [
        "README.md",
        "docs/tutorial.md",
        "docs/guides/deploy.md",
        "docs/reference/cli.md",
        "docs/theory/the-law.md",
    ]
    places = [linked.index(ROOT / page) for page in [*order, "docs/decisions", "docs/lab.md"]]
    assert places == sorted(places)


def test_the_walk_through_the_code_names_what_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    walk = text.partition("## One transaction, in fifteen steps\n")[2].partition("\n## ")[0]
    assert re.findall(r"^([0-9]+)\. ", walk, flags=re.MULTILINE) == [str(step) for step in range(1, 16)]
    named = names_of_code(walk)
    assert len(named) >= 15
    assert not {one for one, count in Counter(named).items() if count > 1}, "each function is named once"
    assert all(callable(resolve_name(f"headwater.{one}")) for one in named)


def test_five_additions_have_a_file_and_a_list() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## Five additions\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (a \w+) \| (.*) \| (.*) \| (.*) \|$", table, flags=re.MULTILINE)
    rows = {what: parts for what, *parts in lines}
    assert list(rows) == ["a source", "a step", "a verb", "a metric", "a setting"]
    for what, (written, listed, _) in rows.items():
        assert names_of_code(written), what
        assert names_of_code(listed), what
    for one in names_of_code(table):
        resolve_name(f"headwater.{one}")


def names_of_code(text: str) -> list[str]:
    """Return what a text names of our code by its path: `changelog.change_log.ChangeLog.append`."""
    dotted = re.findall(r"`([a-z_]+(?:\.\w+)*)`", text)
    return [one for one in dotted if find_spec(f"headwater.{one.partition('.')[0]}") is not None]


def test_what_is_not_there_is_noticed() -> None:
    assert names_of_code("`engine.batch`, `pgoutput` and `cli`") == ["engine.batch", "cli"]
    with pytest.raises(AttributeError):
        resolve_name("headwater.changelog.change_log.ChangeLog.appendd")
    assert "replica-or-probe" in sections(ROOT / "docs" / "reference" / "project-file.md")
    assert "reply" not in OPTIONS
    assert "--until-idle" in OPTIONS["run"]
    assert "--until-idle" not in OPTIONS["query"]


def test_the_glossary_has_about_thirty_words() -> None:
    words = re.findall(r"^\| ([a-z ]+) \|", (ROOT / "GLOSSARY.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(words) == len(set(words))
    assert 25 < len(words) - 1 <= 35


def test_every_package_is_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = [folder.name for folder in (ROOT / "src" / "headwater").iterdir() if (folder / "__init__.py").exists()]
    assert not [package for package in packages if f"`{package}/`" not in text]


def test_the_table_of_algorithms_is_not_stale() -> None:
    written = GENERATED["PAPERS"].read_text(encoding="utf-8")
    assert written == GENERATED["papers_page"](written), "run `make docs`"


@pytest.mark.parametrize("page", PAGES)
def test_generated_pages_are_not_stale(page: str) -> None:
    written = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert written == PAGES[page](), "run `make docs`"


def test_every_code_is_among_the_errors() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    used = set(re.findall(r"HW-[0-9]{3}", text)) - {"HW-001"}  # an example in a docstring
    assert used == set(re.findall(r"^\| (HW-[0-9]{3}) \|", PAGES["errors.md"](), flags=re.MULTILINE))


def test_no_code_has_two_meanings() -> None:
    texts = {name(file): file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py")}
    assert not unclear_codes(texts)


def unclear_codes(texts: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = GENERATED["unclear_codes"](GENERATED["error_places"](texts))
    return found


@pytest.mark.parametrize(
    "other",
    [
        'SourceLost("it is another thing", code="HW-901")',
        'SourceRefused("it is gone", code="HW-901")',
        'errors.SourceLost("it is another thing", code="HW-901")',
        'SourceLost("it is another thing", code=GONE)',
        'Reason(summary="it is another thing", code="HW-901")',
        'SourceLost(text, code="HW-901")',
    ],
)
def test_a_code_with_two_meanings_is_noticed(other: str) -> None:
    one = 'GONE = "HW-901"\nSourceLost("it is gone", code="HW-901", detail="why")'
    assert not unclear_codes({"one.py": one, "two.py": 'SourceLost("it is gone", code=GONE, detail="another why")'})
    assert unclear_codes({"one.py": one, "two.py": other}) == {"HW-901": ["one.py:2", "two.py:1"]}


def test_a_code_that_cannot_be_told_is_noticed() -> None:
    passed_on = "SourceLost(error.summary, code=error.code)"
    assert GENERATED["error_places"]({"one.py": passed_on}) == []
    with pytest.raises(ValueError, match=r"one\.py:1"):
        GENERATED["error_places"]({"one.py": 'SourceLost("it is gone", code=chosen())'})
    twice = 'SourceLost(text, code="HW-901")'
    assert unclear_codes({"one.py": twice, "two.py": twice}) == {"HW-901": ["one.py:1", "two.py:1"]}
