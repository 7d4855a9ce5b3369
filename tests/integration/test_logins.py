"""A server that refuses our login is tried again, with the user and password as they are kept by then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from headwater.errors import LoginRefused
from headwater.model.settings import DEFAULTS, CaptureSettings
from headwater.sources.postgres import PostgresSource


@pytest.fixture
def accounts(world: Any) -> Iterator[Any]:
    world.execute("CREATE ROLE old_account LOGIN SUPERUSER; CREATE ROLE new_account LOGIN SUPERUSER")
    world.execute("CREATE TABLE sales (id int PRIMARY KEY)")
    yield world
    world.execute("DROP ROLE old_account; DROP ROLE new_account")


def test_a_refused_login_works_again_as_before_or_with_another_account(
    accounts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, kept = accounts, {"url": accounts.server.url(accounts.database, "old_account")}
    settings = replace(DEFAULTS, capture=CaptureSettings(login_first_seconds=20.0))
    source = PostgresSource(name="shop", url=lambda: kept["url"], project=world.database, settings=settings)
    world.declare("sales")
    relations = tuple(world.relations.values())
    source.follow(relations, world.slot, {}).close()
    world.execute("ALTER ROLE old_account NOLOGIN")
    with pytest.raises(LoginRefused) as refused:
        source.follow(relations, world.slot, {})
    assert refused.value.code == "HW-320"
    world.execute("ALTER ROLE old_account LOGIN")
    with pytest.raises(LoginRefused):
        source.follow(relations, world.slot, {})  # not tried again at once: servers may lock accounts
    monkeypatch.setattr(source._address, "_refused_until", 0.0)
    source.follow(relations, world.slot, {}).close()

    world.execute("ALTER ROLE old_account NOLOGIN")
    with pytest.raises(LoginRefused):
        source.follow(relations, world.slot, {})
    kept["url"] = world.server.url(world.database, "new_account").replace(world.database, "elsewhere")
    follower = source.follow(relations, world.slot, {})
    world.execute("INSERT INTO sales VALUES (7)")
    [capture] = world.captures(follower)
    assert [row["id"] for row in capture.rows[relations[0].name].to_pylist()] == [7], "user and password change alone"
    follower.close()
    source.close()
