"""What advice writes into the project file: `keep` of views, and `reading` of their relations."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from headwater.advisor.advice import Advice, AdvisedTable, Alternative
from headwater.advisor.candidates import AuxiliaryKind
from headwater.errors import InvalidProject
from headwater.keeping import Maintenance
from headwater.project_file import load
from headwater.relation import RelationName
from headwater.runtime.apply_advice import apply_advice
from headwater.runtime.understand import Understood

SALES, STORES = RelationName(source="shop", name="sales"), RelationName(source="shop", name="stores")
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


def understood(folder: Path, text: str = TEXT, maintenance: Maintenance | None = None) -> Understood:
    """Return a project of two views: by_city reads sales and stores, by_kind reads sales and may say how."""
    (folder / "views").mkdir()
    for name in ("by_city", "by_kind"):
        (folder / f"views/{name}.sql").write_text("SELECT 1")
    (folder / "headwater.toml").write_text(text)
    read = {"by_city": (SALES, STORES), "by_kind": (SALES,)}
    views = {
        name: SimpleNamespace(
            view=SimpleNamespace(relations=dict.fromkeys(names, ("id",))),
            maintenance=maintenance if name == "by_kind" else None,
        )
        for name, names in read.items()
    }
    return cast(
        "Understood", SimpleNamespace(project=load(folder), relations=dict.fromkeys((SALES, STORES)), views=views)
    )


def advice(view: str, *tables: tuple[AuxiliaryKind, str]) -> Advice:
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
    written = apply_advice(tmp_path, understood(tmp_path), given)
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
    written = apply_advice(tmp_path, understood(tmp_path, text), (advice("by_city"),))
    assert written == ("[views.by_city] keep removed", '[relations."shop.stores"] reading = "probe"')
    assert not load(tmp_path).view("by_city").keep


def test_a_view_that_says_how_it_is_kept_is_not_contradicted(tmp_path: Path) -> None:
    given = (advice("by_city", (AuxiliaryKind.REPLICA, "shop.sales")), advice("by_kind"))
    written = apply_advice(tmp_path, understood(tmp_path, maintenance=Maintenance.PROBE), given)
    assert not [line for line in written if "shop.sales" in line]


def test_nothing_is_written_where_nothing_is_to_change(tmp_path: Path) -> None:
    known = understood(tmp_path)
    before = (tmp_path / "headwater.toml").read_text()
    same = advice("by_city", (AuxiliaryKind.LINEAGE_VIEW, "join_old"), (AuxiliaryKind.REPLICA, "shop.stores"))
    assert apply_advice(tmp_path, known, (same, advice("by_kind"))) == ()
    assert (tmp_path / "headwater.toml").read_text() == before


def test_a_file_of_another_form_is_refused_and_left_alone(tmp_path: Path) -> None:
    text = '[project]\nname = "shop"\n[views]\nby_city = { keep = ["lineage:join_old"] }\n'
    known = understood(tmp_path, text)
    with pytest.raises(InvalidProject) as refused:
        apply_advice(tmp_path, known, (advice("by_city", (AuxiliaryKind.LINEAGE_VIEW, "join_2")),))
    assert refused.value.code == "HW-141"
    assert (tmp_path / "headwater.toml").read_text() == text
