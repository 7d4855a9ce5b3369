"""What a project says: its sources, how relations are read, its views and how each is kept. Frozen, without secrets.

A source's URL is kept as it is written, with `${VARIABLE}` in it, and filled in only when a source is connected to.

How a relation is read is chosen once per relation, for all views: `[relations."shop.sales"] reading = "probe"`, or else
`[defaults] reading`. A view may choose for itself (`maintenance =`), where this does not contradict what is said of a
relation by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from headwater.errors import InvalidProject, did_you_mean
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import AllGroupTables, GroupTables, LineageWish, Maintenance, Refresh
from headwater.model.memory_budget import DEFAULT_BYTES
from headwater.model.relation import RelationName
from headwater.model.settings import DEFAULTS, Settings

PROJECT_FILE = "headwater.toml"
VIEWS_FOLDER = "views"
DEFAULT_ALGORITHM = "batched-sweep"
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*|file:[^${}]+)\}")
"""What is filled in when it is needed: `${NAME}` from the environment, `${file:/PATH}` from a file."""
IN_FILE = "file:"


class Reading(Enum):
    """How the warehouse knows a relation: from a copy it keeps, or by asking the source."""

    REPLICA = "replica"
    PROBE = "probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainTicks:
    """History reaches back this number of ticks."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainFor:
    """History reaches back this number of seconds."""

    seconds: float


Retention: TypeAlias = RetainTicks | RetainFor


Option: TypeAlias = str | int | float | bool
"""What a project file says for one kind of source."""

