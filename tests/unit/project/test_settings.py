"""Settings are read from the project file, by their units and within their bounds, and code reads every one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import headwater
from headwater.errors import InvalidProject
from headwater.model.settings import DEFAULTS, Settings, groups, settings_of
from headwater.project.file import load

ALL = [(group, key) for group, defaults in groups().items() for key in settings_of(defaults)]


def settings_from(folder: Path, text: str) -> Settings:
    (folder / "headwater.toml").write_text(f'[project]\nname = "shop"\n{text}')
    (folder / "views").mkdir(exist_ok=True)
    return load(folder).settings


def test_what_is_not_said_is_as_by_default(tmp_path: Path) -> None:
    assert settings_from(tmp_path, "") == DEFAULTS
    assert settings_from(tmp_path, "[settings]\n[settings.batch]\n") == DEFAULTS


def test_what_is_said_is_read_by_its_unit(tmp_path: Path) -> None:
    said = '[settings.batch]\nlookup_rows = 5\n[settings.capture]\nnote_after = "1.5 GiB"\nappend_pause = "0 s"'
    batch = replace(DEFAULTS.batch, lookup_rows=5)
    capture = replace(DEFAULTS.capture, note_after_bytes=3 * 2**29, append_pause_seconds=0.0)
    assert settings_from(tmp_path, said) == replace(DEFAULTS, batch=batch, capture=capture)


@pytest.mark.parametrize(("group", "key"), ALL)
def test_every_setting_can_be_written_as_its_default(tmp_path: Path, group: str, key: str) -> None:
    setting = settings_of(groups()[group])[key]
    assert setting.allowed.least <= setting.default <= setting.allowed.most
    for value in (setting.default, setting.allowed.least, setting.allowed.most):
        read = settings_from(tmp_path, f"[settings.{group}]\n{key} = {setting.allowed.text(value)}")
        assert getattr(getattr(read, group), setting.field) == value


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("[settings.bacth]\nlookup_rows = 5", "HW-101", 'did you mean "batch"?'),
        ("[settings]\nlookup_rows = 5", "HW-101", "[settings] knows capture, batch, upkeep"),
        ("[settings.batch]\nlookup_row = 5", "HW-101", 'did you mean "lookup_rows"?'),
        ("[settings.batch]\nlookup_rows = 0", "HW-103", "at least 1"),
        ('[settings.batch]\nlookup_rows = "5"', "HW-103", "a whole number"),
        ("[settings.batch]\nlookup_rows = 1_000_000_000_001", "HW-103", "from 1 to 1000000000000"),
        ("[settings.capture]\nnote_after = 512", "HW-103", "headwater.toml:4"),
        ('[settings.capture]\nnote_after = "512"', "HW-103", "not a number of bytes"),
        ('[settings.capture]\nnote_after = "5 s"', "HW-103", '"512 MB"'),
        ('[settings.capture]\nnote_after = "2000 TiB"', "HW-103", 'from "0 B" to "1024 TiB"'),
        ("[settings]\nbatch = 5", "HW-103", "a table [settings.batch] belongs here"),
        ('[settings.upkeep]\ninterval = "0 s"', "HW-103", 'from "1 ms" to "1 day"'),
        ('[settings.upkeep]\ninterval = "5 MB"', "HW-103", "not a length of time"),
        ("[settings.upkeep]\ncheckpoint_time_percent = 101", "HW-103", "from 1 to 100"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, text: str, code: str, says: str) -> None:
    with pytest.raises(InvalidProject) as refused:
        settings_from(tmp_path, text)
    assert refused.value.code == code
    assert says in str(refused.value)


def test_code_reads_every_setting() -> None:
    package = Path(headwater.__file__).parent
    texts = [file.read_text() for file in package.rglob("*.py") if file != package / "model" / "settings.py"]
    names = {setting.field for group in groups().values() for setting in settings_of(group).values()}
    assert not {name for name in names if not any(f".{name}" in text for text in texts)}
