"""Whatever is wrong with a project is refused before anything changes: what failed, why, what to do; exit 1."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping

import pytest
from audited import SOURCES, AuditedWorld, audited_world
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from headwater.cli.app import app
from headwater.sources.embedded import EmbeddedServer

GOOD = {"good": "SELECT s.no, p.price FROM shop.sales s JOIN shop.products p ON p.id = s.product"}

WRONG_VIEWS = {
    "wrong SQL": ("SELEC s.no FORM shop.sales s", "HW-2"),
    "unknown column": ("SELECT s.nope FROM shop.sales s", "nope"),
    "unknown relation": ("SELECT s.no FROM shop.sails s", "sails"),
    "unknown source": ("SELECT s.no FROM shoop.sales s", "shoop"),
    "unsupported construct": ("SELECT s.no FROM shop.sales s TABLESAMPLE (5 ROWS)", "HW-2"),
    "ambiguous name": ("SELECT id FROM shop.products p JOIN crm.customers c ON p.id = c.id", "id"),
    "type Spark cannot hold": ("SELECT s.outline FROM shop.shapes s", "outline"),
    "non-deterministic function": ("SELECT s.no, rand() AS r FROM shop.sales s", "rand"),
    "types that do not fit": (
        "SELECT s.no AND p.price AS x FROM shop.sales s JOIN shop.products p ON p.id = s.no",
        "HW-2",
    ),
}


@pytest.fixture(scope="module")
def world(three_servers: dict[str, EmbeddedServer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedWorld]:
    folder = tmp_path_factory.mktemp("bad") / "shop"
    with audited_world(three_servers, folder) as made:
        made.execute("shop", "CREATE TABLE shapes (id int PRIMARY KEY, outline polygon)")
        made.execute("shop", "CREATE TABLE unindexed (sale int, word text)")
        made.write_project(GOOD)
        assert command(made, "run", "--until-idle").exit_code == 0
        yield made


@pytest.fixture
def project(world: AuditedWorld, spark: SparkSession) -> Iterator[AuditedWorld]:
    del spark
    os.environ.update(world.environment)
    world.write_project(GOOD)
    yield world
    os.environ.update(world.environment)
    world.write_project(GOOD)


def command(world: AuditedWorld, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--project", str(world.folder)], prog_name="headwater")


def everything(world: AuditedWorld) -> Mapping[str, object]:
    """Return whatever a run could change: every file of the warehouse, and what there is at the sources."""
    files: dict[str, object] = {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted((world.folder / "warehouse").rglob("*"))
        if file.is_file()
    }
    for source in SOURCES:
        files[source] = (
            world.execute(source, "SELECT slot_name, confirmed_flush_lsn FROM pg_replication_slots ORDER BY 1"),
            world.execute(source, "SELECT * FROM pg_publication_tables ORDER BY 1, 2, 3"),
            world.execute(source, "SELECT relname, relreplident FROM pg_class WHERE relkind = 'r' ORDER BY oid"),
        )
    return files


def assert_refused(world: AuditedWorld, names: str, *, by_plan: bool = True) -> None:
    before = everything(world)
    for verb in (["run", "--until-idle"], *([["plan"]] if by_plan else [])):
        drawn = command(world, *verb)
        assert drawn.exit_code == 1, (verb, drawn.output, drawn.exception)
        assert names in drawn.stderr
        assert "  do:" in drawn.stderr or "  why:" in drawn.stderr, drawn.stderr
        assert "[HW-" in drawn.stderr
    said = json.loads(command(world, "run", "--until-idle", "--json").stdout)["error"]
    assert said["summary"]
    assert said["code"].startswith("HW-")
    assert said["code"] != "HW-999"
    assert said["detail"] or said["hint"]
    assert everything(world) == before


@pytest.mark.parametrize("mistake", WRONG_VIEWS)
def test_a_view_that_cannot_be_kept(project: AuditedWorld, mistake: str) -> None:
    sql, names = WRONG_VIEWS[mistake]
    project.write_project({**GOOD, "bad": sql})
    assert_refused(project, names)


def test_a_typo_in_the_project_file(project: AuditedWorld) -> None:
    file = project.folder / "headwater.toml"
    file.write_text(file.read_text().replace("reading", "raeding", 1))
    assert_refused(project, "raeding")


def test_a_source_that_is_down_at_the_start(project: AuditedWorld) -> None:
    before = everything(project)
    os.environ["HW_TEST_SHOP"] = "postgresql://postgres@127.0.0.1:1/nowhere"
    drawn = command(project, "run", "--until-idle")
    assert drawn.exit_code == 1
    assert "shop" in drawn.stderr
    assert "  do:" in drawn.stderr
    assert everything(project) == before


def test_a_wrong_password(project: AuditedWorld) -> None:
    server = project.servers["shop"]
    rules = server.directory / "pg_hba.conf"
    before = rules.read_text()
    server.execute("DROP ROLE IF EXISTS guarded; CREATE ROLE guarded SUPERUSER LOGIN PASSWORD 'right'")
    try:
        rules.write_text("host all guarded 127.0.0.1/32 scram-sha-256\n" + before)
        server.execute("SELECT pg_reload_conf()")
        url = server.url(project.database, "guarded").replace("guarded@", "guarded:wrong@")
        os.environ["HW_TEST_SHOP"] = url
        assert_refused(project, "shop")
        shown = command(project, "run", "--until-idle").output
        assert "wrong@" not in shown
        assert ":wrong" not in shown
    finally:
        rules.write_text(before)
        server.execute("SELECT pg_reload_conf()")
        server.execute("DROP ROLE guarded")


@pytest.mark.parametrize(
    ("grants", "names"),
    [
        ("ALTER ROLE {role} REPLICATION", "GRANT SELECT"),
        ("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}", "REPLICATION"),
        (
            "ALTER ROLE {role} REPLICATION; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}",
            "REPLICA IDENTITY FULL",
        ),
    ],
    ids=["may not read", "may not replicate", "does not own the table"],
)
def test_missing_rights(project: AuditedWorld, grants: str, names: str) -> None:
    role = f"reader_{abs(hash(names)) % 10_000}"
    project.execute("shop", "CREATE TABLE IF NOT EXISTS returns (sale int PRIMARY KEY, why text)")
    project.execute("shop", f"CREATE ROLE {role} LOGIN")
    try:
        project.execute("shop", grants.format(role=role))
        os.environ["HW_TEST_SHOP"] = project.servers["shop"].url(project.database, role)
        project.write_project(
            {**GOOD, "bad": "SELECT r.sale, s.no FROM shop.returns r JOIN shop.sales s ON s.no = r.sale"}
        )
        assert_refused(project, names, by_plan=False)
    finally:
        os.environ.update(project.environment)
        project.execute("shop", f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_a_missing_index_is_a_warning_only(project: AuditedWorld) -> None:
    project.write_project(
        {**GOOD, "words": "SELECT u.word, s.no FROM shop.unindexed u JOIN shop.sales s ON s.no = u.sale"},
        probed=("shop.unindexed", "shop.sales"),
    )
    drawn = command(project, "plan")
    assert drawn.exit_code == 0, drawn.output
    assert "no index" in drawn.output
    warnings = json.loads(command(project, "plan", "--json").stdout)["warnings"]
    assert any("shop.unindexed by sale" in warning for warning in warnings)


NOT_PLAIN = """
    CREATE VIEW looked AS SELECT id FROM shapes;
    CREATE MATERIALIZED VIEW noted AS SELECT id FROM shapes;
    CREATE UNLOGGED TABLE hasty (id int PRIMARY KEY);
    CREATE TABLE parent (id int PRIMARY KEY);
    CREATE TABLE child () INHERITS (parent);
    CREATE TABLE keyless (id int) PARTITION BY RANGE (id);
    CREATE TABLE formula (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL);
