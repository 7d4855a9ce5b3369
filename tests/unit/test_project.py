from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import InvalidProject
from headwater.guarantee import Guarantee
from headwater.keeping import Continuous, Every, Maintenance, OnDemand, Refresh
from headwater.project import GlobalTransactions, IdColumn, PreparedId, Project, Reading, RetainFor, RetainTicks
from headwater.project_file import load
from headwater.relation import RelationName

WHOLE = """\
[project]
name = "shop"

[warehouse]
path = "kept"
retention = "1_000_000 ticks"

[sources.shop]
url = "${SHOP_URL}"
statement_timeout = "5 s"

[sources.staff]
url = "postgresql://reader:${STAFF_PASSWORD}@db.example/staff"
probe_connections = 2

[maintenance]
batch_ticks = 500
batch_interval = "250 ms"

[defaults]
reading = "probe"

[relations."shop.sales"]
reading = "replica"

[relations."shop.old.sales"]
reading = "probe"

[views.orders]
guarantee = "strong"
"""


def write(folder: Path, text: str, **views: str) -> Path:
    (folder / "headwater.toml").write_text(text)
    (folder / "views").mkdir(exist_ok=True)
    for name, sql in views.items():
        (folder / "views" / f"{name}.sql").write_text(sql)
    return folder


def load_text(folder: Path, text: str, **views: str) -> Project:
    return load(write(folder, text, **views))


def test_a_whole_project(tmp_path: Path) -> None:
    project = load_text(tmp_path, WHOLE, orders="SELECT 1", parts="SELECT 2")
    assert project.name == "shop"
    assert project.warehouse == tmp_path / "kept"
    assert project.retention == RetainTicks(count=1_000_000)
    assert (project.batch_ticks, project.batch_interval_seconds) == (500, 0.25)
    assert [view.name for view in project.views] == ["orders", "parts"]
    assert project.view("orders").guarantee is Guarantee.STRONG
    assert (project.view("parts").guarantee, project.view("parts").algorithm) == (None, "batched-sweep")
    assert project.reading(RelationName(source="shop", name="sales")) is Reading.REPLICA
    assert project.reading(RelationName(source="shop", schema="old", name="sales")) is Reading.PROBE
    assert project.reading(RelationName(source="staff", name="employees")) is Reading.PROBE
    assert project.source("staff").probe_connections == 2
    assert project.source("shop").declared_in == "headwater.toml:8"
    assert load(tmp_path / "headwater.toml") == project


def test_what_is_not_said_has_a_default(tmp_path: Path) -> None:
    project = load_text(tmp_path, '[project]\nname = "shop"\n')
    assert project.warehouse == tmp_path / "warehouse"
    assert project.retention == RetainFor(seconds=7 * 86_400)
    assert project.default_reading is Reading.REPLICA
    assert project.batch_ticks == 10_000
    assert project.views == project.sources == ()


def test_variables_are_needed_only_when_connecting(tmp_path: Path) -> None:
    project = load_text(tmp_path, WHOLE, orders="SELECT 1")
    assert project.source("shop").url({"SHOP_URL": "postgresql://db/shop"}) == "postgresql://db/shop"
    with pytest.raises(InvalidProject, match='"STAFF_PASSWORD" is not set') as refused:
        project.source("staff").url({})
    assert refused.value.code == "HW-110"
    with pytest.raises(InvalidProject, match="kind of source"):
        project.source("shop").url({"SHOP_URL": "mysql://db/shop"})


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ('[project]\nname = "a"\n[warehouse]\nretentoin = "7 days"', "HW-101", "headwater.toml:4"),
        ('[project]\nname = "a"\n[warehouse]\nretentoin = "7 days"', "HW-101", 'did you mean "retention"?'),
        ('[project]\nname = "a"\n[wharehouse]\npath = "x"', "HW-101", 'did you mean "warehouse"?'),
        ('[project]\nname = "a"\n[sources.shop]\nurl = "${U}"\ntimeout = 1', "HW-101", "headwater.toml:5"),
        ("[project]\n", "HW-102", 'has no "name"'),
        ("[project]\nname = 5", "HW-103", "headwater.toml:2"),
        ("project = 5", "HW-103", "a table [project] belongs here"),
        ("[project]\nname = shop", "HW-106", "line 2"),
        ('[project]\nname = "a"\n[warehouse]\nretention = "a while"', "HW-103", "1000000 ticks"),
        ('[project]\nname = "a"\n[maintenance]\nbatch_ticks = 0', "HW-103", "at least 1"),
        ('[project]\nname = "a"\n[maintenance]\nbatch_ticks = true', "HW-103", "at least 1"),
        ('[project]\nname = "a"\n[defaults]\nreading = "replcia"', "HW-103", 'did you mean "replica"?'),
        ('[project]\nname = "a"\n[relations.shop.sales]\nreading = "probe"', "HW-113", '[relations."shop.sales"]'),
        ('[project]\nname = "a"\n[relations."shop.sales"]\nreading = "probe"', "HW-118", 'no source "shop"'),
        ('[project]\nname = "a"\n[views.sales]\nguarantee = "strong"', "HW-114", 'did you mean "sale"?'),
        ('[project]\nname = "a"\n[views.sale]\nguarantee = "weak"', "HW-103", '"complete" or "strong"'),
        ('[project]\nname = "a"\n[sources."My Shop"]\nurl = "${U}"', "HW-117", '"my_shop"'),
        ('[project]\nname = "a"\n[sources.shop]\nurl = "$U"', "HW-103", "${NAME}"),
        ('[project]\nname = "a"\n[sources.shop]\nurl = "postgresql://me:secret@db/x"', "HW-112", "${SHOP_URL}"),
        ('[project]\nname = "a"\n[sources.shop]\nurl = "postgresql://db/x?password=secret"', "HW-112", "password"),
        ('[project]\nname = "a"\n[sources.shop]\nurl = "host=db password=secret"', "HW-112", "password"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, text: str, code: str, says: str) -> None:
    with pytest.raises(InvalidProject) as refused:
        load_text(tmp_path, text, sale="SELECT 1")
    assert refused.value.code == code
    assert says in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_folder_without_a_project(tmp_path: Path) -> None:
    with pytest.raises(InvalidProject, match="no project file"):
        load(tmp_path)
    (tmp_path / "headwater.toml").write_text('[project]\nname = "a"\n')
    with pytest.raises(InvalidProject, match='no folder "views"'):
        load(tmp_path)


