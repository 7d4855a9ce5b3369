"""Three database servers of a department store, each with its tables, its rows, and triggers that keep its history."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path

from headwater.demo.seed import SEEDS
from headwater.judge.audit import READ_HISTORY, AuditedChange, audit_sql, audited_changes
from headwater.model.project import Project
from headwater.project.file import load
from headwater.sources.embedded import EmbeddedServer

TABLES: Mapping[str, tuple[str, ...]] = {
    "chain": ("stores",),
    "shop": ("products", "sales"),
    "staff": ("employees",),
}
"""The tables of every source."""


@contextmanager
def running_servers(folder: Path) -> Iterator[dict[str, EmbeddedServer]]:
    """Run one server per source for a block. They may be started while something else is."""
    # A crash of the machine would lose the demo anyway, so nothing waits for the disk.
    servers = {name: EmbeddedServer(folder / name, settings={"fsync": "off"}) for name in TABLES}
    with ExitStack() as stack:
        for server in servers.values():
            stack.callback(server.stop)
        with ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(EmbeddedServer.start, servers.values()))
        yield servers


def fill(name: str, server: EmbeddedServer) -> None:
    """Make a source's tables, let triggers watch them, and put the first rows in."""
    server.execute((example_folder() / "sources" / f"{name}.sql").read_text(encoding="utf-8"))
    server.execute(audit_sql(TABLES[name]))
    server.execute(SEEDS[name])


def read_history(servers: Mapping[str, EmbeddedServer]) -> list[AuditedChange]:
    """Return everything that the triggers of all servers noted."""
    return [
        change for name, server in servers.items() for change in audited_changes(name, server.execute(READ_HISTORY))
    ]


def project_for(servers: Mapping[str, EmbeddedServer], folder: Path) -> Project:
    """Copy the example's project into a folder, and point its environment variables at the servers."""
    shutil.copytree(example_folder(), folder)
    os.environ.update({f"{name.upper()}_URL": server.url() for name, server in servers.items()})
    return load(folder)


def example_folder() -> Path:
    """Return the folder `examples/department_store`: a wheel carries it inside the package, a checkout beside it."""
    packed = Path(str(files("headwater.demo"))) / "department_store"
    return packed if packed.exists() else Path(__file__).resolve().parents[3] / "examples" / "department_store"
