"""The project folder: `headwater.toml` and `views/*.sql`, read into a `Project`. Nothing is connected to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from headwater.errors import InvalidProject, did_you_mean
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import (
    AllGroupTables,
    Continuous,
    Every,
    GroupTables,
    LineageKind,
    LineageWish,
    Maintenance,
    OnDemand,
    Refresh,
    TheseGroupTables,
)
from headwater.model.memory_budget import DEFAULT_BYTES, LEAST_BYTES, MOST_BYTES
from headwater.model.project import (
    DEFAULT_ALGORITHM,
    PROJECT_FILE,
    SOURCE_KEYS,
    VARIABLE,
    VIEWS_FOLDER,
    GlobalIds,
    GlobalTransactions,
    IdColumn,
    Option,
    PreparedId,
    Project,
    Reading,
    RetainFor,
    RetainTicks,
    Retention,
    SourceDeclaration,
    ViewFile,
    unknown_source,
)
from headwater.model.relation import DEFAULT_SCHEMA, RelationName, is_reserved_source
from headwater.model.settings import DEFAULTS, UNITS, Allowed, Settings, Unit, groups, settings_of
from headwater.project.toml_table import TomlTable, read_toml, unreadable
from headwater.project.warehouse_place import warehouse_place

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_MOST_SECONDS = 36_500 * 86_400.0
_LEAST_TIMEOUT_SECONDS = 0.001
"""Servers take none at all for one that never ends."""
_MOST_TIMEOUT_SECONDS = 24 * 86_400.0
"""Servers count milliseconds in 32 bits."""
_LEAST_SPARK_BYTES = 512 * 2**20
"""Spark itself does not start with less."""
_OTHER_WORDS = {"second": "s", "minute": "min", "hour": "h", "day": "days"}
"""Other ways to write a unit, each also with an "s" behind."""
_HINTS = {
    Unit.COUNT: "write a whole number, without quotes",
    Unit.DURATION: 'write "500 ms", "60 s", "10 min", "12 h" or "7 days"',
    Unit.SIZE: 'write "16 MiB", "512 MB" or "2 GiB"',
}


def load(path: Path) -> Project:
    """Return the project in a folder, or the one whose project file is named."""
    file = (path if path.name == PROJECT_FILE else path / PROJECT_FILE).absolute()
    document = read_toml(file)
    document.allow(
        "project",
        "warehouse",
        "sources",
        "maintenance",
        "defaults",
        "relations",
        "views",
        "global_transactions",
        "settings",
    )
    named, warehouse = document.table("project"), document.table("warehouse")
    maintenance, defaults = document.table("maintenance"), document.table("defaults")
    named.allow("name")
    warehouse.allow("path", "retention", "cache", "storage")
    maintenance.allow("batch_ticks", "batch_interval", "memory", "spark_memory")
    defaults.allow("reading", "strict")
    sources = tuple(_source(name, table) for name, table in document.table("sources").tables())
    address, storage = warehouse_place(warehouse, file.parent)
    return Project(
        name=_project_name(named),
        file=file,
        warehouse=address,
        storage=storage,
        retention=_retention(warehouse),
        batch_ticks=maintenance.number("batch_ticks", 10_000),
        batch_interval_seconds=_seconds(maintenance, "batch_interval", "0 s"),
        default_reading=_reading(defaults, "replica"),
        readings=_readings(document.table("relations"), tuple(source.name for source in sources)),
        sources=sources,
        views=_views(
            file.parent / VIEWS_FOLDER,
            document.table("views"),
            address,
            strict=defaults.truth("strict", default=False),
        ),
        global_transactions=_global_transactions(document, tuple(source.name for source in sources)),
        memory_bytes=_bytes(maintenance, "memory", LEAST_BYTES) or DEFAULT_BYTES,
        spark_memory_bytes=_bytes(maintenance, "spark_memory", _LEAST_SPARK_BYTES),
        settings=_settings(document.table("settings")),
    )


def parse_quantity(text: str, unit: Unit) -> float | None:
    """Return the seconds or bytes that a text such as `90 s`, `7 days` or `512 MB` means, or None.

    >>> [parse_quantity(text, Unit.DURATION) for text in ("90 s", "250ms", "7 days", "1 hour", "soon", "9 MB")]
    [90.0, 0.25, 604800.0, 3600.0, None, None]
    >>> [parse_quantity(text, Unit.SIZE) for text in ("512 MB", "1.5 KiB", "2 s")]
    [512000000.0, 1536.0, None]
    """
    if not (match := re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*", text)):
        return None
    said = match[2]
    units = UNITS[unit]
    for word in (
        said,
        _OTHER_WORDS.get(said, ""),
        _OTHER_WORDS.get(said.removesuffix("s"), ""),
        said.removesuffix("s"),
    ):
        if word in units:
            return float(match[1]) * units[word]
    return None


def name_obstacle(name: str) -> str:
    """Return why a text cannot be a project's name, or empty if it can.

    >>> name_obstacle("shop"), name_obstacle(" ")
    ('', 'it is empty')
    """
    if not name.strip():
        return "it is empty"
    return "" if name.isprintable() else "it holds a line break, a tab or another character that cannot be seen"


def _project_name(table: TomlTable) -> str:
    name = table.words("name")
    if obstacle := name_obstacle(name):
        raise table.refusal("name", obstacle, hint='for instance name = "shop"')
    return name


def _source(name: str, table: TomlTable) -> SourceDeclaration:
    _check_name(name, "source", table.where(), is_reserved=is_reserved_source(name))
    url_text = table.words("url")
    _check_secrets(name, url_text, table)
    return SourceDeclaration(
        name=name,
        url_text=url_text,
        statement_timeout_seconds=_seconds(
            table, "statement_timeout", "60 s", least=_LEAST_TIMEOUT_SECONDS, most=_MOST_TIMEOUT_SECONDS
        ),
        probe_connections=table.number("probe_connections", 4),
        declared_in=table.where(),
        options={key: _option(table, key) for key in table.values if key not in SOURCE_KEYS},
    )


def _option(table: TomlTable, key: str) -> Option:
    """Return what only a kind of source knows the meaning of. It refuses what it does not know."""
    value = table.values[key]
    if not isinstance(value, str | int | float):
        raise table.refusal(key, "a text, a number or a truth value belongs here")
    return value


def _check_secrets(name: str, url_text: str, table: TomlTable) -> None:
    """Refuse a password that is written into the project file, and a `$` that is no `${VARIABLE}`."""
    if "$" in VARIABLE.sub("", url_text):
        raise table.refusal("url", 'a "$" stands alone', hint='write variables as ${NAME}; write a literal "$" as %24')
    marked = VARIABLE.sub("VARIABLE", url_text)
    try:
        parts = urlsplit(marked)
        literal_password = re.fullmatch("(VARIABLE)*", parts.password or "") is None
        in_query = parse_qs(parts.query).get("password", ["VARIABLE"]) != ["VARIABLE"]
    except ValueError as error:
        raise table.refusal("url", str(error), hint="write postgresql://USER:${PASSWORD}@HOST:PORT/DATABASE") from None
    in_words = re.search(r"password\s*=\s*(?!VARIABLE)\S", marked) is not None
    if literal_password or in_query or in_words:
        raise InvalidProject(
            f'the url of source "{name}" in {table.where("url")} holds a password',
            code="HW-112",
            detail="project files are shared and versioned, passwords must not be",
            hint=f'put the url into an environment variable and write url = "${{{name.upper()}_URL}}"',
        )


def _readings(table: TomlTable, sources: tuple[str, ...]) -> Mapping[RelationName, Reading]:
    readings = {}
    for text, relation in table.tables():
        parts = text.split(".")
        if len(parts) not in (2, 3) or not all(parts):
            raise InvalidProject(
                f'"{text}" in [relations] of {table.where(text)} is not a relation',
                code="HW-113",
                detail="a relation is SOURCE.TABLE or SOURCE.SCHEMA.TABLE, in quotes because of its dots",
                hint='write for instance [relations."shop.sales"]',
            )
        relation.allow("reading")
        if parts[0] not in sources:
            raise unknown_source(parts[0], sources, relation.where())
        name = RelationName(source=parts[0], schema=parts[1] if len(parts) > 2 else DEFAULT_SCHEMA, name=parts[-1])  # noqa: PLR2004 — source, schema, table
        if name in readings:
            raise InvalidProject(
                f'[relations] of {table.where(text)} names "{name}" twice',
                code="HW-161",
                detail='"SOURCE.TABLE" and "SOURCE.public.TABLE" are the same relation',
                hint="remove one of the two",
            )
        readings[name] = _reading(relation, None)
    return readings


def _global_transactions(document: TomlTable, sources: tuple[str, ...]) -> GlobalTransactions | None:
    if "global_transactions" not in document.values:
        return None
    table = document.table("global_transactions")
    table.allow("sources", "by", "column")
    named = table.list_of_words("sources")
    for name in named:
        if name not in sources:
            raise unknown_source(name, sources, table.where("sources"))
    if len(set(named)) < max(2, len(named)):
        raise table.refusal(
            "sources",
            "a global transaction has parts in at least two sources, each named once",
            hint="name all of them",
        )
    return GlobalTransactions(sources=named, ids=_global_ids(table))


def _global_ids(table: TomlTable) -> GlobalIds:
    if _choice(table, "by", "column", ("column", "gid")) == "column":
        return IdColumn(name=table.words("column"))
    if "column" in table.values:
        raise table.refusal("column", "the ids are those of prepared transactions", hint='remove it, or by = "gid"')
    return PreparedId()


def _views(folder: Path, settings: TomlTable, warehouse: str, *, strict: bool) -> tuple[ViewFile, ...]:
    if not folder.is_dir():
        raise InvalidProject(
            f'the project has no folder "{folder.name}"',
            code="HW-115",
            detail="every view is a file in it",
            hint=f"make {VIEWS_FOLDER}/NAME.sql with one SELECT in it",
        )
    try:
        next(folder.iterdir(), None)
    except OSError as error:  # `glob` would find nothing, and say nothing
        raise unreadable(folder, error) from None
    files = _view_files(folder)
    for name, table in settings.tables():
        table.allow(
            *("guarantee", "algorithm", "strict", "keep", "maintenance", "refresh", "group_tables"),
            *("compare_at_birth", "publish"),
        )
        if name not in files:
            raise InvalidProject(
                f"{table.title} in {table.where()} has no view",
                code="HW-127",
                detail=f"there is no {VIEWS_FOLDER}/{name}.sql",
                hint=did_you_mean(name, tuple(files), otherwise="write that file, or remove the table"),
            )
    return tuple(
        _view(name, file, folder, settings.table(name), warehouse, strict=strict) for name, file in files.items()
    )


def _view_files(folder: Path) -> dict[str, Path]:
    """Return the files of views by their names, in folders too. What editors keep beside them (`.#x.sql`) is none."""
    files: dict[str, Path] = {}
    found = (file for file in folder.rglob("*") if file.suffix.lower() == ".sql")
    for file in sorted(found, key=lambda file: (file.stem, file)):
        inside = file.relative_to(folder)
        if any(part.startswith((".", "#", "~")) for part in inside.parts):
            continue
        if file.stem in files:
            raise InvalidProject(
                f'two files are the view "{file.stem}"',
                code="HW-170",
                detail=" and ".join(_path_text(one, folder) for one in (files[file.stem], file)),
                hint="a view is named like its file, in any folder: rename one of them",
            )
        files[file.stem] = file
    return files


def _path_text(file: Path, folder: Path) -> str:
    return f"{VIEWS_FOLDER}/{file.relative_to(folder).as_posix()}"


def _view(name: str, file: Path, folder: Path, settings: TomlTable, warehouse: str, *, strict: bool) -> ViewFile:
    path_text = _path_text(file, folder)
    _check_name(name, "view", path_text)
    try:
        sql = file.read_text(encoding="utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        raise InvalidProject(f"{path_text} is not UTF-8 text", code="HW-107", detail=str(error)) from None
    except OSError as error:
        raise unreadable(file, error) from None
    if not sql.strip():
        raise InvalidProject(f"{path_text} is empty", code="HW-116", hint="write one SELECT into it, or remove it")
    choices = tuple(level.value for level in (Guarantee.COMPLETE, Guarantee.STRONG))
    is_said = "guarantee" in settings.values
    return ViewFile(
        name=name,
        sql=sql,
        file=file,
        guarantee=Guarantee(_choice(settings, "guarantee", None, choices)) if is_said else None,
        algorithm=settings.words("algorithm", DEFAULT_ALGORITHM),
        strict=settings.truth("strict", default=strict),
        keep=_keep(settings),
        maintenance=_maintenance(settings),
        refresh=_refresh(settings),
        group_tables=_group_tables(settings),
        is_compared_at_birth=settings.truth("compare_at_birth", default=True),
        published=_published(settings, folder.parent, f"{warehouse}/published/{name}"),
        path_text=path_text,
    )


def _published(table: TomlTable, folder: Path, usual: str) -> str | None:
    """Return where a view is published: at its usual place, or where the project says."""
    value = table.values.get("publish", False)
    if isinstance(value, bool):
        return usual if value else None
    if not isinstance(value, str) or not value.strip():
        raise table.refusal("publish", "true, or the folder of a Delta table as a text, belongs here")
    return value if "://" in value else str(Path(folder, Path(value).expanduser()))


def _keep(table: TomlTable) -> tuple[LineageWish, ...]:
    """Return the wishes of a list: "lineage:SEGMENT" or "split:SEGMENT"."""
    if "keep" not in table.values:
        return ()
    wishes: dict[str, LineageWish] = {}
    for value in table.list_of_words("keep"):
        kind, _, of = value.partition(":")
        if kind not in {one.value for one in LineageKind} or not of:
            raise table.refusal(
                "keep",
                f'"{value}" does not say what to keep',
                hint='write "lineage:SEGMENT" or "split:SEGMENT"; `headwater explain VIEW --full` shows them',
            )
        wishes[value] = LineageWish(kind=LineageKind(kind), of=of)
    return tuple(wishes.values())


def _group_tables(table: TomlTable) -> GroupTables:
    """Return the wish of "all", "none", or a list of segments."""
    if isinstance(table.values.get("group_tables"), list):
        return TheseGroupTables(table.list_of_words("group_tables"))
    value = _choice(table, "group_tables", "all", ("all", "none"))
    return AllGroupTables() if value == "all" else TheseGroupTables(())


def _maintenance(table: TomlTable) -> Maintenance | None:
    if "maintenance" not in table.values:
        return None
    return Maintenance(_choice(table, "maintenance", None, tuple(kind.value for kind in Maintenance)))


def _refresh(table: TomlTable) -> Refresh:
    text = table.words("refresh", "continuous").strip()
    match text.removeprefix("every ").strip(), text:
        case _, "continuous":
            return Continuous()
        case _, "on demand":
            return OnDemand()
        case length, _ if length != text and (seconds := parse_quantity(length, Unit.DURATION)):
            return Every(seconds=seconds, text=length)
        case _:
            raise table.refusal(
                "refresh",
                f'"{text}" does not say when',
                hint='write "continuous", "on demand", or "every" and a length of time: "every 10 min"',
            )


def _reading(table: TomlTable, default: str | None) -> Reading:
    return Reading(_choice(table, "reading", default, tuple(reading.value for reading in Reading)))


def _choice(table: TomlTable, key: str, default: str | None, choices: tuple[str, ...]) -> str:
    value = table.words(key, default)
    if value not in choices:
        either = " or ".join(f'"{choice}"' for choice in choices)
        raise table.refusal(
            key, f'it is {either}, not "{value}"', hint=did_you_mean(value, choices, otherwise=f"choose {either}")
        )
    return value


def _retention(table: TomlTable) -> Retention:
    text = table.words("retention", "7 days")
    if ticks := re.fullmatch(r"\s*([0-9_]*[0-9][0-9_]*)\s*ticks?\s*", text):
        count = int(ticks[1].replace("_", ""))
        if count == 0:
            raise table.refusal("retention", "no history at all cannot be kept", hint='the least is "1 tick"')
        return RetainTicks(count=count)
    return RetainFor(seconds=_seconds(table, "retention", text, least=1.0))


def _seconds(table: TomlTable, key: str, default: str, *, least: float = 0.0, most: float = _MOST_SECONDS) -> float:
    text = table.words(key, default)
    allowed = Allowed(unit=Unit.DURATION, least=least, most=most)
    return _quantity(table, key, text, allowed, also=', or "1000000 ticks"' if key == "retention" else "")


def _bytes(table: TomlTable, key: str, least: int) -> int | None:
    """Return a number of bytes, None if nothing is said."""
    if key not in table.values:
        return None
    return int(_quantity(table, key, table.words(key), Allowed(unit=Unit.SIZE, least=least, most=MOST_BYTES)))


def _quantity(table: TomlTable, key: str, text: str, allowed: Allowed, *, also: str = "") -> float:
    value = parse_quantity(text, allowed.unit)
    if value is None:
        raise table.refusal(key, f'"{text}" is not {allowed.unit.value}', hint=_HINTS[allowed.unit] + also)
    return _bounded(table, key, text, value, allowed)


def _bounded(table: TomlTable, key: str, said: str, value: float, allowed: Allowed) -> float:
    if not allowed.least <= value <= allowed.most:
        small, large = ("short", "long") if allowed.unit is Unit.DURATION else ("small", "large")
        raise table.refusal(
            key,
            f'"{said}" is too {small if value < allowed.least else large}',
            hint=f"it is from {allowed.text(allowed.least)} to {allowed.text(allowed.most)}",
        )
    return value


def _settings(table: TomlTable) -> Settings:
    known = groups()
    table.allow(*known)
    return replace(DEFAULTS, **{name: _group(group, known[name]) for name, group in table.tables()})


def _group(table: TomlTable, defaults: Any) -> Any:
    """Return a group of settings as a table of the file changes it."""
    known = settings_of(defaults)
    table.allow(*known)
    said = {known[key].field: _setting(table, key, known[key].allowed) for key in table.values}
    return replace(defaults, **said)


def _setting(table: TomlTable, key: str, allowed: Allowed) -> float:
    if allowed.unit is Unit.COUNT:
        number = table.number(key, 1)
        return int(_bounded(table, key, str(number), number, allowed))
    value = _quantity(table, key, table.words(key), allowed)
    return int(value) if allowed.unit is Unit.SIZE else value


def _check_name(name: str, kind: str, where: str, *, is_reserved: bool = False) -> None:
    if is_reserved or not _NAME.fullmatch(name):
        plain = "a name has lower-case letters, digits and underscores, and begins with a letter"
        raise InvalidProject(
            f'"{name}" cannot be the name of a {kind} ({where})',
            code="HW-117",
            detail="Headwater itself uses this name, for the steps of views" if is_reserved else plain,
            hint=f'for instance "{_near_name(name)}{f"_{kind}" if is_reserved else ""}"',
        )


def _near_name(name: str) -> str:
    return re.sub(r"^[^a-z]+", "", re.sub(r"[^a-z0-9]+", "_", name.lower())).strip("_") or "my_name"
