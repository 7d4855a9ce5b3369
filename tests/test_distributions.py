"""Two distributions: what each brings and needs; and the exact versions that a fresh clone installs."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from importlib.metadata import requires
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LAB = ROOT / "src" / "headwater_lab"
OURS = {"headwater", "headwater-lab"}


def project(folder: Path) -> dict[str, object]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def wheel(folder: Path, to: Path) -> ZipFile:
    return ZipFile(next(WheelBuilder(str(folder)).build(directory=str(to))))


def metadata(built: ZipFile) -> str:
    (name,) = [name for name in built.namelist() if name.endswith(".dist-info/METADATA")]
    return built.read(name).decode().split("\n\n")[0]


def packages(built: ZipFile) -> set[str]:
    return {name.split("/")[0] for name in built.namelist() if ".dist-info/" not in name}


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


def needed(text: str, extras: frozenset[str] = frozenset()) -> Iterator[Requirement]:
    """Yield a requirement and all that it needs, for this Python, of what is installed here."""
    requirement = Requirement(text)
    if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras | {""}):
        return
    if requirement.name in OURS:
        return
    yield requirement
    for below in requires(requirement.name) or ():
        yield from needed(below, frozenset(requirement.extras))


def test_the_product_brings_nothing_of_the_lab(tmp_path: Path) -> None:
    with wheel(ROOT, tmp_path) as built:
        assert packages(built) == {"headwater", "headwater_contracts"}
        assert "matplotlib" not in metadata(built)


def test_the_lab_brings_itself_alone_and_its_verb(tmp_path: Path) -> None:
    with wheel(LAB, tmp_path) as built:
        assert packages(built) == {"headwater_lab"}
        files = {name for name in built.namelist() if name.startswith("headwater_lab/")}
        (entry_points,) = [name for name in built.namelist() if name.endswith("/entry_points.txt")]
        said = ConfigParser()
        said.read_string(built.read(entry_points).decode())
        assert {group: dict(said[group]) for group in said.sections()} == {
            "headwater.verbs": {"lab": "headwater_lab.cli:lab"},
            "headwater.console": {"lab": "headwater_lab.console_stage:ShippedScenarios"},
        }
    own = [file for file in LAB.rglob("*") if file.suffix in {".py", ".txt", ".html", ".typed"}]
    assert files == {file.relative_to(LAB.parent).as_posix() for file in own}


def test_both_have_the_same_version() -> None:
    version = project(ROOT)["version"]
    assert project(LAB)["version"] == version
    assert f"headwater=={version}" in project(LAB)["dependencies"]


def test_constraints_are_exact_and_name_no_place() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if not re.fullmatch(r"#.*|[\w.-]+==[\w.+]+", line)]


@pytest.mark.parametrize("folder", [ROOT, LAB], ids=["headwater", "headwater-lab"])
def test_everything_that_is_needed_is_constrained(folder: Path) -> None:
    said = project(folder)
    extras = [text for texts in said.get("optional-dependencies", {}).values() for text in texts]
    versions = pinned()
    for requirement in (one for text in [*said["dependencies"], *extras] for one in needed(text)):
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} may come in any version: run `make constraints`"
        assert requirement.specifier.contains(version), f"{requirement} is not {version}"


def test_a_fresh_clone_installs_what_is_constrained() -> None:
    told = subprocess.run(
        ["make", "--dry-run", "--always-make", "venv"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    installs = [line for line in told.stdout.splitlines() if "pip install" in line]
    assert len(installs) == 2
    assert all("--constraint constraints.txt" in line for line in installs)
    assert "--no-build-isolation" in installs[-1], "what builds is taken from the environment, where it is constrained"
    assert '-e ".[dev]" -e src/headwater_lab' in installs[-1]
