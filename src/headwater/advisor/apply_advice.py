"""Write advice into the project file: `keep` and `group_tables` of the views, and `reading` of their relations.

A replica serves every view: a relation is read as a replica if one of the views is advised so, and by probes if all
that read it are advised without. Where another view reads it, on which nothing was advised, or one that says itself
from what it is kept (`maintenance`), it stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from headwater.advisor.advice import Advice
from headwater.advisor.candidates import AuxiliaryKind
from headwater.model.keeping import LineageKind, LineageWish
from headwater.model.project import PROJECT_FILE, Project, Reading
from headwater.model.relation import RelationName
from headwater.project.resolve import ResolvedProject
from headwater.views.steps.group_tables import choosable_group_tables, group_tables
from headwater.views.steps.keep_lineage import without_lineage

Value = str | Sequence[str]
_LINEAGE = {AuxiliaryKind.LINEAGE_VIEW: LineageKind.VIEW, AuxiliaryKind.SPLIT_LINEAGE: LineageKind.SPLIT}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSetting:
    """A value of the project file that is to change. None removes the key."""

    path: tuple[str, ...]
    key: str
    value: Value | None

    def __str__(self) -> str:
        """Return it for a person to read."""
        said = "removed" if self.value is None else f"= {value_text(self.value)}"
        return f"{header_text(self.path)} {self.key} {said}"


def apply_advice(folder: Path, resolved: ResolvedProject, given: tuple[Advice, ...]) -> tuple[str, ...]:
    """Write what was advised, and say what that changed. The file's comments and order stay."""
    settings = wanted_settings(resolved, given)
    file = folder / PROJECT_FILE
    text = file.read_text(encoding="utf-8")
    changed = text
    for setting in settings:
        changed = set_value(changed, setting.path, setting.key, setting.value)
    if changed != text:
        file.write_text(changed, encoding="utf-8")
    return tuple(str(setting) for setting in settings)


def wanted_settings(resolved: ResolvedProject, given: tuple[Advice, ...]) -> list[ProjectSetting]:
    """Return the values that differ from what the project says now."""
    project = resolved.project
    return [*_keeps(project, given), *_group_tables(resolved, given), *_readings(resolved, given)]


def _keeps(project: Project, given: tuple[Advice, ...]) -> list[ProjectSetting]:
    found = []
    for advice in given:
        wishes = [
            LineageWish(kind=_LINEAGE[one.kind], of=one.of) for one in advice.recommended.tables if one.kind in _LINEAGE
        ]
        if set(wishes) != set(project.view(advice.view).keep):
            value = [str(wish) for wish in wishes] or None
            found.append(ProjectSetting(path=("views", advice.view), key="keep", value=value))
    return found


def _group_tables(resolved: ResolvedProject, given: tuple[Advice, ...]) -> list[ProjectSetting]:
    found = []
    for advice in given:
        view = without_lineage(resolved.views[advice.view].view)
        choosable = {name.name for name in choosable_group_tables(view)}
        now = {segment.name.name for segment in view.segments if segment.is_kept} & choosable
        wanted = {one.of for one in advice.recommended.tables if one.kind is AuxiliaryKind.GROUP_TABLE}
        if wanted != now:
            given_up = choosable - wanted
            kept = [name.name for name in group_tables(view) if name.name not in given_up]
            value = ("none" if not wanted else kept) if given_up else None
            found.append(ProjectSetting(path=("views", advice.view), key="group_tables", value=value))
    return found


def _readings(resolved: ResolvedProject, given: tuple[Advice, ...]) -> list[ProjectSetting]:
    found = []
    for relation, wanted in _wanted_readings(resolved, given).items():
        if resolved.project.reading(relation) is not wanted:
            found.append(ProjectSetting(path=("relations", str(relation)), key="reading", value=wanted.value))
    return found


def _wanted_readings(resolved: ResolvedProject, given: tuple[Advice, ...]) -> Mapping[RelationName, Reading]:
    advised = {advice.view: advice for advice in given}
    copied = {one.of for advice in given for one in advice.recommended.tables if one.kind is AuxiliaryKind.REPLICA}
    wanted: dict[RelationName, Reading] = {}
    for name in resolved.relations:
        readers = {view: one for view, one in resolved.views.items() if name in one.view.relations}
        if any(one.maintenance is not None for one in readers.values()):
            continue
        if str(name) in copied:
            wanted[name] = Reading.REPLICA
        elif readers and all(view in advised for view in readers):
            wanted[name] = Reading.PROBE
    return wanted


def set_value(text: str, path: tuple[str, ...], key: str, value: Value | None) -> str:
    r"""Return the text with a key of a table set to a value, or without it. A table that is not there is added.

    >>> print(set_value('[views.a]  # mine\nstrict = true\n', ("views", "a"), "keep", ["x"]))
    [views.a]  # mine
    strict = true
    keep = ["x"]
    <BLANKLINE>
    """
    document = tomlkit.parse(text)
    table: MutableMapping[str, Any] = document
    for depth, part in enumerate(path, start=1):
        if part not in table:
            if value is None:
                return text
            table[part] = tomlkit.table(is_super_table=depth < len(path))
        table = table[part]
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value if isinstance(value, str) else list(value)
    return tomlkit.dumps(document)


def header_text(path: tuple[str, ...]) -> str:
    """Return the header of a table.

    >>> header_text(("relations", "shop.sales"))
    '[relations."shop.sales"]'
    """
    return f"[{tomlkit.key(path).as_string()}]"


def value_text(value: Value) -> str:
    """Return a value as a file has it.

    >>> value_text(["lineage:join_1"])
    '["lineage:join_1"]'
    """
    return tomlkit.item(value if isinstance(value, str) else list(value)).as_string()
