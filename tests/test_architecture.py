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
    "publish",
    "project",
    "engine",
    "lineage",
    "advisor",
    "judge",
    "explain",
    "api",
    "console",
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
        *(
            "deltas/on_spark.py",
            "deltas/prepared_query.py",
            "deltas/stored_bag.py",
            "deltas/compare_frames.py",
            "storage/",
            "warehouse/",
            "spark/",
            "project/resolve.py",
        ),
        *("engine/", "lineage/", "advisor/", "judge/", "explain/", "api/", "demo", "prove"),
    ),
    "psycopg": ("sources/", "demo"),
    "deltalake": ("sources/delta/", "storage/", "changelog/", "warehouse/", "publish/"),
    "sqlglot": (
        *("views/", "sources/", "judge/", "warehouse/", "prove/"),
        *("headwater_lab/in_memory/", "headwater_lab/literal/", "headwater_lab/oracle.py"),
    ),
    "typer": ("cli/", "headwater_lab/cli/"),
    "rich": ("cli/", "demo"),
    "obstore": ("storage/",),
    "msgspec": ("warehouse/", "prove/"),
    "tomlkit": ("advisor/",),
    **dict.fromkeys(("fastapi", "starlette", "jinja2", "uvicorn"), ("console/",)),
    "matplotlib": ("headwater_lab/charts.py", "headwater_lab/chart_style.py", "headwater_lab/papers/charts.py"),
}
"""Which parts of the packages may import a library, as beginnings of paths."""

ADDRESSED = ("storage/", "changelog/", "warehouse/", "publish/", "engine/", "lineage/", "judge/")
"""Where addresses are of folders or of object stores, and none is taken for a path of this machine."""

PATHS_ONLY_IN = (
    "storage/local_folder.py",  # objects in a folder
    "storage/object_store.py",  # tells folders and object stores apart
    "storage/local_copies.py",  # copies on this machine, wherever the warehouse is
    "storage/mapped_rows.py",  # as above
)

COLLECT_ONLY_IN = ("cli/", "judge/", "deltas/compare_frames.py", "deltas/prepared_query.py")
"""Rows become Python objects only where a person asked for them, or a judge to compare. The last fetches bytes."""

DRAWERS = {"utils", "util", "helpers", "helper", "common", "base", "manager", "core", "misc", "stuff", "lib"}

LINE_LIMIT = 600
FILE_LIMIT = 30
SMALL = 40
"""A module of fewer lines of code that only a neighbour imports is a function of that neighbour."""

LISTS = (
    "headwater.console.app",  # a group of pages is a file
    "headwater.cli.app",  # a verb is a file
    "headwater.cli.added_verbs",  # a verb that tells how to install the lab
    "headwater.maintenance.published.algorithms",  # a published algorithm is a file
    "headwater_lab.cli.app",  # a verb of the lab is a file
    "headwater_lab.literal",  # a literal reading of a paper is a file
)
"""Modules that list others of their folder, each of which is a file however small it is."""

SMALL_ON_PURPOSE = {
    "headwater.changelog.mark": "a stored format",
    "headwater.api.view_reader": "what Python programs hold in their hands",
    "headwater.cli.entry": "where the program begins",
    "headwater_lab.cli.app": "the list of verbs",
    "headwater.sources.postgres.prepared": "a rule of its own: what a source may forget before COMMIT PREPARED",
    "headwater.project.choose_reading": "a rule of its own: the table of what a project says and what a view then does",
    "headwater.views.text.nearest": "the words of a refusal",
}
"""Small modules with one importer beside them that stay files, and why."""

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


@pytest.mark.parametrize("file", [one for one in MODULES if place(one).startswith(ADDRESSED)], ids=place)
def test_addresses_are_not_taken_for_paths(file: Path) -> None:
    """A warehouse may be on an object store: `pathlib` would make a folder that is called `s3:`."""
    if place(file) in PATHS_ONLY_IN:
        return
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imported = [f"{place(file)}:{line} {name}" for line, name in imports(file) if name in ("pathlib", "shutil", "glob")]
    opened = [
        f"{place(file)}:{node.lineno} open"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]
    named = [
        f"{place(file)}:{node.lineno} os.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
        if node.attr in ("path", "listdir", "scandir", "remove", "rename", "replace", "makedirs", "mkdir")
    ]
    assert not [*imported, *opened, *named]


@pytest.mark.parametrize("file", MODULES, ids=place)
def test_rows_stay_in_arrow_and_spark(file: Path) -> None:
    if place(file).startswith(COLLECT_ONLY_IN):
        return
    tree = ast.parse(file.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    assert not [f"{place(file)}:{call.lineno}" for call in calls if call.func.attr == "collect"]


LOOKUPS = ("Lookup", "Reader", "Bag", "Keys", "StoredSegment", "ComputedSegment", "Snapshot")
"""How the classes are called, or their names end, that rows are held in or looked up in."""


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=place)
def test_nobody_asks_which_kind_of_lookup_or_bag_it_has(file: Path) -> None:
    """One protocol means that what holds for one holds for all (`tests/contracts`): there is nothing to tell apart."""
    asked = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                names = [one.id for one in ast.walk(kinds) if isinstance(one, ast.Name)]
            case ast.MatchClass(cls=ast.Name(id=name)):
                names = [name]
            case ast.Call(func=ast.Name(id="hasattr")):
                names = ["Lookup"]
            case _:
                continue
        asked += [f"{place(file)}:{node.lineno} {name}" for name in names if name.endswith(LOOKUPS)]
    assert not asked


def test_sources_are_asked_by_their_lookup_alone() -> None:
    asking = {
        place(file)
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "probe"
    }
    assert asking == {"engine/state/source_lookup.py"}


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


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def code_line_count(file: Path) -> int:
    """Return how many lines have code: none that is empty, a comment, or within a docstring."""
    text = file.read_text(encoding="utf-8")
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                told.update(range(first, last + 1))
            case _:
                pass
    lines = enumerate(text.splitlines(), start=1)
    return sum(1 for number, line in lines if line.strip() and line.lstrip()[0] != "#" and number not in told)


def importers() -> dict[str, set[str]]:
    """Return by module who imports it: the module, or a name from it."""
    found: dict[str, set[str]] = {module_name(file): set() for file in MODULES}
    for file in MODULES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    named = [one.name for one in names]
                case ast.ImportFrom(module=str(module), names=names):
                    named = [module, *(f"{module}.{one.name}" for one in names)]
                case _:
                    continue
            for one in named:
                if one in found and one != module_name(file):
                    found[one].add(module_name(file))
    return found


def test_no_file_is_a_function_of_its_only_importer() -> None:
    folders, known = {module_name(file): file.parent for file in MODULES}, importers()
    small = set()
    for file in MODULES:
        name, by = module_name(file), known[module_name(file)]
        is_alone = len(by) == 1 and folders[next(iter(by))] == file.parent and not by & set(LISTS)
        if file.name != "__init__.py" and is_alone and code_line_count(file) < SMALL:
            small.add(name)
    assert small <= SMALL_ON_PURPOSE.keys(), "merge it with its importer, or say why it stays a file"


def test_what_is_small_on_purpose_is_there() -> None:
    assert {module_name(file) for file in MODULES} >= {*SMALL_ON_PURPOSE, *LISTS}


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
