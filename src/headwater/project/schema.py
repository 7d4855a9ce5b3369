"""The JSON schema of `headwater.toml`, by which editors complete keys and mark what is wrong while it is typed.

It is made from what reads the file: groups of settings, choices, units and options of object stores stand in the code
once. A test compares its keys with those that the reader allows. What only a whole project tells (a view without its
file, a source that is not declared) is for `headwater plan`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, TypeAlias

from headwater.model import settings as settings_module
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import Maintenance
from headwater.model.project import DEFAULT_ALGORITHM, PROJECT_FILE, Reading
from headwater.model.settings import UNITS, Allowed, Unit, groups, settings_of
from headwater.project.warehouse_place import storage_options

Schema: TypeAlias = dict[str, Any]

_NAME = "^[a-z][a-z0-9_]*$"
_NUMBER = r"\s*[0-9]+(\.[0-9]+)?\s*"
_EXAMPLES = {Unit.DURATION: ["500 ms", "60 s", "10 min", "12 h", "7 days"], Unit.SIZE: ["512 MB", "16 MiB", "2 GiB"]}
_LONG_UNITS = ["seconds?", "minutes?", "hours?", "days?"]


def project_schema() -> Schema:
    """Return the schema of a project file."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": PROJECT_FILE,
        "description": "A Headwater project: sources, how views are kept, and where the warehouse is.",
        **_table(
            {
                "project": _table(
                    {"name": _text("The project's name; a warehouse belongs to one project.")}, required=["name"]
                ),
                "warehouse": _warehouse(),
                "sources": _by_name(_source(), "A source: [sources.NAME]."),
                "defaults": _table(
                    {
                        "reading": _choice(
                            Reading, "How relations are read that [relations] does not name.", "replica"
                        ),
                        "strict": _truth("Refuse views of which a part would be computed from all its rows.", False),
                    }
                ),
                "relations": {
                    "type": "object",
                    "additionalProperties": _table({"reading": _choice(Reading, "How this relation is read.", None)}),
                    "description": 'A relation: [relations."SOURCE.TABLE"].',
                },
                "maintenance": _maintenance(),
                "views": _by_name(_view(), "How a view is kept: [views.NAME], beside its file views/NAME.sql."),
                "global_transactions": _global_transactions(),
                "settings": _settings(),
            },
            required=["project"],
        ),
    }


def _table(properties: Mapping[str, Schema], *, required: list[str] | None = None) -> Schema:
    found: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**found, "required": required} if required else found


def _by_name(value: Schema, description: str) -> Schema:
    return {
        "type": "object",
        "patternProperties": {_NAME: value},
        "additionalProperties": False,
        "description": description,
    }


def _text(description: str, default: str | None = None) -> Schema:
    return {"type": "string", "description": description} | ({} if default is None else {"default": default})


def _truth(description: str, default: bool) -> Schema:
    return {"type": "boolean", "description": description, "default": default}


def _whole(description: str, default: int) -> Schema:
    return {"type": "integer", "minimum": 1, "description": description, "default": default}


def _choice(choices: Any, description: str, default: str | None) -> Schema:
    found: Schema = {
        "enum": [one if isinstance(one, str) else one.value for one in choices],
        "description": description,
    }
    return found if default is None else {**found, "default": default}