"""
"""Each gives the name of a relation that cannot be followed."""


def test_everything_that_is_wrong_is_told_at_once(project: AuditedWorld) -> None:
    project.execute("shop", NOT_PLAIN)
    role = "teller"
    project.execute("crm", f"CREATE ROLE {role} LOGIN")
    try:
        os.environ["HW_TEST_CRM"] = project.servers["crm"].url(project.database, role)
        os.environ["HW_TEST_GEO"] = "postgresql://postgres@127.0.0.1:1/nowhere"
        refused = ("looked", "noted", "hasty", "parent", "keyless", "formula")
        project.write_project(
            {
                **GOOD,
                **{f"of_{name}": f"SELECT x.id FROM shop.{name} x" for name in refused},
                "of_nothing": "SELECT x.id FROM shop.nothing x",
                "unread": "SELEC x",
                "untyped": "SELECT s.nope FROM shop.sales s",
                "above": "SELECT u.nope FROM untyped u",
                "people": "SELECT c.id FROM crm.customers c JOIN geo.cities g ON g.id = c.city",
            }
        )
        drawn = command(project, "plan")
        said = json.loads(command(project, "plan", "--json").stdout)
    finally:
        os.environ.update(project.environment)
        project.execute("crm", f"DROP ROLE {role}")
        names = "VIEW looked; DROP MATERIALIZED VIEW noted; DROP TABLE hasty, child, parent, keyless, formula"
        project.execute("shop", f"DROP {names}")
    assert drawn.exit_code == 1
    for told in (*(f'relation "shop.{name}"' for name in refused), '"shop.nothing"', 'view "unread"', 'view "untyped"'):
        assert told in drawn.stderr, told
    assert 'view "above"' not in drawn.stderr, "it is right, but for what it reads"
    codes = [error["code"] for error in said["errors"]]
    assert codes.count("HW-332") == 5
    assert {"HW-343", "HW-323", "HW-326", "HW-329", "HW-303"} <= set(codes), "and what sources lack"
    assert said["error"]["code"] == "HW-346"


def test_what_the_owner_has_to_run_is_printed_as_a_script(project: AuditedWorld) -> None:
    role = "following"
    project.execute("shop", "CREATE TABLE slips (no int PRIMARY KEY)")
    project.execute("shop", f"CREATE ROLE {role} LOGIN")
    try:
        os.environ["HW_TEST_SHOP"] = project.servers["shop"].url(project.database, role)
        project.write_project({**GOOD, "paper": "SELECT x.no FROM shop.slips x"})
        lacking = command(project, "plan", "--sql", "shop")
        assert lacking.exit_code == 1
        assert "HW-326" in lacking.stderr
        project.execute("shop", lacking.stdout + f"ALTER ROLE {role} REPLICATION")
        done = command(project, "plan", "--sql", "shop")
        assert (done.exit_code, done.stdout) == (0, "")
        assert command(project, "plan").exit_code == 0
        assert command(project, "plan", "--sql", "moon").exit_code == 1
    finally:
        os.environ.update(project.environment)
        project.execute("shop", f"DROP TABLE slips; DROP OWNED BY {role}; DROP ROLE {role}")


def test_plan_warns_of_later_partitions_and_of_what_is_recomputed(project: AuditedWorld) -> None:
    project.execute(
        "shop",
        "CREATE TABLE days (day int PRIMARY KEY, sold int) PARTITION BY RANGE (day);"
        "CREATE TABLE days1 PARTITION OF days FOR VALUES FROM (0) TO (10000);"
        "INSERT INTO days SELECT n, n FROM generate_series(1, 5000) n",
    )
    try:
        project.write_project({**GOOD, "best": "SELECT d.day, RANK() OVER (ORDER BY d.sold) AS place FROM shop.days d"})
        told = json.loads(command(project, "plan", "--json").stdout)
    finally:
        project.execute("shop", "DROP TABLE days")
    assert any("shop.days is partitioned" in warning for warning in told["warnings"])
    assert any("HW-264" in warning and 'view "best"' in warning for warning in told["warnings"])
    [rows] = [step["row_estimate"] for step in told["steps"] if step["name"] == "shop.days"]
    assert 2_500 <= rows <= 10_000, "never analyzed: estimated by its size"
