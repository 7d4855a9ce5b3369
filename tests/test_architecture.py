"""The folder list is the architecture: data moves from left to right, and imports point to the left only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "headwater"

LAYERS = (
    "errors",
    "fail_points",
    "guarantee",
    "keeping",
    "lineage_wish",
    "relation",
    "position",
    "transaction",
    "moment",
    "toml_table",
    "toml_edit",
    "project",
    "project_file",
    "deltas",
    "views",
    "sources",
    "changelog",
    "maintenance",
    "warehouse",
    "lineage",
    "advisor",
    "judge",
    "lab",
    "results",
    "runtime",
    "session",
    "opening",
    "demo",
    "prove",
    "cli",
    "dashboard",
)
"""Every module and package right under `headwater`, each importing only itself and what stands before it."""

ONLY_IN = {
    "pyspark": ("deltas/on_spark.py", "sources/", "warehouse/", "judge/", "runtime/", "session", "demo", "prove"),
    "psycopg": ("sources/", "demo"),
    "deltalake": ("changelog/", "warehouse/"),
    "sqlglot": ("views/", "sources/", "judge/", "warehouse/", "prove/"),
    "typer": ("cli/",),
    "rich": ("cli/", "demo"),
    "matplotlib": ("lab/charts.py", "lab/chart_style.py", "lab/papers/charts.py"),
}
"""Which parts of the package may import a library, as beginnings of paths."""

COLLECT_ONLY_IN = ("cli/", "judge/")
"""Rows become Python objects only where a person asked to see them, or a judge to compare them."""

DRAWERS = {"utils", "util", "helpers", "helper", "common", "base", "manager", "core", "misc", "stuff", "lib"}

LINE_LIMIT = 600

MODULES = sorted(PACKAGE.rglob("*.py"))


def place(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


def layer(path: str) -> str:
    return path.split("/", maxsplit=1)[0].removesuffix(".py")


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Yield every module that a file imports, at its top or inside a function, with the line."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                if module == "headwater":
                    yield from ((node.lineno, f"headwater.{name.name}") for name in names)
                else:
                    yield node.lineno, module
            case ast.ImportFrom():
                yield node.lineno, "a relative import"
            case _:
                pass


def test_every_package_has_its_place() -> None:
    found = {layer(place(file)) for file in MODULES} - {"__init__"}
    assert found <= set(LAYERS), "put new modules and packages into LAYERS, where their data comes by"


@pytest.mark.parametrize("file", MODULES, ids=place)
def test_imports_point_one_way(file: Path) -> None:
    own = layer(place(file))
    if own == "__init__":
        return
    wrong = [
        f"{place(file)}:{line} imports {module}"
        for line, module in imports(file)
        if module == "a relative import"
        or (module.startswith("headwater.") and LAYERS.index(module.split(".")[1]) > LAYERS.index(own))
    ]
    assert not wrong


@pytest.mark.parametrize("file", MODULES, ids=place)
def test_libraries_stay_where_they_are_the_point(file: Path) -> None:
    wrong = [
        f"{place(file)}:{line} imports {module}"
        for line, module in imports(file)
        if not place(file).startswith(ONLY_IN.get(module.split(".")[0], ("",)))
    ]
    assert not wrong


@pytest.mark.parametrize("file", MODULES, ids=place)
def test_rows_stay_in_arrow_and_spark(file: Path) -> None:
    if place(file).startswith(COLLECT_ONLY_IN):
        return
    tree = ast.parse(file.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    assert not [f"{place(file)}:{call.lineno}" for call in calls if call.func.attr == "collect"]


@pytest.mark.parametrize("file", MODULES, ids=place)
def test_init_files_only_re_export(file: Path) -> None:
    if file.name != "__init__.py":
        return
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Expr)
    statements = ast.parse(file.read_text(encoding="utf-8")).body
    assert all(isinstance(statement, allowed) for statement in statements)


def test_no_file_is_a_defect() -> None:
    files = [file for folder in ("src", "tests", "bench") for file in (ROOT / folder).rglob("*.py")]
    long = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert not {name: lines for name, lines in long.items() if lines > LINE_LIMIT}


def test_no_drawers() -> None:
    names = {part.removesuffix(".py") for file in MODULES for part in file.relative_to(PACKAGE).parts}
    assert not names & DRAWERS
    assert not [name for name in names if name.endswith("_v2")]
