"""A source's URL says by its scheme of which kind it is; anybody can add a kind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.errors import InvalidProject
from headwater.sources import registry
from headwater.sources.postgres import PostgresSource
from headwater.sources.source import SourceSettings

Install = Callable[[str, str], None]


def settings(url: str | Callable[[], str]) -> SourceSettings:
    return SourceSettings(
        name="shop", url=(lambda: url) if isinstance(url, str) else url, project="p", declared_in="headwater.toml:5"
    )


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs a distribution with one kind of source."""
    monkeypatch.syspath_prepend(tmp_path)

    def made(name: str, entry: str) -> None:
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[headwater.sources]\n{entry}\n")
        (tmp_path / f"{name}_kind.py").write_text("def connect(settings):\n    return ('made', settings)\n")

    return made


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_postgresql_is_a_kind(scheme: str) -> None:
    source = registry.connect(settings(f"{scheme}://u:secret@127.0.0.1:1/db"))
    assert isinstance(source, PostgresSource)
    assert "secret" not in repr(source)


@pytest.mark.parametrize(
    "url", ["oracle://u:secret@db/shop", "secret", "", "//secret", "postgresql+x://secret", "http://[secret"]
)
def test_an_unknown_scheme_is_refused_with_those_that_are_known(url: str) -> None:
    for refusing in (registry.connect, registry.require_kind):
        with pytest.raises(InvalidProject, match="kind of source") as refused:
            refusing(settings(url))
        assert refused.value.code == "HW-111"
        assert {"postgresql://", "scripted://"} <= set(refused.value.detail.replace(" (", " ").replace(",", "").split())
        assert "headwater.toml:5" in refused.value.detail
        assert "secret" not in f"{refused.value} {refused.value.detail} {refused.value.hint}"


def test_another_distribution_adds_a_kind(install: Install) -> None:
    install("lakes", "lake = lakes_kind:connect")
    assert "lake" in registry.known_schemes()
    made, given = registry.connect(settings("lake://somewhere"))  # type: ignore[misc]
    assert (made, given.name, given.url()) == ("made", "shop", "lake://somewhere")


def test_a_kind_refuses_the_options_that_it_does_not_know() -> None:
    mistaken = replace(settings("postgresql://db/shop"), options={"statment_timeout": "5 s"})
    with pytest.raises(InvalidProject, match='unknown key "statment_timeout" of source') as refused:
        registry.connect(mistaken)
    assert (refused.value.code, refused.value.hint) == ("HW-351", 'did you mean "statement_timeout"?')


def test_an_address_that_is_read_again_is_of_the_same_kind(install: Install) -> None:
    install("lakes", "lake = lakes_kind:connect\nlakes = lakes_kind:connect")
    kept = ["lake://here"]
    _, given = registry.connect(settings(lambda: kept[0]))  # type: ignore[misc]
    kept[0] = "lakes://there"
    assert given.url() == "lakes://there"
    kept[0] = "postgresql://u:secret@db/shop"
    with pytest.raises(InvalidProject, match="kind of source") as refused:
        given.url()
    assert "secret" not in f"{refused.value} {refused.value.detail}"


def test_a_scheme_of_two_distributions_is_refused(install: Install) -> None:
    install("lakes", "lake = lakes_kind:connect")
    install("ponds", "lake = ponds_kind:connect")
    with pytest.raises(InvalidProject, match="more than one kind") as refused:
        registry.connect(settings("lake://somewhere"))
    assert refused.value.code == "HW-347"
    assert "lakes_kind:connect (lakes), ponds_kind:connect (ponds)" in refused.value.detail


def test_a_kind_that_does_not_load_is_named(install: Install) -> None:
    install("lakes", "lake = no_such_module:connect")
    with pytest.raises(InvalidProject, match="does not load") as refused:
        registry.connect(settings("lake://somewhere"))
    assert refused.value.code == "HW-348"
    assert "no_such_module" in refused.value.detail


def test_a_driver_is_imported_only_when_its_scheme_is_used() -> None:
    program = (
        "import sys\n"
        "from headwater.sources import registry\n"
        "from headwater.sources.source import SourceSettings\n"
        "registry.known_schemes()\n"
        "registry.require_kind(SourceSettings(name='a', url=lambda: 'postgresql://db/a', project='p'))\n"
        "assert 'psycopg' not in sys.modules\n"
        "registry.connect(SourceSettings(name='a', url=lambda: 'postgresql://db/a', project='p'))\n"
        "assert 'psycopg' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
