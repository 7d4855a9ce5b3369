"""Connections to one PostgreSQL database, all with the same printing settings, and what their failures mean to us.

The password is in the address and nowhere else: errors, logs and `repr` show host, port and database only. When a login
is refused, the address is read again from where it is kept: the password may have been changed. The same login is tried
again less and less often, however many ask for it: servers may lock an account that fails to log in too often.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from headwater.errors import HeadwaterError, LoginRefused, SourceLost, SourceRefused, SourceUnavailable
from headwater.model.settings import CaptureSettings

Connection = psycopg.Connection[tuple[Any, ...]]

_CONNECT_SECONDS = 10
_IDLE_CONNECTIONS = 4
_LOGIN = ("user", "password")

SESSION_SETTINGS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "row_security": "off",  # a policy that would hide rows from us is an error, not a smaller answer
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "default_transaction_read_only": "off",
    "synchronous_commit": "local",  # ours is only ever a nudge: never wait for somebody's standby
    "jit": "off",
    "random_page_cost": "1.1",  # a thousand keys are found on an index, not by reading a table of 100,000 rows
}

_REFUSED = re.compile(
    r"password authentication failed|no password supplied|no pg_hba\.conf entry|role .* does not exist"
    r"|database .* does not exist|not permitted to log in|permission denied for database|fe_sendauth",
)

SLOT_IN_USE = "HW-305"
TOOK_TOO_LONG = "HW-304"
_UNAVAILABLE_STATES = ("08", "57P", "53")
_NOT_IN_STATE = "55000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What a driver's error means to us: which error it becomes, what the source did, and what to do about it."""

    error: type[HeadwaterError]
    code: str
    what: str
    hint: str


_REFUSED_FAILURE = Failure(
    error=LoginRefused,
    code="HW-320",
    what="refuses the connection",
    hint="check the user, the password and the database in the source's address; a run that has begun tries again by "
    "itself",
)
_UNAVAILABLE_FAILURE = Failure(
    error=SourceUnavailable,
    code="HW-303",
    what="does not answer",
    hint="it is tried again by itself; check that the server runs and can be reached",
)
_STANDBY_FAILURE = Failure(
    error=SourceRefused,
    code="HW-324",
    what="is a standby",
    hint="point the source at the primary server",
)
_LOST_FAILURE = Failure(
    error=SourceLost,
    code="HW-311",
    what="has thrown away log that we still need",
    hint="`headwater teardown --source SOURCE` and `headwater run` read this source again; raise "
    "max_slot_wal_keep_size so that it does not happen again",
)
_FAILURES: dict[str, Failure] = {
    "57014": Failure(
        error=SourceUnavailable,
        code=TOOK_TOO_LONG,
        what="took too long to answer",
        hint="an index on the probed columns may be missing; `headwater plan` names it",
    ),
    "42501": Failure(
        error=SourceRefused,
        code="HW-321",
        what="denies us something",
        hint="let an owner grant it to the source's account",
    ),
    "55P03": Failure(
        error=SourceUnavailable,
        code="HW-309",
        what="has a table that is in use",
        hint="it is tried again by itself; long transactions on the table keep it from being published",
    ),
    "55006": Failure(
        error=SourceUnavailable,
        code=SLOT_IN_USE,
        what="is being followed by somebody else",
        hint="stop the other maintainer of this project",
    ),
    "58P01": _LOST_FAILURE,
}
"""What PostgreSQL's error codes mean to us; 58P01 is a file of the log that is gone."""