SOURCE_KEYS = ("url", "statement_timeout", "probe_connections")
"""What it can say of every source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDeclaration:
    """A source as the project file declares it. `url_text` still has its `${VARIABLE}`s."""

    name: str
    url_text: str
    statement_timeout_seconds: float
    probe_connections: int
    declared_in: str
    options: Mapping[str, Option] = field(default_factory=dict)
    """What else it says; the kind of source knows what that means."""

    def url(self, environment: Mapping[str, str]) -> str:
        """Return the URL with its variables filled in. An unset one is refused by its name.

        >>> declaration = SourceDeclaration(name="shop", url_text="postgresql://me:${PW}@db/shop",
        ...     statement_timeout_seconds=60, probe_connections=4, declared_in="headwater.toml:5")
        >>> declaration.url({"PW": "secret"})
        'postgresql://me:secret@db/shop'
        """
        return filled(self.url_text, environment, f'the url of source "{self.name}" needs it ({self.declared_in})')


def filled(text: str, environment: Mapping[str, str], need: str) -> str:
    """Return a text with its `${VARIABLE}`s and `${file:/PATH}`s filled in. What is not there is refused by its name.

    Of a file, all is taken but line breaks at its end. It is read every time: a password that was changed is seen.
    """
    said = VARIABLE.findall(text)
    unset = [name for name in said if not name.startswith(IN_FILE) and not environment.get(name)]
    if unset:
        raise InvalidProject(
            f'environment variable "{unset[0]}" is not set', code="HW-110", detail=need, hint=f"export {unset[0]}=…"
        )
    files = {name: _secret(name.removeprefix(IN_FILE), need) for name in said if name.startswith(IN_FILE)}
    return VARIABLE.sub(lambda match: files.get(match[1]) or environment[match[1]], text)


def _secret(path: str, need: str) -> str:
    """Return what a file holds. What it holds is in no error."""
    why = "a relative path would depend on where the command is run"
    if Path(path).is_absolute():
        try:
            if content := Path(path).read_text(encoding="utf-8").rstrip("\r\n"):
                return content
            why = "it is empty"
        except UnicodeDecodeError:
            why = "it is not UTF-8 text"
        except OSError as error:
            why = error.strerror or type(error).__name__
    raise InvalidProject(
        f'no secret can be read from the file "{path}"',
        code="HW-174",
        detail=f"{why}; {need}",
        hint="write ${file:/PATH} with the whole path of a file that this account may read",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageDeclaration:
    """How the object store that has the warehouse is reached, and which folder of this machine has copies of its rows.

    Options still have their `${VARIABLE}`s. None: a folder that belongs to the warehouse.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    cache: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewFile:
    """A view as its file and the project file declare it: not parsed yet."""

    name: str
    sql: str
    file: Path
    guarantee: Guarantee | None
    """None: whatever the algorithm guarantees."""
    algorithm: str
    """As it is written; the algorithms' names are checked later."""
    strict: bool = False
    """Whether a view is refused that would have to be recomputed from all its rows."""
    keep: tuple[LineageWish, ...] = ()
    """The lineage that is kept beside the view; the segments' names are checked when it is compiled."""
    maintenance: Maintenance | None
    """None: incremental, each relation read as `[relations]` and `[defaults]` say."""
    refresh: Refresh
    group_tables: GroupTables = field(default_factory=AllGroupTables)
    """Which segments have group tables; their names are checked when the view is compiled."""
    is_compared_at_birth: bool = True
    """Whether it is computed twice when it is born, by its SQL and by its steps, and refused if they differ."""
    published: str | None = None
    """Where other programs read it, in a plain Delta table: an address. None: nowhere."""
    path_text: str = ""
    """Its file as errors name it: views/NAME.sql, perhaps in a folder there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdColumn:
    """The id of a global transaction is in a column of the rows of its parts."""

    name: str


@dataclass(frozen=True, slots=True)
class PreparedId:
    """The id of a global transaction is the one that its parts were prepared under: PREPARE TRANSACTION 'id'."""


GlobalIds: TypeAlias = IdColumn | PreparedId


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalTransactions:
    """Each global transaction has a part in each of these sources, which has its id."""

    sources: tuple[str, ...]
    ids: GlobalIds


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Everything a project folder says."""

    name: str
    file: Path
    warehouse: str
    """Its address: an absolute path, or the URL of an object store."""
    retention: Retention
    batch_ticks: int
    batch_interval_seconds: float
    default_reading: Reading
    readings: Mapping[RelationName, Reading]
    sources: tuple[SourceDeclaration, ...]
    views: tuple[ViewFile, ...]
    global_transactions: GlobalTransactions | None = None
    memory_bytes: int = DEFAULT_BYTES
    """What the process that maintains it may hold."""
    spark_memory_bytes: int | None = None
    """What Spark's virtual machine may use where we start it. None: nothing is said."""
    settings: Settings = DEFAULTS
    storage: StorageDeclaration = field(default_factory=StorageDeclaration)

    @property
    def folder(self) -> Path:
        """The project's folder."""
        return self.file.parent

    @property
    def secret_variables(self) -> frozenset[str]:
        """The environment's variables that the sources' urls are made of."""
        found = (name for source in self.sources for name in VARIABLE.findall(source.url_text))
        return frozenset(name for name in found if not name.startswith(IN_FILE))

    def reading(self, relation: RelationName) -> Reading:
        """Return how a relation is read."""
        return self.readings.get(relation, self.default_reading)

    def source(self, name: str) -> SourceDeclaration:
        """Return a source by its name. One that is not declared is refused."""
        names = tuple(source.name for source in self.sources)
        if name not in names:
            raise unknown_source(name, names, PROJECT_FILE)
        return self.sources[names.index(name)]

    def view(self, name: str) -> ViewFile:
        """Return a view by its name. One that has no file is refused."""
        names = tuple(view.name for view in self.views)
        if name not in names:
            raise InvalidProject(
                f'there is no view "{name}"',
                code="HW-114",
                detail=f"the project has {', '.join(names) or 'no views'}",
                hint=did_you_mean(name, names, otherwise=f"write {VIEWS_FOLDER}/{name}.sql"),
            )
        return self.views[names.index(name)]


def unknown_source(name: str, names: tuple[str, ...], where: str) -> InvalidProject:
    """Return the refusal of a source that is not declared."""
    return InvalidProject(
        f'there is no source "{name}" ({where})',
        code="HW-118",
        detail=f"the project has {', '.join(names) or 'no sources'}",
        hint=did_you_mean(name, names, otherwise=f"declare [sources.{name}]"),
    )
