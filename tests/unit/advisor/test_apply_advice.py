"""What advice writes into the project file: `keep` and `group_tables` of views, and `reading` of their relations."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from in_duckdb import World, relation

from headwater.advisor.advice import Advice, AdvisedTable, Alternative
from headwater.advisor.apply_advice import apply_advice
from headwater.advisor.candidates import AuxiliaryKind
from headwater.model.keeping import AllGroupTables, GroupTables, Maintenance, TheseGroupTables
from headwater.model.relation import RelationName
from headwater.project.file import load
from headwater.project.resolve import ResolvedProject
from headwater.views.steps.group_tables import group_tables, keep_group_tables

SALES, STORES = RelationName(source="shop", name="sales"), RelationName(source="shop", name="stores")
WORLD = World(
    [
        relation("shop", "sales", no="int", store="int", kind="int"),
        relation("shop", "stores", key=("id",), id="int!", city="int"),
    ]
)
TWO_LEVELS = """
    SELECT q.city, q.n, r.m
    FROM (SELECT st.city, COUNT(*) AS n FROM shop.sales s JOIN shop.stores st ON st.id = s.store GROUP BY st.city) q
    JOIN (SELECT st.city, COUNT(*) AS m FROM shop.stores st GROUP BY st.city) r ON r.city = q.city
"""
COMPILED = {
    "by_city": WORLD.compile(TWO_LEVELS),
    "by_kind": WORLD.compile("SELECT s.kind FROM shop.sales s"),
}
TEXT = """\
[project]
name = "shop"

[sources.shop]
url = "${SHOP}"

[relations."shop.sales"]
reading = "probe" # far away

[views.by_city]
keep = ["lineage:join_old"]
"""


def resolved(folder: Path, text: str = TEXT, maintenance: Maintenance | None = None) -> ResolvedProject:
    """Return a project of two views: by_city reads sales and stores, by_kind reads sales and may say how."""
    (folder / "views").mkdir(exist_ok=True)
    for name in ("by_city", "by_kind"):
        (folder / f"views/{name}.sql").write_text("SELECT 1")
    (folder / "headwater.toml").write_text(text)
    project = load(folder)
    views = {
        name: SimpleNamespace(
            view=keep_group_tables(view, project.view(name).group_tables),
            maintenance=maintenance if name == "by_kind" else None,
        )
        for name, view in COMPILED.items()
    }
    return cast(
        "ResolvedProject", SimpleNamespace(project=project, relations=dict.fromkeys((SALES, STORES)), views=views)
    )


def groups(view: str) -> list[str]:
    """Return the segments of a view that may have group tables."""
    return [name.name for name in group_tables(COMPILED[view])]


def advice(view: str, *tables: tuple[AuxiliaryKind, str], without: Collection[str] = ()) -> Advice:
    """Return advice to keep some tables, and all group tables but some."""
    tables += tuple((AuxiliaryKind.GROUP_TABLE, name) for name in groups(view) if name not in without)
    kept = tuple(AdvisedTable(kind=kind, of=of, stored_bytes=1, saved=1.0) for kind, of in tables)
    chosen = Alternative(tables=kept, maintaining=1.0, tracing=1.0, stored_bytes=1)
    return Advice(
        view=view,
        algorithm="exact",
        set_count=1,
        priced_count=1,
        recommended=chosen,
        today=chosen,
        nothing=chosen,
        everything=chosen,
        relations=(),
        traces_per_hour=1.0,
        is_traced=True,
    )


def test_what_is_advised_is_written_and_the_rest_stays(tmp_path: Path) -> None:
    given = (
        advice("by_city", (AuxiliaryKind.SPLIT_LINEAGE, "group_1"), (AuxiliaryKind.REPLICA, "shop.sales")),
        advice("by_kind"),
    )
    written = apply_advice(tmp_path, resolved(tmp_path), given)
    assert written == (
        '[views.by_city] keep = ["split:group_1"]',
        '[relations."shop.sales"] reading = "replica"',
        '[relations."shop.stores"] reading = "probe"',
    )
    text = (tmp_path / "headwater.toml").read_text()
    assert 'reading = "replica" # far away' in text
    assert [str(wish) for wish in load(tmp_path).view("by_city").keep] == ["split:group_1"]


def test_a_relation_that_another_view_reads_stays_as_it_is(tmp_path: Path) -> None:
    text = TEXT.replace('reading = "probe"', 'reading = "replica"')
    written = apply_advice(tmp_path, resolved(tmp_path, text), (advice("by_city"),))
    assert written == ("[views.by_city] keep removed", '[relations."shop.stores"] reading = "probe"')
    assert not load(tmp_path).view("by_city").keep


def test_a_view_that_says_how_it_is_kept_is_not_contradicted(tmp_path: Path) -> None:
    given = (advice("by_city", (AuxiliaryKind.REPLICA, "shop.sales")), advice("by_kind"))
    written = apply_advice(tmp_path, resolved(tmp_path, maintenance=Maintenance.PROBE), given)
    assert not [line for line in written if "shop.sales" in line]


def test_group_tables_are_given_up_and_made_again(tmp_path: Path) -> None:
    one, other = groups("by_city")
    file = tmp_path / "headwater.toml"
    lineage = (AuxiliaryKind.LINEAGE_VIEW, "join_old")

    def applied(*without: str) -> tuple[list[str], GroupTables]:
        """Return what was written about group tables, and what the file says then."""
        text = file.read_text() if file.exists() else TEXT
        written = apply_advice(tmp_path, resolved(tmp_path, text), (advice("by_city", lineage, without=without),))
        return [line for line in written if "group_tables" in line], load(tmp_path).view("by_city").group_tables

    assert applied() == ([], AllGroupTables())
    assert applied(one) == ([f'[views.by_city] group_tables = ["{other}"]'], TheseGroupTables((other,)))
    assert applied(one) == ([], TheseGroupTables((other,)))
    assert applied(one, other) == (['[views.by_city] group_tables = "none"'], TheseGroupTables(()))
    assert applied() == (["[views.by_city] group_tables removed"], AllGroupTables())


def test_nothing_is_written_where_nothing_is_to_change(tmp_path: Path) -> None:
    known = resolved(tmp_path)
    before = (tmp_path / "headwater.toml").read_text()
    same = advice("by_city", (AuxiliaryKind.LINEAGE_VIEW, "join_old"), (AuxiliaryKind.REPLICA, "shop.stores"))
    assert apply_advice(tmp_path, known, (same, advice("by_kind"))) == ()
    assert (tmp_path / "headwater.toml").read_text() == before


def test_a_table_may_be_written_in_any_form(tmp_path: Path) -> None:
    text = '[project]\nname = "shop"\n[views]\nby_city = { keep = ["lineage:join_old"] }  # mine\n'
    known = resolved(tmp_path, text)
    apply_advice(tmp_path, known, (advice("by_city", (AuxiliaryKind.LINEAGE_VIEW, "join_2")),))
    assert 'by_city = { keep = ["lineage:join_2"] }  # mine' in (tmp_path / "headwater.toml").read_text()
