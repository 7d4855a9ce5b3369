"""Which views and replicas a warehouse has, as the commit that changed it wrote it down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec

from headwater.deltas.extent import EVERYTHING, Content, Extent
from headwater.deltas.selection import Selection
from headwater.model.position import Tick
from headwater.model.relation import RelationName


def extent_json(extent: Extent) -> list[list[list[Any]]]:
    """Return an extent as JSON values.

    >>> dear = Extent.of([Selection(column="price", compare="greater", values=(Decimal("9.50"),))])
    >>> extent_json(dear)
    [[['price', 'greater', [{'decimal': '9.50'}]]]]
    >>> parse_extent(extent_json(dear)) == dear
    True
    """
    return [[[one.column, one.compare, [_written(v) for v in one.values]] for one in many] for many in extent.any_of]


def parse_extent(value: list[list[list[Any]]]) -> Extent:
    """Read a written extent."""
    lists = [
        [Selection(column=column, compare=compare, values=tuple(map(_read, values))) for column, compare, values in one]
        for one in value
    ]
    return Extent.of(*lists)


def _written(value: Any) -> Any:
    match value:
        case Decimal():
            return {"decimal": str(value)}
        case date():
            return {"date": value.isoformat()}
        case _:
            assert isinstance(value, int | str), f"not a value of a selection: {value!r}"
            return value


def _read(value: Any) -> Any:
    match value:
        case {"decimal": text}:
            return Decimal(text)
        case {"date": text}:
            return date.fromisoformat(text)
        case _:
            return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewEntry:
    """A view. `schema` has (column, Arrow type) pairs.

    `sql` is its text, and `lower` has (name, text) pairs of the views that it reads, itself or through others, each
    after those that it reads.
    `segments` names the auxiliary tables that it is maintained by, perhaps with other views, and `shape` says how it
    is computed from them: a view whose shape has changed is built again, though its SQL has not.
    `gaps` are sources of whose logs a part is missing since: its states stay readable until it is built again.
    """

    name: str
    generation: int
    sql: str
    birth: Tick
    guarantee: str
    schema: tuple[tuple[str, str], ...]
    segments: tuple[str, ...] = ()
    shape: str = ""
    lower: tuple[tuple[str, str], ...] = ()
    gaps: tuple[str, ...] = ()
    completed: str = ""
    """The text that is run instead of `sql`, if that leaves an order open: all columns of a row complete it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaEntry:
    """A relation's copy: the columns it holds, the key it is sorted by, and the rows that it holds."""

    relation: RelationName
    generation: int
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    rows: Extent = EVERYTHING

    @property
    def content(self) -> Content:
        """What it holds of the relation."""
        return Content(columns=self.columns, rows=self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Everything a warehouse keeps."""

    views: Mapping[str, ViewEntry] = field(default_factory=dict)
    replicas: Mapping[RelationName, ReplicaEntry] = field(default_factory=dict)


def catalog_text(catalog: Catalog) -> str:
    """Return a catalog as the JSON text that is written."""
    replicas = [{**msgspec.to_builtins(one), "rows": extent_json(one.rows)} for one in catalog.replicas.values()]
    return msgspec.json.encode({"views": list(catalog.views.values()), "replicas": replicas}, order="sorted").decode()


def parse_catalog(text: str) -> Catalog:
    """Read a written catalog.

    >>> from headwater.deltas.selection import Selection
    >>> sales = RelationName(source="shop", name="sales")
    >>> catalog = Catalog(
    ...     views={"v": ViewEntry(name="v", generation=1, sql="SELECT 1 AS a", birth=Tick(0), guarantee="complete",
    ...                           schema=(("a", "int"),), segments=("s1/2",), shape="s1: ...",
    ...                           lower=(("u", "SELECT 1 AS b"),), gaps=("shop",), completed="SELECT 1 AS a LIMIT 1")},
    ...     replicas={sales: ReplicaEntry(relation=sales, generation=2, columns=("id",), key=("id",),
    ...                                   rows=Extent.of([Selection(column="id", compare="less", values=(9,))]))})
    >>> parse_catalog(catalog_text(catalog)) == catalog
    True
    """
    value = msgspec.json.decode(text, type=_Written)
    replicas = {}
    for written in value.replicas:
        rows = written.pop("rows", None)
        entry = msgspec.convert(written, ReplicaEntry)
        replicas[entry.relation] = entry if rows is None else replace(entry, rows=parse_extent(rows))
    return Catalog(views={view.name: view for view in value.views}, replicas=replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    views: tuple[ViewEntry, ...]
    replicas: tuple[dict[str, Any], ...]