@pytest.mark.parametrize(("name", "sql"), [("Sales", "SELECT 1"), ("1st", "SELECT 1"), ("empty", " \n")])
def test_bad_view_files(tmp_path: Path, name: str, sql: str) -> None:
    with pytest.raises(InvalidProject, match="views/"):
        load_text(tmp_path, '[project]\nname = "a"\n', **{name: sql})


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    write(tmp_path, '[project]\nname = "a"\n')
    (tmp_path / "views" / "bad.sql").write_bytes(b"SELECT '\xff'")
    with pytest.raises(InvalidProject, match="not UTF-8"):
        load(tmp_path)


def test_global_transactions(tmp_path: Path) -> None:
    said = '\n[global_transactions]\nsources = ["shop", "staff"]\ncolumn = "gid"\n'
    assert load_text(tmp_path, WHOLE, orders="SELECT 1").global_transactions is None
    project = load_text(tmp_path, WHOLE + said, orders="SELECT 1")
    assert project.global_transactions == GlobalTransactions(sources=("shop", "staff"), ids=IdColumn(name="gid"))
    prepared = said.replace('column = "gid"', 'by = "gid"')
    project = load_text(tmp_path, WHOLE + prepared, orders="SELECT 1")
    assert project.global_transactions == GlobalTransactions(sources=("shop", "staff"), ids=PreparedId())


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ('sources = ["shop", "stuff"]\ncolumn = "gid"', 'no source "stuff"'),
        ('sources = ["shop", "shop"]\ncolumn = "gid"', "at least two sources"),
        ('sources = ["shop"]\ncolumn = "gid"', "at least two sources"),
        ('sources = "shop"\ncolumn = "gid"', "a list of texts"),
        ('sources = ["shop", "staff"]', 'has no "column"'),
        ('sources = ["shop", "staff"]\nby = "prepared"', '"column" or "gid"'),
        ('sources = ["shop", "staff"]\nby = "gid"\ncolumn = "id"', "those of prepared transactions"),
        ('sources = ["shop", "staff"]\ncolumns = "gid"', 'did you mean "column"'),
    ],
)
def test_global_transactions_that_cannot_be_meant(tmp_path: Path, said: str, refused: str) -> None:
    with pytest.raises(InvalidProject) as error:
        load_text(tmp_path, f"{WHOLE}\n[global_transactions]\n{said}\n", orders="SELECT 1")
    assert refused in str(error.value)


def test_how_a_view_is_kept(tmp_path: Path) -> None:
    text = '[project]\nname = "shop"\n[views.orders]\nmaintenance = "recompute-probe"\nrefresh = "every 10 min"\n'
    project = load_text(tmp_path, text, orders="SELECT 1", parts="SELECT 2")
    assert project.view("orders").maintenance is Maintenance.RECOMPUTE_PROBE
    assert project.view("orders").refresh == Every(seconds=600, text="10 min")
    assert (project.view("parts").maintenance, project.view("parts").refresh) == (None, Continuous())


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("continuous", Continuous()),
        ("on demand", OnDemand()),
        ("every 250 ms", Every(seconds=0.25, text="250 ms")),
        ("every day", None),
        ("every 0 s", None),
        ("10 min", None),
        ("sometimes", None),
    ],
)
def test_when_a_view_is_refreshed(tmp_path: Path, said: str, meant: Refresh | None) -> None:
    text = f'[project]\nname = "shop"\n[views.orders]\nrefresh = "{said}"\n'
    if meant is not None:
        assert load_text(tmp_path, text, orders="SELECT 1").view("orders").refresh == meant
        return
    with pytest.raises(InvalidProject, match="does not say when") as refused:
        load_text(tmp_path, text, orders="SELECT 1")
    assert refused.value.code == "HW-103"
    assert "headwater.toml:4" in refused.value.summary
