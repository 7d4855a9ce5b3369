"""Where a project's warehouse is: `[warehouse] path`, a folder of this machine or the URL of an object store.

What cannot be used is refused when the file is read, so that nothing is ever put in another place than the file says.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from headwater.errors import InvalidProject
from headwater.model.project import VARIABLE, VIEWS_FOLDER, StorageDeclaration
from headwater.project.toml_table import TomlTable
from headwater.storage.object_store import SPARK_SCHEME

_PLAIN = re.compile(r"[A-Za-z0-9._=-]+(/[A-Za-z0-9._=-]+)*")
_ALIASES = {"s3a": "s3", "abfs": "az", "abfss": "az", "azure": "az"}
_OPTIONS = {
    "s3": (
        ("endpoint", "region", "allow_http", "virtual_hosted_style_request", "access_key_id", SPARK_SCHEME),
        ("secret_access_key", "session_token"),
    ),
    "gs": (("service_account", SPARK_SCHEME), ("service_account_key",)),
    "az": (
        ("account_name", "endpoint", "allow_http", "client_id", "tenant_id"),
        ("account_key", "sas_key", "client_secret"),
    ),
}
"""The stores by the scheme of their URL, each with its plain options and those that are secret."""


def warehouse_place(table: TomlTable, folder: Path) -> tuple[str, StorageDeclaration]:
    """Return a warehouse's address, and how it is reached. `folder` is the project's own."""
    value = table.words("path", "warehouse")
    scheme, is_url, _ = value.partition("://")
    if not is_url:
        address = _folder(table, value, folder)
    elif scheme == "file":
        address = _folder(table, _path_of_url(table, value), folder)
    else:
        address = _url(table, value)
    cache = table.words("cache", "")
    return address, StorageDeclaration(
        options=_storage(table.table("storage"), address),
        cache=Path(folder, Path(cache).expanduser()) if cache else None,
    )


def storage_options() -> dict[str, list[str]]:
    """Return the options of [warehouse.storage], each with the stores that know it."""
    found: dict[str, list[str]] = {}
    for scheme, (plain, secret) in _OPTIONS.items():
        for name in (*plain, *secret):
            found.setdefault(name, []).append(f"{scheme}://")
    return found


def _folder(table: TomlTable, value: str, folder: Path) -> str:
    """Return a folder of this machine. A path that cannot be one, or would mix it with the project, is refused."""
    hint = 'name a folder of its own on this machine: path = "warehouse"'
    path = Path(folder, Path(value).expanduser())
    if not value.strip() or path.resolve() in (folder.resolve(), *folder.resolve().parents):
        raise table.refusal("path", f'"{value}" is the project\'s own folder, or one around it', hint=hint)
    if path.resolve() == (folder / VIEWS_FOLDER).resolve():
        raise table.refusal("path", f'"{value}" is the folder of the views\' files', hint=hint)
    if path.exists() and not path.is_dir():
        raise table.refusal("path", f'"{path}" is not a folder', hint=hint)
    return str(path)


def _path_of_url(table: TomlTable, value: str) -> str:
    parts = urlsplit(value)
    if parts.netloc or parts.query or parts.fragment:
        raise table.refusal("path", f'"{value}" names no file of this machine', hint='write path = "file:///FOLDER"')
    return unquote(parts.path)


def _url(table: TomlTable, value: str) -> str:
    """Return the address of an object store. One that the libraries would understand in two ways is refused."""
    scheme, _, rest = value.partition("://")
    kind = _ALIASES.get(scheme, scheme)
    if kind not in _OPTIONS:
        known = ", ".join(f"{one}://" for one in _OPTIONS)
        raise table.refusal(
            "path",
            f'"{scheme}" names no store that can be used; there are {known}',
            hint='or name a folder: path = "…"',
        )
    if not _PLAIN.fullmatch(path := rest.rstrip("/")) or {".", ".."} & {*path.split("/")}:
        raise table.refusal(
            "path",
            "a URL is a bucket and names of letters, digits, dots, dashes and underscores, without a login or a query",
            hint=f'write path = "{kind}://BUCKET/NAME"; how the store is reached belongs into [warehouse.storage]',
        )
    return f"{kind}://{path}"


def _storage(table: TomlTable, address: str) -> dict[str, str]:
    """Return the options of a store, with their `${VARIABLE}`s. A secret in plain text is refused."""
    scheme, is_url, _ = address.partition("://")
    if not is_url:
        for key in table.values:
            raise table.refusal(key, "the warehouse is a folder of this machine", hint="remove [warehouse.storage]")
        return {}
    plain, secret = _OPTIONS[scheme]
    table.allow(*plain, *secret)
    options = {key: _option(table, key) for key in table.values}
    for key in secret:
        if VARIABLE.sub("", options.get(key, "")):
            raise InvalidProject(
                f'"{key}" in {table.where(key)} is written out',
                code="HW-173",
                detail="project files are shared and versioned, secrets must not be",
                hint=f'write {key} = "${{NAME}}" and put it into the environment, or leave it out: the environment is '
                "read by the names that the store's own tools use",
            )
    return options


def _option(table: TomlTable, key: str) -> str:
    value = table.values[key]
    if isinstance(value, bool):
        return "true" if value else "false"
    text = table.words(key)
    if "$" in VARIABLE.sub("", text):
        raise table.refusal(key, 'a "$" stands alone', hint="write variables as ${NAME}")
    return text
