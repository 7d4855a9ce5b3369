from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import InvalidProject
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import Continuous, Every, Maintenance, OnDemand, Refresh
from headwater.model.project import GlobalTransactions, IdColumn, PreparedId, Project, Reading, RetainFor, RetainTicks
from headwater.model.relation import RelationName
from headwater.project.file import load
from headwater.project.warnings import unused_settings

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
memory = "1.5 GB"
spark_memory = "4 GiB"

[defaults]
reading = "probe"

[relations."shop.sales"]
reading = "replica"

[relations."shop.old.sales"]
reading = "probe"

[views.orders]
guarantee = "strong"
"""

REMOTE = '[project]\nname = "a"\n[warehouse]\npath = "s3://bucket/shop"\n'


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
    assert project.warehouse == str(tmp_path / "kept")
    assert project.retention == RetainTicks(count=1_000_000)
    assert (project.batch_ticks, project.batch_interval_seconds) == (500, 0.25)
    assert (project.memory_bytes, project.spark_memory_bytes) == (1_500_000_000, 4 * 2**30)
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
    assert project.warehouse == str(tmp_path / "warehouse")
    assert project.retention == RetainFor(seconds=7 * 86_400)
    assert project.default_reading is Reading.REPLICA
    assert project.batch_ticks == 10_000
    assert (project.memory_bytes, project.spark_memory_bytes) == (2 * 10**9, None)
    assert project.views == project.sources == ()


def test_variables_are_needed_only_when_connecting(tmp_path: Path) -> None:
    project = load_text(tmp_path, WHOLE, orders="SELECT 1")
    assert project.source("shop").url({"SHOP_URL": "postgresql://db/shop"}) == "postgresql://db/shop"
    with pytest.raises(InvalidProject, match='"STAFF_PASSWORD" is not set') as refused:
        project.source("staff").url({})
    assert refused.value.code == "HW-110"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ('[project]\nname = "a"\n[warehouse]\nretentoin = "7 days"', "HW-101", "headwater.toml:4"),
        ('[project]\nname = "a"\n[warehouse]\nretentoin = "7 days"', "HW-101", 'did you mean "retention"?'),
        ('[project]\nname = "a"\n[wharehouse]\npath = "x"', "HW-101", 'did you mean "warehouse"?'),
        ('[project]\nname = "a"\n[sources.shop]\nurl = "${U}"\ntimeout = []', "HW-103", "headwater.toml:5"),
        ("[project]\n", "HW-102", 'has no "name"'),
        ("[project]\nname = 5", "HW-103", "headwater.toml:2"),
        ("project = 5", "HW-103", "a table [project] belongs here"),
        ("[project]\nname = shop", "HW-106", "line 2"),
        ('[project]\nname = "a"\n[warehouse]\nretention = "a while"', "HW-103", "1000000 ticks"),
        ('[project]\nname = "a"\n[maintenance]\nbatch_ticks = 0', "HW-103", "at least 1"),
        ('[project]\nname = "a"\n[maintenance]\nbatch_ticks = true', "HW-103", "at least 1"),
        ('[project]\nname = "a"\n[maintenance]\nmemory = 5', "HW-103", "headwater.toml:4"),
        ('[project]\nname = "a"\n[maintenance]\nmemory = "5 kB"', "HW-103", 'from "100 kB" to'),
        ('[project]\nname = "a"\n[maintenance]\nspark_memory = "5 s"', "HW-103", '"512 MB"'),
        ('[project]\nname = "a"\n[defaults]\nreading = "replcia"', "HW-103", 'did you mean "replica"?'),
        ('[project]\nname = "a"\n[relations.shop.sales]\nreading = "probe"', "HW-113", '[relations."shop.sales"]'),
        ('[project]\nname = "a"\n[relations."shop.sales"]\nreading = "probe"', "HW-118", 'no source "shop"'),
        ('[project]\nname = "a"\n[views.sales]\nguarantee = "strong"', "HW-127", 'did you mean "sale"?'),
        ('[project]\nname = "a"\n[views.sale]\nguarantee = "weak"', "HW-103", '"complete" or "strong"'),
        ('[project]\nname = "a"\n[sources."My Shop"]\nurl = "${U}"', "HW-117", '"my_shop"'),
        ('[project]\nname = "a"\n[sources.segments]\nurl = "${U}"', "HW-117", '"segments_source"'),
        ('[project]\nname = "a"\n[sources.shop]\nurl = "$U"', "HW-103", "${NAME}"),
        ('[project]\nname = "a"\n[sources.shop]\nurl = "postgresql://me:secret@db/x"', "HW-112", "${SHOP_URL}"),
        ('[project]\nname = "a"\n[sources.shop]\nurl = "postgresql://db/x?password=secret"', "HW-112", "password"),
        ('[project]\nname = "a"\n[sources.shop]\nurl = "host=db password=secret"', "HW-112", "password"),
        ('[project]\nname = " "', "HW-103", "headwater.toml:2"),
        ('[project]\nname = "a\\nb"', "HW-103", "a line break"),
        ('[project]\nname = "a"\n[warehouse]\npath = ""', "HW-103", "the project's own folder"),
        ('[project]\nname = "a"\n[warehouse]\npath = "."', "HW-103", "headwater.toml:4"),
        ('[project]\nname = "a"\n[warehouse]\npath = "../.."', "HW-103", "or one around it"),
        ('[project]\nname = "a"\n[warehouse]\npath = "views"', "HW-103", "the folder of the views' files"),
        ('[project]\nname = "a"\n[warehouse]\npath = "headwater.toml"', "HW-103", "is not a folder"),
        ('[project]\nname = "a"\n[warehouse]\npath = "ftp://b/x"', "HW-103", '"ftp" names no store that can be used'),
        ('[project]\nname = "a"\n[warehouse]\npath = "memory://x"', "HW-103", "there are s3://, gs://, az://"),
        ('[project]\nname = "a"\n[warehouse]\npath = "s3://"', "HW-103", 'write path = "s3://BUCKET/NAME"'),
        ('[project]\nname = "a"\n[warehouse]\npath = "s3://me:secret@b/x"', "HW-103", "without a login"),
        ('[project]\nname = "a"\n[warehouse]\npath = "s3a://b/x?region=y"', "HW-103", "or a query"),
        ('[project]\nname = "a"\n[warehouse]\npath = "s3://b/../x"', "HW-103", "headwater.toml:4"),
        ('[project]\nname = "a"\n[warehouse]\npath = "file://host/x"', "HW-103", "names no file of this machine"),
        ('[project]\nname = "a"\n[warehouse]\npath = "file:///"', "HW-103", "or one around it"),
        ('[project]\nname = "a"\n[warehouse.storage]\nregion = "x"', "HW-103", "is a folder of this machine"),
        ('[project]\nname = "a"\n[warehouse]\nretention = "0 ticks"', "HW-103", 'the least is "1 tick"'),
        ('[project]\nname = "a"\n[warehouse]\nretention = "_ ticks"', "HW-103", "not a length of time"),
        ('[project]\nname = "a"\n[warehouse]\nretention = "0 days"', "HW-103", '"0 days" is too short'),
        ('[project]\nname = "a"\n[warehouse]\nretention = "99999999999 days"', "HW-103", "too long"),
        (
            '[project]\nname = "a"\n[sources.shop]\nurl = "${U}"\nstatement_timeout = "0 s"',
            "HW-103",
            '"0 s" is too short',
        ),
        (
            '[project]\nname = "a"\n[sources.shop]\nurl = "${U}"\nstatement_timeout = "30 days"',
            "HW-103",
            'from "1 ms" to "24 days"',
        ),
        (
            '[project]\nname = "a"\n[sources.s]\nurl = "${U}"\n[relations]\n"s.x".reading = "probe"\n"s.public.x" = {}',
            "HW-161",
            'names "s.x" twice',
        ),
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


def test_a_project_that_is_no_folder_or_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0")
    with pytest.raises(InvalidProject, match="is not a folder") as refused:
        load(tmp_path / "passwd")
    assert refused.value.code == "HW-105"
    write(tmp_path, '[project]\nname = "a"\n')
    (tmp_path / "views" / "sale.sql").mkdir()
    with pytest.raises(InvalidProject, match="Is a directory") as refused:
        load(tmp_path)
    assert refused.value.code == "HW-158"
    (tmp_path / "folder" / "headwater.toml").mkdir(parents=True)
    with pytest.raises(InvalidProject) as refused:
        load(tmp_path / "folder")
    assert (refused.value.code, str(tmp_path / "folder" / "headwater.toml") in str(refused.value)) == ("HW-158", True)


def test_settings_that_change_nothing_are_named(tmp_path: Path) -> None:
    project = load_text(
        tmp_path,
        WHOLE + '[relations."shop.orders"]\nreading = "probe"\n[relations."shop.nosuch"]\nreading = "probe"\n',
        orders="SELECT 1",
    )
    sales, orders = RelationName(source="shop", name="sales"), RelationName(source="shop", schema="eu", name="orders")
    said = "in headwater.toml changes nothing: no view reads that relation;"
    assert unused_settings(project, {sales, orders}) == [
        f'[relations."shop.old.sales"] {said} did you mean "shop.sales"?',
        f'[relations."shop.orders"] {said} did you mean "shop.eu.orders"?',
        f'[relations."shop.nosuch"] {said} is the name right?',
        "[sources.staff] in headwater.toml:12 changes nothing: no view reads that source",
    ]


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


def test_a_warehouse_is_a_folder_or_an_object_store(tmp_path: Path) -> None:
    def place(said: str) -> str:
        return load_text(tmp_path, f'[project]\nname = "a"\n[warehouse]\npath = "{said}"\n').warehouse

    elsewhere = tmp_path.parent / "a folder"
    assert place(elsewhere.as_uri()) == str(elsewhere)
    assert place(str(elsewhere)) == str(elsewhere)
    assert place("s3://bucket/shop/") == "s3://bucket/shop"
    assert place("s3a://bucket") == "s3://bucket"
    assert (place("gs://b-1/x_y"), place("az://c/x.y")) == ("gs://b-1/x_y", "az://c/x.y")


def test_how_a_store_is_reached_has_no_secrets_in_it(tmp_path: Path) -> None:
    said = 'endpoint = "http://127.0.0.1:9000"\nallow_http = true\nsecret_access_key = "${KEY}"\nregion = "${R}-1"\n'
    project = load_text(tmp_path, f'{REMOTE}cache = "copies"\n[warehouse.storage]\n{said}')
    assert project.storage.cache == tmp_path / "copies"
    assert project.storage.options == {
        "endpoint": "http://127.0.0.1:9000",
        "allow_http": "true",
        "secret_access_key": "${KEY}",
        "region": "${R}-1",
    }
    assert load_text(tmp_path, REMOTE).storage.cache is None


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (f'{REMOTE}[warehouse.storage]\nregoin = "x"', "HW-101", 'did you mean "region"?'),
        (f'{REMOTE}[warehouse.storage]\naccount_key = "x"', "HW-101", "[warehouse.storage] knows endpoint"),
        (f'{REMOTE}[warehouse.storage]\nsecret_access_key = "geheim"', "HW-173", "headwater.toml:6"),
        (f'{REMOTE}[warehouse.storage]\nsecret_access_key = "${{A}}geheim"', "HW-173", "${NAME}"),
        (f'{REMOTE}[warehouse.storage]\nregion = "$A"', "HW-103", 'a "$" stands alone'),
    ],
)
def test_a_store_is_reached_by_what_it_knows(tmp_path: Path, text: str, code: str, says: str) -> None:
    with pytest.raises(InvalidProject) as refused:
        load_text(tmp_path, text)
    assert (refused.value.code, says in str(refused.value), "geheim" in str(refused.value)) == (code, True, False)
