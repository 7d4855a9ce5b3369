"""An independent history of a PostgreSQL database: what its own triggers saw, by transaction id.

A change log that is judged by itself hides whatever it missed. So tests and the demo let the source write down every
row that came and went, in the transaction that did it; nothing of it passes through replication, and a transaction that
is rolled back takes its entries with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headwater.model.relation import RelationName

RowText: TypeAlias = Mapping[str, str | None]
"""A row as its columns' texts: exact for numbers, and typed again only when it is replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedChange:
    """A row that a transaction inserted (no old), deleted (no new) or updated."""

    source: str
    identity: int
    relation: RelationName
    old: RowText | None
    new: RowText | None


READ_HISTORY = """
SELECT identity, relation_schema, relation_name, old_row::text, new_row::text FROM audit.history ORDER BY number
"""
"""Reads the history, every transaction's entries in the order in which it wrote them; see `audited_changes`."""

_PREPARE = """
CREATE SCHEMA audit;
CREATE TABLE audit.history (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    identity bigint NOT NULL,
    relation_schema text NOT NULL,
    relation_name text NOT NULL,
    old_row json,
    new_row json
);
CREATE FUNCTION audit.note_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO audit.history (identity, relation_schema, relation_name, old_row, new_row) VALUES (
        pg_current_xact_id()::text::bigint, TG_TABLE_SCHEMA, TG_TABLE_NAME,
        CASE WHEN TG_OP <> 'INSERT' THEN to_json(OLD) END,
        CASE WHEN TG_OP <> 'DELETE' THEN to_json(NEW) END
    );
    RETURN NULL;
END $$;
CREATE FUNCTION audit.note_truncate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    EXECUTE format(
        'INSERT INTO audit.history (identity, relation_schema, relation_name, old_row)
         SELECT pg_current_xact_id()::text::bigint, %L, %L, to_json(gone) FROM %I.%I AS gone',
        TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_TABLE_SCHEMA, TG_TABLE_NAME
    );
    RETURN NULL;
END $$;
"""

_WATCH = """
CREATE TRIGGER audit_rows AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION audit.note_row();
CREATE TRIGGER audit_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION audit.note_truncate();
"""


def audit_sql(tables: Sequence[str]) -> str:
    """Return the SQL that begins a history of these tables. Run it before the first row comes, as their owner.

    >>> "ON sales FOR EACH ROW" in audit_sql(["sales"])
    True
    """
    return _PREPARE + "".join(_WATCH.format(table=table) for table in tables)


def audited_changes(source: str, rows: Iterable[Sequence[object]]) -> list[AuditedChange]:
    """Return what the rows of `READ_HISTORY` tell.

    >>> [change] = audited_changes("shop", [(7, "public", "sales", None, '{"id": 1, "price": 2.50, "paid": true}')])
    >>> change.identity, str(change.relation), change.old, change.new
    (7, 'shop.sales', None, {'id': '1', 'price': '2.50', 'paid': 'true'})
    """
    changes = []
    for identity, schema, name, old, new in rows:
        assert isinstance(identity, int), "a transaction's identity is a number"
        relation = RelationName(source=source, schema=str(schema), name=str(name))
        changes.append(
            AuditedChange(source=source, identity=identity, relation=relation, old=_row_text(old), new=_row_text(new))
        )
    return changes


def _row_text(text: object) -> RowText | None:
    if text is None:
        return None
    read = json.loads(str(text), parse_float=str, parse_int=str)
    return {column: _value_text(value) for column, value in read.items()}


def _value_text(value: object) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case _:
            return json.dumps(value)
