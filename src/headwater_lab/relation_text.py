"""A relation as a scenario writes it: its columns, its key, and what it refers to, which its source enforces.

shop.orders (id int, customer int) key (id) foreign key (customer) references shop.customers (id)
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from headwater.model.relation import Column, ForeignKey, Relation, RelationName
from headwater_lab.rows_text import NATIVE_TYPES

NAME = r"[A-Za-z_][\w]*"
RELATION_NAME = rf"({NAME})\.({NAME})"
_LIST = r"\(([^()]*)\)"
_REFERENCE = rf"\s+foreign\s+key\s*{_LIST}\s*references\s+{RELATION_NAME}\s*{_LIST}"
RELATION = rf"{RELATION_NAME}\s*{_LIST}(?:\s+key\s*{_LIST})?((?:{_REFERENCE})*)"
"""What a relation looks like; its groups are source, name, columns, key, and all references together."""


def parse_relation(match: re.Match[str], relations: Mapping[RelationName, Relation]) -> Relation:
    """Return the relation that was written. Raise ValueError, with the problem and what to do, if there is none such.

    A relation refers to those that are known already. Columns of a key or a reference never hold NULL.
    """
    name = RelationName(source=match[1], name=match[2])
    columns = tuple(_parse_column(said.strip()) for said in match[3].split(","))
    key = _names(match[4] or "")
    if unknown := sorted(set(key) - {column.name for column in columns}):
        raise ValueError(f"the key has no column {unknown[0]}", "name columns of the relation in its key")
    if name in relations:
        raise ValueError(f"{name} is described twice", "describe every relation once")
    references = tuple(
        ForeignKey(
            columns=_names(own), parent=RelationName(source=source, name=parent), parent_columns=_names(referred)
        )
        for own, source, parent, referred in re.findall(_REFERENCE, match[5])
    )
    for reference in references:
        _refuse_unfit(reference, name, columns, relations)
    return Relation(
        name=name,
        columns=columns,
        key=key,
        foreign_keys=references,
        not_null=frozenset(key).union(*(reference.columns for reference in references)),
    )


def _parse_column(said: str) -> Column:
    name, _, spark_type = said.partition(" ")
    if spark_type.strip() not in NATIVE_TYPES:
        raise ValueError(f'"{said}" is not a column', f"types are {', '.join(NATIVE_TYPES)}")
    return Column(name=name, type=spark_type.strip(), native=NATIVE_TYPES[spark_type.strip()])


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _refuse_unfit(
    reference: ForeignKey, name: RelationName, columns: tuple[Column, ...], relations: Mapping[RelationName, Relation]
) -> None:
    """Raise if no source could enforce a reference: it is to the key of one of its own relations, column by column."""
    parent = relations.get(reference.parent)
    if parent is None or parent.name.source != name.source:
        raise ValueError(
            f"{name} refers to {reference.parent}, which is not there",
            "describe the relation it refers to first, at the same source",
        )
    unknown = sorted(set(reference.columns) - {column.name for column in columns})
    if unknown or len(reference.columns) != len(reference.parent_columns):
        raise ValueError(
            f"{name} refers by columns that it does not have", "name a column for each that is referred to"
        )
    if set(reference.parent_columns) != set(parent.key):
        raise ValueError(f"{name} refers to something else than the key of {parent.name}", "refer to the whole key")


def format_relation(relation: Relation) -> str:
    """Return a relation as a scenario writes it."""
    key = f" key ({', '.join(relation.key)})" if relation.key else ""
    references = [
        f" foreign key ({', '.join(reference.columns)}) references {reference.parent} "
        f"({', '.join(reference.parent_columns)})"
        for reference in relation.foreign_keys
    ]
    return f"{relation.name} ({format_columns(relation)}){key}{''.join(references)}"


def format_columns(relation: Relation) -> str:
    """Return a relation's columns with their types."""
    return ", ".join(f"{column.name} {column.type}" for column in relation.columns)
