"""`headwater init`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.options import DebugOption, JsonOption
from headwater.cli.outcome import outcome
from headwater.cli.render.page import Line, Page
from headwater.errors import InvalidProject, did_you_mean
from headwater.model.project import PROJECT_FILE
from headwater.project.file import load, name_obstacle

TEMPLATES = (
    ("headwater.toml", PROJECT_FILE),
    ("example.sql", "views/example.sql"),
    ("readme.md", "README.md"),
    ("gitignore", ".gitignore"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTemplate:
    """What a new project says of a kind of source: how its URL looks, and the file that says what its owner does."""

    url: str
    readme: str


SOURCE_TEMPLATES: Mapping[str, SourceTemplate] = {
    "postgresql": SourceTemplate(url="postgresql://USER:PASSWORD@HOST:PORT/DATABASE", readme="postgresql.md"),
    "mariadb": SourceTemplate(url="mariadb://USER:PASSWORD@HOST:PORT/DATABASE", readme="mariadb.md"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InitResult:
    """What `init` wrote."""

    folder: Path
    files: tuple[str, ...]


def init(
    folder: Annotated[Path, typer.Argument(help="The folder to make; its name becomes the project's.")],
    *,
    source: Annotated[
        str, typer.Option("--source", help="The kind of the source: postgresql or mariadb.")
    ] = "postgresql",
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Make a project folder with a commented project file."""
    with outcome(as_json=as_json, debug=debug) as output:
        output.show(create_project(folder, source), _draw)


def create_project(folder: Path, source: str = "postgresql") -> InitResult:
    """Write a new project over a kind of source. A folder that has something in it already is refused."""
    if source not in SOURCE_TEMPLATES:
        raise InvalidProject(
            f"there is no template for sources of kind {source!r}",
            code="HW-389",
            detail=f"there are templates for {', '.join(SOURCE_TEMPLATES)}",
            hint=did_you_mean(source, tuple(SOURCE_TEMPLATES), otherwise="name one of them after --source"),
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidProject(
            f'"{folder}" is there already and is not an empty folder', code="HW-119", hint="choose another name"
        )
    if obstacle := name_obstacle(folder.absolute().name):
        raise InvalidProject(
            f"{folder.name!r} cannot be the name of a project",
            code="HW-162",
            detail=obstacle,
            hint="choose another name",
        )
    (folder / "views").mkdir(parents=True, exist_ok=True)
    templates = files("headwater.cli") / "templates"
    name = folder.absolute().name.replace("\\", "").replace('"', "")
    kind = SOURCE_TEMPLATES[source]
    said = {
        "@NAME@": name,
        "@URL@": kind.url,
        "@SOURCE@": (templates / kind.readme).read_text(encoding="utf-8").rstrip(),
    }
    for template, path in TEMPLATES:
        text = (templates / template).read_text(encoding="utf-8")
        for place, meant in said.items():
            text = text.replace(place, meant)
        (folder / path).write_text(text, encoding="utf-8")
    load(folder)
    return InitResult(folder=folder, files=tuple(path for _, path in TEMPLATES))


def _draw(result: InitResult) -> Page:
    return [
        *(Line(text=f"wrote {result.folder / file}") for file in result.files),
        Line(text=f"next: cd {result.folder}, read README.md, then `headwater plan`"),
    ]
