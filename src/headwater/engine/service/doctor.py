"""What stands in the way of `run`, before it does: each thing that is needed, whether it is there, and the remedy.

It changes nothing and takes no lease. A check that cannot be made is a finding, too: nothing is left out silently.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial

from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError, SeveralErrors
from headwater.model.project import Project
from headwater.observe.findings import DoctorResult, Finding, Fitness
from headwater.project.resolve import inspect_source, require_addresses
from headwater.spark.session import check_java
from headwater.storage.fenced_table import FencedTable
from headwater.storage.local_folder import free_bytes, machine_bytes
from headwater.storage.object_store import is_remote, store_at
from headwater.storage.storage_errors import storage_error
from headwater.warehouse.folders import changelog_folder, journal_folder, replica_folder, segment_folder, view_folder
from headwater.warehouse.format import is_warehouse, refuse_occupied
from headwater.warehouse.lease import read_lease
from headwater.warehouse.project_name import refuse_other_project
from headwater.warehouse.query import Warehouse, has_journal

_OWN_BYTES = 250 * 10**6
"""What the interpreter and the libraries take, beside `[maintenance] memory`."""
_SPARK_BYTES = 3 * 10**9
"""What Spark's virtual machine may use where the project does not say it."""
_LEAST_FREE_BYTES = 10**9
_LITTLE_FREE_BYTES = 10 * 10**9
_SHOWN_FILES = 3


def examine(project: Project, spark: Callable[[], SparkSession] | None) -> DoctorResult:
    """Look at everything that `run` needs. Without `spark`, whether Spark starts is not tried."""
    checks: list[tuple[str, Callable[[], Iterable[Finding]]]] = [
        ("Java", _java),
        ("Spark", lambda: _spark(spark)),
        ("memory", lambda: _memory(project)),
        ("disk", lambda: _disk(project)),
        ("environment", lambda: _environment(project)),
        *((f"source {one.name}", lambda name=one.name: _source(project, name)) for one in project.sources),
        ("warehouse", lambda: _warehouse(project)),
    ]
    return DoctorResult(findings=tuple(one for subject, check in checks for one in _findings(subject, check)))


