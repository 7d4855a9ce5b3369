"""MariaDB keeps the contract of sources. `make test` plays its rules and types instead (`tests/integration`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from mariadb_server import MariadbServer, mariadb_server
from mariadb_under_test import MariadbUnderTest

from headwater_contracts.database import DatabaseUnderTest
from headwater_contracts.sources import SourceContract

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariadbServer]:
    with mariadb_server(tmp_path_factory.mktemp("mariadb")) as found:
        yield found


@pytest.mark.thorough
class TestMariadb(SourceContract):
    @pytest.fixture
    def database(self, server: MariadbServer) -> Iterator[DatabaseUnderTest]:
        name = f"shop_{next(_NUMBERS)}"
        server.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        made = MariadbUnderTest(server, name)
        yield made
        made.clean()