def _texts(description: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _quantity(unit: Unit, description: str, default: str | None = None, also: str = "") -> Schema:
    """Return a text of a number and a unit."""
    names = [*UNITS[unit], *(_LONG_UNITS if unit is Unit.DURATION else [])]
    pattern = f"^({_NUMBER}({'|'.join(names)})\\s*{also})$"
    found: Schema = {"type": "string", "pattern": pattern, "examples": _EXAMPLES[unit], "description": description}
    return found if default is None else {**found, "default": default}


def _warehouse() -> Schema:
    return _table(
        {
            "path": _text("A folder, or s3://BUCKET/NAME, gs://BUCKET/NAME, az://CONTAINER/NAME.", "warehouse"),
            "retention": _quantity(
                Unit.DURATION, "How far back views can be read.", "7 days", also=r"|\s*[0-9_]*[0-9][0-9_]*\s*ticks?\s*"
            ),
            "cache": _text("The folder of this machine with copies of a remote warehouse's rows."),
            "storage": _table(
                {
                    name: {"type": ["string", "boolean"], "description": f"An option of {' and '.join(stores)}."}
                    for name, stores in storage_options().items()
                }
            ),
        }
    )


def _source() -> Schema:
    known = {
        "url": _text("Where it is; passwords as ${VARIABLE} or ${file:/PATH}."),
        "statement_timeout": _quantity(Unit.DURATION, "How long it may take to answer.", "60 s"),
        "probe_connections": _whole("How many connections may read a snapshot of it at once.", 4),
    }
    others = {"type": ["string", "number", "boolean"], "description": "What only this kind of source knows."}
    return {"type": "object", "properties": known, "required": ["url"], "additionalProperties": others}


def _maintenance() -> Schema:
    return _table(
        {
            "batch_ticks": _whole("The most transactions that are computed together.", 10_000),
            "batch_interval": _quantity(Unit.DURATION, "How long a batch waits for more transactions.", "0 s"),
            "memory": _quantity(Unit.SIZE, "What Headwater's own process may hold of rows.", "2 GB"),
            "spark_memory": _quantity(Unit.SIZE, "What the virtual machine of Spark's driver may use."),
        }
    )


def _view() -> Schema:
    group_tables = {"oneOf": [{"enum": ["all", "none"]}, {"type": "array", "items": {"type": "string"}}]}
    refresh = {"type": "string", "pattern": f"^\\s*(continuous|on demand|every {_duration()})\\s*$"}
    return _table(
        {
            "guarantee": _choice(
                (Guarantee.COMPLETE, Guarantee.STRONG), "Whether every transaction is a state of its own.", None
            ),
            "algorithm": _text("How a join that probes all its relations is maintained.", DEFAULT_ALGORITHM),
            "strict": _truth("Refuse the view if a part would be computed from all its rows.", False),
            "keep": _texts('Lineage that is kept beside it: "lineage:SEGMENT", "split:SEGMENT".'),
            "maintenance": _choice(
                Maintenance, "From what it is kept; without it, by how its relations are read.", None
            ),
            "refresh": {**refresh, "default": "continuous", "description": "When it is brought up to date."},
            "group_tables": {**group_tables, "default": "all", "description": "Which segments keep their rows."},
            "compare_at_birth": _truth("Compute it twice when it is made, by its SQL and by its steps.", True),
            "publish": {
                "type": ["boolean", "string"],
                "default": False,
                "description": "Keep a plain Delta table of it for other engines: true, or a folder.",
            },
        }
    )


def _duration() -> str:
    return f"{_NUMBER}({'|'.join([*UNITS[Unit.DURATION], *_LONG_UNITS])})"


def _global_transactions() -> Schema:
    return _table(
        {
            "sources": _texts("Each global transaction has a part in each of these sources.") | {"minItems": 2},
            "by": _choice(
                ("column", "gid"), "What has its id: a column, or the id of a prepared transaction.", "column"
            ),
            "column": _text("The column that holds its id."),
        },
        required=["sources"],
    )


def _settings() -> Schema:
    return _table({name: _group(defaults) for name, defaults in groups().items()})


def _group(defaults: Any) -> Schema:
    told = _sentences(type(defaults))
    keys = {
        key: _setting(setting.allowed, setting.default, told.get(setting.field, ""))
        for key, setting in settings_of(defaults).items()
    }
    return {**_table(keys), "description": inspect.getdoc(type(defaults)) or ""}


def _setting(allowed: Allowed, default: float, description: str) -> Schema:
    if allowed.unit is Unit.COUNT:
        most = int(allowed.most)
        return {**_whole(description, int(default)), "minimum": int(allowed.least), "maximum": most}
    return _quantity(allowed.unit, description, allowed.text(default).strip('"'))


def _sentences(group: type) -> dict[str, str]:
    """Return what stands below each field of a group."""
    tree = ast.parse(inspect.getsource(settings_module))
    [body] = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == group.__name__]
    found = {}
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
            case _:
                pass
    return found