def _findings(subject: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Return what a check finds. What it raises is a finding."""
    found: list[Finding] = []
    try:
        found += check()
    except SeveralErrors as several:
        found += (_of_error(subject, error) for error in several.errors)
    except HeadwaterError as error:
        found.append(_of_error(subject, error))
    except Exception as error:  # noqa: BLE001 - one check that breaks must not hide what the others find
        told = storage_error(error)
        text = f"the check itself failed: {type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        found.append(
            Finding(subject=subject, health=Fitness.ERROR, found=text) if told is None else _of_error(subject, told)
        )
    return found


def _of_error(subject: str, error: HeadwaterError, health: Fitness = Fitness.ERROR) -> Finding:
    found = f"{error.summary}: {error.detail}" if error.detail else error.summary
    return Finding(subject=subject, health=health, found=found, remedy=error.hint, code=error.code)


def _java() -> Iterator[Finding]:
    if os.environ.get("SPARK_REMOTE"):
        yield Finding(
            subject="Java", health=Fitness.OK, found="not needed: SPARK_REMOTE names a server of Spark Connect"
        )
        return
    check_java()
    yield Finding(subject="Java", health=Fitness.OK, found=f"found, for Python {platform.python_version()}")


def _spark(spark: Callable[[], SparkSession] | None) -> Iterator[Finding]:
    if spark is None:
        yield Finding(
            subject="Spark",
            health=Fitness.WARNING,
            found="not tried (--quick)",
            remedy="leave out --quick to start it",
        )
        return
    session = spark()
    rows = session.range(3).count()
    assert rows == 3, "Spark counts"  # noqa: PLR2004 - as above
    yield Finding(subject="Spark", health=Fitness.OK, found=f"version {session.version} runs a query")


def _memory(project: Project) -> Iterator[Finding]:
    is_ours = not any(os.environ.get(name) for name in ("SPARK_REMOTE", "SPARK_MASTER"))
    spark_bytes = (project.spark_memory_bytes or _SPARK_BYTES) if is_ours else 0
    needed, there = project.memory_bytes + spark_bytes + _OWN_BYTES, machine_bytes()
    if there is None:
        yield Finding(subject="memory", health=Fitness.WARNING, found="how much this machine has is not known")
        return
    said = f"up to {_gb(needed)} may be used, {_gb(there)} are there"
    if needed <= there:
        yield Finding(subject="memory", health=Fitness.OK, found=said)
        return
    yield Finding(
        subject="memory",
        health=Fitness.WARNING,
        found=f"{said}: the system may end the process",
        remedy="lower `memory` and `spark_memory` in [maintenance] of headwater.toml, or take a larger machine",
    )


def _disk(project: Project) -> Iterator[Finding]:
    places = [("temporary files", f"{tempfile.gettempdir()}/x")]
    if not is_remote(project.warehouse):
        places.insert(0, ("the warehouse", f"{project.warehouse}/x"))
    for what, file in places:
        free = free_bytes(file)
        if free is None:
            yield Finding(subject="disk", health=Fitness.WARNING, found=f"how much is free for {what} is not known")
            continue
        health = (
            Fitness.ERROR if free < _LEAST_FREE_BYTES else Fitness.WARNING if free < _LITTLE_FREE_BYTES else Fitness.OK
        )
        remedy = "" if health is Fitness.OK else "free some, shorten `retention` in [warehouse], or use a larger disk"
        yield Finding(subject="disk", health=health, found=f"{_gb(free)} are free for {what}", remedy=remedy)


def _environment(project: Project) -> Iterator[Finding]:
    require_addresses(project)
    count = len(project.secret_variables)
    yield Finding(
        subject="environment", health=Fitness.OK, found=f"all {count} variables that the project names are set"
    )


def _source(project: Project, name: str) -> Iterator[Finding]:
    subject = f"source {name}"
    found = inspect_source(project, name)
    for refusal in found.refusals:
        yield _of_error(subject, refusal)
    for warning in found.warnings:
        yield Finding(subject=subject, health=Fitness.WARNING, found=warning)
    found.require_rights(name)
    if not found.refusals:
        later = f"; `run` will run {len(found.owner_sql)} statements there" if found.owner_sql else ""
        relations = ", ".join(str(one.name) for one in found.relations)
        yield Finding(
            subject=subject, health=Fitness.OK, found=f"answers, and shows {relations or 'no relation'}{later}"
        )


def _warehouse(project: Project) -> Iterator[Finding]:
    path = project.warehouse
    refuse_occupied(path)
    if not is_warehouse(path):
        yield Finding(subject="warehouse", health=Fitness.OK, found=f'"{path}" is made by the first `headwater run`')
        return
    refuse_other_project(path, project.name)
    if not is_remote(path) and not os.access(path, os.W_OK):
        yield Finding(
            subject="warehouse",
            health=Fitness.ERROR,
            found=f'this account may not write into "{path}"',
            remedy="let it own the folder, or run Headwater as the account that does",
        )
    warehouse = Warehouse.open(path)
    head = warehouse.head()
    yield Finding(subject="warehouse", health=Fitness.OK, found=f"readable, at tick {head.tick}")
    yield from _lease(path)
    for view, stopped in head.record.stopped.items():
        yield Finding(
            subject=f"view {view}",
            health=Fitness.WARNING,
            found=f"stopped at tick {head.record.frontiers.get(view)}: {stopped.summary}",
            remedy=stopped.hint,
            code=stopped.code,
        )
    yield from _files(warehouse)


def _lease(path: str) -> Iterator[Finding]:
    lease = read_lease(path)
    if lease is None:
        said = "nothing maintains the warehouse now"
    elif lease.alive(datetime.now(UTC)):
        said = f"{lease.holder} maintains the warehouse: another `run` is refused meanwhile"
    else:
        said = f"the last maintainer, {lease.holder}, has ended: the next `run` takes over"
    yield Finding(subject="lease", health=Fitness.OK, found=said)


def _files(warehouse: Warehouse) -> Iterator[Finding]:
    """Compare what the tables name with what is there."""
    count, broken = 0, 0
    for folder in _tables(warehouse):
        subject = f"table {folder.removeprefix(warehouse.path + '/')}"
        found = _findings(subject, partial(_wrong_files, subject, folder))
        count, broken = count + 1, broken + bool(found)
        yield from found
    if not broken:
        yield Finding(
            subject="tables", health=Fitness.OK, found=f"all files of {count} tables are there, in their size"
        )


def _tables(warehouse: Warehouse) -> Iterator[str]:
    path, catalog = warehouse.path, warehouse.catalog()
    yield changelog_folder(path)
    if has_journal(path):
        yield journal_folder(path)
    kept = [view_folder(path, name, entry.generation) for name, entry in catalog.views.items()]
    segments = {table for entry in catalog.views.values() for table in entry.segments}
    for folder in (*kept, *(segment_folder(path, table) for table in sorted(segments))):
        yield from (f"{folder}/changes", f"{folder}/checkpoint")
    for name, replica in catalog.replicas.items():
        yield f"{replica_folder(path, name, replica.generation)}/checkpoint"


def _wrong_files(subject: str, folder: str) -> Iterator[Finding]:
    table = FencedTable.open(folder)
    named, there = {one["path"]: one["size_bytes"] for one in table.entries()}, store_at(folder).sizes()
    wrong = [path for path, size in named.items() if there.get(path) != size]
    if not wrong:
        return
    table.reload()  # a running maintainer may have put others in their place meanwhile
    still = {one["path"] for one in table.entries()}
    if not (wrong := [path for path in wrong if path in still]):
        return
    more = f" and {len(wrong) - _SHOWN_FILES} others" if len(wrong) > _SHOWN_FILES else ""
    yield Finding(
        subject=subject,
        health=Fitness.ERROR,
        found=f"missing, or not of the size that the table says: {', '.join(wrong[:_SHOWN_FILES])}{more}",
        remedy="restore the warehouse from a copy; or, for a view, `headwater run --rebuild VIEW` computes it again",
    )


def _gb(count: int) -> str:
    return f"{count / 10**9:.1f} GB"
