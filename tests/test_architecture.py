"""The folder list is the architecture: data moves from left to right, and imports point to the left only."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "headwater"
LAB = ROOT / "src" / "headwater_lab"

LAYERS = (
    "errors",
    "fail_points",
    "model",
    "deltas",
    "views",
    "sources",
    "observe",
    "storage",
    "changelog",
    "maintenance",
    "warehouse",
    "spark",
    "project",
    "engine",
    "lineage",
    "advisor",
    "judge",
    "explain",
    "api",
    "demo",
    "prove",
    "cli",
    "headwater_lab",
)
"""Every module and package right under `headwater`, each importing only itself and what stands before it.

The lab is last: a distribution of its own, which imports Headwater, and which Headwater never imports.
"""

ONLY_IN = {
    "pyspark": (
        *("deltas/on_spark.py", "deltas/compare_frames.py", "storage/", "warehouse/", "spark/", "project/resolve.py"),
        *("engine/", "lineage/", "advisor/", "judge/", "explain/", "api/", "demo", "prove"),
    ),
    "psycopg": ("sources/", "demo"),
    "deltalake": ("storage/", "changelog/", "warehouse/"),
    "sqlglot": (
        *("views/", "sources/", "judge/", "warehouse/", "prove/"),
        *("headwater_lab/in_memory/", "headwater_lab/literal/"),
    ),
    "typer": ("cli/", "headwater_lab/cli/"),
    "rich": ("cli/", "demo"),
    "msgspec": ("warehouse/", "prove/"),
    "tomlkit": ("advisor/",),
    "matplotlib": ("headwater_lab/charts.py", "headwater_lab/chart_style.py", "headwater_lab/papers/charts.py"),
}
"""Which parts of the packages may import a library, as beginnings of paths."""

COLLECT_ONLY_IN = ("cli/", "judge/", "deltas/compare_frames.py")
"""Rows become Python objects only where a person asked to see them, or a judge to compare them."""

DRAWERS = {"utils", "util", "helpers", "helper", "common", "base", "manager", "core", "misc", "stuff", "lib"}

LINE_LIMIT = 600
FILE_LIMIT = 34

MODULES = sorted([*PACKAGE.rglob("*.py"), *LAB.rglob("*.py")])


def place(file: Path) -> str:
    """Return where a file lies: in `headwater` without saying so, in the lab as `headwater_lab/…`."""
    return file.relative_to(PACKAGE if file.is_relative_to(PACKAGE) else LAB.parent).as_posix()


def layer(path: str) -> str:
    return path.split("/", maxsplit=1)[0].removesuffix(".py")


def is_beyond(module: str, own: str) -> bool:
    """Tell whether a module of ours stands after a layer."""
    match module.split("."):
        case ["headwater", name, *_]:
            return LAYERS.index(name) > LAYERS.index(own)
        case ["headwater_lab", *_]:
            return own != "headwater_lab"
        case _:
            return False


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Yield every module that a file imports, at its top or inside a function, by name or by text, with the line."""
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
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(module))]):
                yield node.lineno, module
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
        if module == "a relative import" or is_beyond(module, own)
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


def test_no_class_name_stands_twice() -> None:
    named: dict[str, list[str]] = {}
    for file in MODULES:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named.setdefault(node.name, []).append(place(file))
    assert not {name: files for name, files in named.items() if len(files) > 1}


def test_a_folder_can_be_read_at_a_glance() -> None:
    counts = Counter(Path(place(file)).parent.as_posix() for file in MODULES if file.name != "__init__.py")
    assert not {folder: count for folder, count in counts.items() if count > FILE_LIMIT}


def test_no_drawers() -> None:
    names = {part.removesuffix(".py") for file in MODULES for part in Path(place(file)).parts}
    assert not names & DRAWERS
    assert not [name for name in names if name.endswith("_v2")]
