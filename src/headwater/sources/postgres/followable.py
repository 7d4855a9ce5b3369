"""Which relations cannot be followed, why, and what to do instead."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import SourceRefused
from headwater.model.relation import RelationName

_READ_ITS_TABLES = "let the view read the tables that it selects from"
_KINDS = {
    "v": ("it is a view: only its tables have changes in the log", _READ_ITS_TABLES),
    "m": ("it is a materialized view: the log does not tell of its rows", _READ_ITS_TABLES),
    "f": (
        "it is a foreign table: its rows change in another database",
        "add that database to headwater.toml as a source, and read the table there",
    ),
    "S": ("it is a sequence, not a table", "name a table"),
    "c": ("it is a type, not a table", "name a table"),
}
_NO_TABLE = ("it is not a table", "name a table")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """What decides whether a relation can be followed, as the catalog has it.

    `kind` and `persistence` are PostgreSQL's letters. `of_leaf` is what stands in the way in one of its partitions.
    """

    kind: str
    persistence: str
    has_key: bool
    is_secured: bool
    is_inherited: bool
    virtual: tuple[str, ...]
    """Its virtual generated columns."""
    of_leaf: str


def refusal(name: RelationName, table: str, found: CatalogEntry) -> SourceRefused | None:
    """Return why a relation cannot be followed, if it cannot. `table` is its name in SQL.

    >>> view = CatalogEntry(kind="v", persistence="p", has_key=False, is_secured=False, is_inherited=False, virtual=(),
    ...              of_leaf="")
    >>> print(refusal(RelationName(source="shop", name="seen"), "public.seen", view))
    relation "shop.seen" cannot be followed [HW-332]
      why: it is a view: only its tables have changes in the log
      do:  let the view read the tables that it selects from
    """
    if found.kind == "p" and not found.has_key:
        return SourceRefused(
            f'relation "{name}" is partitioned and has no primary key',
            code="HW-343",
            detail="a partition that is made later would be published without an identity of its rows, and the "
            "application's own UPDATE and DELETE would fail in it",
            hint=f"let the owner run: ALTER TABLE {table} ADD PRIMARY KEY (…);\n"
            "or let the view read the partitions by their names, with UNION ALL",
        )
    why, instead = _obstacle(found, table)
    if not why:
        return None
    return SourceRefused(f'relation "{name}" cannot be followed', code="HW-332", detail=why, hint=instead)


def later_partitions(name: RelationName) -> str:
    """Return what to know of a partitioned relation before it is followed."""
    return (
        f"{name} is partitioned. A partition that is made later does not inherit REPLICA IDENTITY FULL: run "
        "ALTER TABLE … REPLICA IDENTITY FULL for it at once, or its first UPDATE or DELETE stops the source. So does a "
        "partition that is dropped, detached, truncated alone, or attached with rows"
    )


def _obstacle(found: CatalogEntry, table: str) -> tuple[str, str]:
    """Return why a relation cannot be followed, and what to do instead. Two empty texts if it can."""
    obstacles = (
        (found.kind not in ("r", "p"), *_KINDS.get(found.kind, _NO_TABLE)),
        (found.persistence == "t", "it is a temporary table: its changes are not in the log", "name a lasting table"),
        (
            found.persistence == "u",
            "it is unlogged: its changes are not in the log",
            f"let the owner run: ALTER TABLE {table} SET LOGGED;",
        ),
        (bool(found.of_leaf), found.of_leaf, "let the view read its other partitions by their names, with UNION ALL"),
        (
            found.is_inherited,
            "other tables inherit from it: their rows would be read with it but logged under their own names",
            "turn it into a partitioned table, or move the rows into tables that do not inherit",
        ),
        (
            found.is_secured,
            "row-level security hides rows of it from this account",
            "let an administrator give the account the attribute BYPASSRLS",
        ),
        (
            bool(found.virtual),
            f"its column {', '.join(found.virtual)} is VIRTUAL: publishing it would make the owner's UPDATE fail",
            "let the owner make the column STORED, or drop it and let the view compute it",
        ),
    )
    return next(((why, instead) for is_so, why, instead in obstacles if is_so), ("", ""))
