"""A source's password stays in the process that connects: it is nowhere in Spark, which runs what readers write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from headwater.sources.embedded import EmbeddedServer

CANARY = "kanarienvogel7"

CHILD = """
import json, mmap, os, sys
from pathlib import Path

import headwater
from headwater.sources.postgres.snapshot import PostgresSnapshot
from pyspark import SparkContext

def refuse(*_):
    raise AssertionError("tasks read, and log in with the password")

PostgresSnapshot.read = refuse
heard = []
with headwater.open(sys.argv[1], listener=lambda event: heard.append(type(event).__name__)) as project:
    project.run(until_idle=True)
    frame = project.sql("SELECT upper(name) AS name, 'in_plans_and_closures' AS mark FROM named")
    frame.toArrow()
    pid = SparkContext._gateway.proc.pid
    context = project.spark.sparkContext

    def ancestors(_):  # a task's own process, and those that it came of: up to the executor, if that is another
        found, pid = [str(dict(os.environ))], os.getpid()
        while pid > 1 and len(found) < 5:
            pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
            command = open(f"/proc/{pid}/cmdline").read()
            if "pyspark" not in command or command.startswith(sys.executable + chr(0) + "-c"):
                break
            found.append(command + open(f"/proc/{pid}/environ").read())
        return found

    workers = context.parallelize(range(4), 4).map(ancestors).collect()
    jvm = context._jvm
    system = jvm.java.lang.System
    heap = os.path.join(os.path.dirname(sys.argv[1]), "driver.hprof")
    kind = jvm.java.lang.Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
    new_array = context._gateway.new_array
    kinds, said = new_array(jvm.java.lang.Class, 2), new_array(jvm.java.lang.Object, 2)
    kinds[0], kinds[1] = jvm.java.lang.Class.forName("java.lang.String"), jvm.java.lang.Boolean.TYPE
    said[0], said[1] = heap, False
    kind.getMethod("dumpHeap", kinds).invoke(jvm.java.lang.management.ManagementFactory.getPlatformMXBean(kind), said)
    with open(heap) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        in_heap = [word for word in (sys.argv[2], "in_plans_and_closures") if held.find(word.encode()) >= 0]
    os.remove(heap)
    seen = {
        "environment": Path(f"/proc/{pid}/environ").read_text(),
        "getenv": str(system.getenv()),
        "command": Path(f"/proc/{pid}/cmdline").read_text(),
        "properties": str(system.getProperties()),
        "settings": str(context.getConf().getAll()) + str(project.spark.sql("SET -v").toArrow().to_pylist()),
        "plan": frame._jdf.queryExecution().toString(),
        "workers": str(workers),
        "executors": len({text for texts in workers for text in texts if "CoarseGrainedExecutorBackend" in text}),
        "heap": str(in_heap),
        "heard": heard,
    }
print(json.dumps(seen))
"""


def require_password(server: EmbeddedServer, account: str) -> None:
    """Make an account that has to show the canary."""
    server.execute(f"CREATE ROLE {account} LOGIN SUPERUSER PASSWORD '{CANARY}'")
    rules = server.directory / "pg_hba.conf"
    rules.write_text(f"host all {account} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    server.execute("SELECT pg_reload_conf()")
    deadline = time.monotonic() + 30
    while is_let_in(server, account):
        assert time.monotonic() < deadline, "the rule was not taken up"
        time.sleep(0.05)


def is_let_in(server: EmbeddedServer, account: str) -> bool:
    """Tell whether an account need not show its password."""
    try:
        psycopg.connect(server.url(user=account)).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.mark.parametrize(
    ("master", "executors", "login"),
    [("local[*]", 0, "guarded_0"), ("local-cluster[2,1,1024]", 2, "guarded_2:${PASSWORD_OF_SHOP}")],
    ids=["local, PGPASSWORD", "local-cluster"],
)
def test_a_password_is_nowhere_in_spark(
    postgres_server: EmbeddedServer,
    postgres_database: Callable[[], str],
    tmp_path: Path,
    master: str,
    executors: int,
    login: str,
) -> None:
    """Tasks of Spark read the first rows from a server that asks for it."""
    database, account = postgres_database(), login.partition(":")[0]
    require_password(postgres_server, account)
    postgres_server.execute(
        "CREATE TABLE names (id int PRIMARY KEY, name text);"
        " INSERT INTO names SELECT g, 'a' FROM generate_series(1, 40) g; ANALYZE names",
        database=database,
    )
    project, events = tmp_path / "project", tmp_path / "events"
    (project / "views").mkdir(parents=True)
    events.mkdir()
    (project / "headwater.toml").write_text(
        f'[project]\nname = "secrets"\n[sources.shop]\nurl = "postgresql://{login}@${{REST}}"\n'
        "[settings.bootstrap]\nchunk_rows = 8\n"
    )
    (project / "views" / "named.sql").write_text("SELECT n.id AS id, n.name AS name FROM shop.names AS n")
    rest = postgres_server.url(database).split("@")[1]
    settings = {"enabled": "true", "compress": "false", "dir": events.as_uri()}
    logged = " ".join(f"--conf spark.eventLog.{name}={value}" for name, value in settings.items()) + " pyspark-shell"
    secrets = {"REST": rest, "PGPASSWORD": CANARY, "OTHER": f"mysql://me:{CANARY}@h/d"}
    secrets |= {"PASSWORD_OF_SHOP": CANARY} if "PASSWORD_OF_SHOP" in login else {}  # the project's own variables
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(project), CANARY],
        env={**os.environ, **secrets, "PYSPARK_SUBMIT_ARGS": logged, "SPARK_MASTER": master},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    seen = json.loads(child.stdout.splitlines()[-1])
    assert "SourceWarning" not in seen["heard"], "nothing kept tasks out"
    assert seen["heard"].count("BootstrapProgress") > 3
    assert seen["heard"][:3] == ["SparkStarting", "SparkStarted", "PlanningStarted"]
    assert "SPARK_LOCAL_IP" in seen["environment"], "the environment was read"
    written = "".join(file.read_text(errors="replace") for file in events.rglob("*") if file.is_file())
    assert "SparkListenerApplicationStart" in written, "Spark's event log was written"
    seen |= {"event log": written, "standard error": child.stderr}
    assert "in_plans_and_closures" in seen["heap"], (
        "plans, closures and broadcasts are in the driver's memory, which was read"
    )
    assert 0 < seen["executors"] <= executors or executors == 0
    assert [place for place, text in seen.items() if CANARY in str(text)] == []
    assert child.stderr == "", "Spark starts without a word"