class Address:
    """Where a source's database is, and how to open connections to it."""

    def __init__(self, *, source: str, url: Callable[[], str], application: str, settings: CaptureSettings) -> None:
        """Read the URL, which `url` returns. One that cannot be read is refused without being repeated."""
        self.source = source
        self._url = url
        self._application = application
        self._settings = settings
        self._parameters = self._read(url())
        self._refusal: LoginRefused | None = None
        self._refused_until = self._pause_seconds = 0.0
        shown = {"host": "localhost", "port": "5432", "dbname": self._parameters.get("user", ""), **self._parameters}
        self.place = f"{shown['host']}:{shown['port']}/{shown['dbname']}"

    def _read(self, url: str) -> dict[str, Any]:
        """Return what a connection is opened with."""
        try:
            parsed = conninfo_to_dict(url)
            _require_host_and_port(str(parsed.get("host") or ""), str(parsed.get("port") or "0"))
        except (psycopg.Error, ValueError):
            raise SourceRefused(
                f'the address of source "{self.source}" cannot be read',
                code="HW-302",
                detail="it is not a PostgreSQL URL (it is not shown, for it may hold a password)",
                hint="write it as postgresql://user:password@host:5432/database",
            ) from None
        settings = " ".join(f"-c {name}={value}" for name, value in SESSION_SETTINGS.items())
        parsed["options"] = f"{parsed.get('options') or ''} {settings}".strip()
        parsed["client_encoding"] = "UTF8"
        parsed["application_name"] = self._application
        parsed.setdefault("connect_timeout", _CONNECT_SECONDS)
        return {name: str(value) for name, value in parsed.items() if value is not None}

    def __repr__(self) -> str:
        """Return the place without user or password."""
        return f"Address({self.source!r}, {self.place!r})"

    def login(self) -> str:
        """Return a URL with all that libpq connects by from here, as it is kept now: it holds the password."""
        kept = self._url()
        self._read(kept)
        return f"postgresql:///?{urlencode(_as_here(conninfo_to_dict(kept), os.environ), quote_via=quote)}"

    def open(self) -> Connection:
        """Open a plain connection, in autocommit."""
        return self._open(lambda parameters: psycopg.connect(**parameters, autocommit=True, prepare_threshold=None))

    def open_replication(self) -> Connection:
        """Open a connection that speaks the replication protocol."""
        return self._open(lambda parameters: psycopg.connect(**parameters, autocommit=True, replication="database"))

    def _open(self, connect: Callable[[dict[str, Any]], Connection]) -> Connection:
        """Open a connection. After a refused login, with user and password as they are kept now, and not too soon."""
        parameters = self._parameters if self._refusal is None else self._with_new_login()
        if self._refusal is not None and parameters == self._parameters and time.monotonic() < self._refused_until:
            raise self._refusal
        self._parameters = parameters
        try:
            with self.explained():
                connection = connect(parameters)
        except LoginRefused as error:
            self._pause_seconds = min(
                max(2 * self._pause_seconds, self._settings.login_first_seconds), self._settings.login_longest_seconds
            )
            self._refusal, self._refused_until = error, time.monotonic() + self._pause_seconds
            raise
        self._refusal, self._pause_seconds = None, 0.0
        return connection

    def _with_new_login(self) -> dict[str, Any]:
        """Return what a connection is opened with, user and password as they are kept now. The database stays."""
        try:
            kept = self._read(self._url())
        except HeadwaterError:  # it is being changed, perhaps
            return self._parameters
        login = {name: value for name, value in kept.items() if name in _LOGIN}
        return {**{name: value for name, value in self._parameters.items() if name not in _LOGIN}, **login}

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn a driver's error into one of ours."""
        try:
            yield
        except psycopg.Error as error:
            raise self._explain(error.sqlstate, str(error), isinstance(error, psycopg.OperationalError)) from None

    def _explain(self, state: str | None, message: str, connection_failed: bool) -> HeadwaterError:
        detail = " ".join(message.split())
        summary = f'source "{self.source}" ({self.place})'
        failure = _FAILURES.get(state or "")
        if state == _NOT_IN_STATE:
            failure = _STANDBY_FAILURE if "recovery" in message else _LOST_FAILURE if "slot" in message else None
        if failure is None and _REFUSED.search(message):
            failure = _REFUSED_FAILURE
        if failure is None and (connection_failed or (state or "").startswith(_UNAVAILABLE_STATES)):
            failure = _UNAVAILABLE_FAILURE
        if failure is None:
            return SourceRefused(f"{summary} refuses a statement", code="HW-322", detail=detail)
        return failure.error(f"{summary} {failure.what}", code=failure.code, detail=detail, hint=failure.hint)


def _as_here(said: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a URL says, with what an environment adds to it. Where a service is named, that comes before it.

    >>> _as_here({"host": "db", "user": "me"}, {"PGPASSWORD": "x", "PGHOST": "other", "HOME": "/root"})
    {'password': 'x', 'host': 'db', 'user': 'me'}
    >>> _as_here({"service": "shop"}, {"PGPASSWORD": "x"})
    {'service': 'shop'}
    """
    named = ((one.keyword.decode(), (one.envvar or b"").decode()) for one in Conninfo.get_defaults())
    added = {keyword: environment[variable] for keyword, variable in named if environment.get(variable)}
    if "service" in said or "service" in added:
        added = {keyword: value for keyword, value in added.items() if keyword == "service"}
    return {name: str(value) for name, value in {**added, **said}.items() if value is not None}


def _require_host_and_port(host: str, port: str) -> None:
    """Check them before anybody prints them: in a URL whose password is not escaped they may be a part of that."""
    if "@" in host or not port.replace(",", "").isdigit():
        raise ValueError


class ConnectionPool:
    """A few idle connections, kept because opening one costs more than a probe."""

    def __init__(self, address: Address) -> None:
        """Start empty."""
        self._address = address
        self._idle: list[Connection] = []
        self._lock = threading.Lock()

    def begin(self, statements: str) -> tuple[Connection, tuple[Any, ...]]:
        """Run statements that begin a transaction and end in a SELECT of one row, in a connection that is alive."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            try:
                return connection, _run(connection, statements)
            except psycopg.Error:
                connection.close()  # it died while idle; another may live, and a new one will tell
        connection = self._address.open()
        try:
            with self._address.explained():
                return connection, _run(connection, statements)
        except BaseException:
            connection.close()
            raise

    def give_back(self, connection: Connection) -> None:
        """End whatever transaction the connection is in, and keep it if it is healthy and there is room."""
        try:
            connection.rollback()
        except psycopg.Error:
            connection.close()
            return
        with self._lock:
            if not connection.closed and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def _run(connection: Connection, statements: str) -> tuple[Any, ...]:
    cursor = connection.execute(statements.encode())
    while cursor.nextset():
        pass
    row = cursor.fetchone()
    assert row is not None, "the statements end in a SELECT of one row"
    return row
