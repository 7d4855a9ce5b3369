"""Connections to one MariaDB database, all with the same session settings, and what their failures mean to us.

The password is in the address and nowhere else: errors, logs and `repr` show host, port and database only. When a login
is refused, the address is read again from where it is kept, and the same login is tried again less and less often.

Every value comes as bytes (`use_unicode`, `conv`): nothing is converted before we know as what.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from headwater.errors import HeadwaterError, InvalidProject, LoginRefused, SourceLost, SourceRefused, SourceUnavailable
from headwater.model.settings import CaptureSettings
from headwater.sources.mariadb.types import TO_LATIN1

try:
    import pymysql
    from pymysql.connections import Connection as Connected
    from pymysql.cursors import SSCursor
except ImportError:
    raise InvalidProject(
        "sources with mariadb:// or mysql:// need a client library that is not installed",
        code="HW-380",
        detail="the package pymysql cannot be imported",
        hint="pip install 'headwater[mariadb]'",
    ) from None

Connection: TypeAlias = "Connected[Any]"

_CONNECT_SECONDS = 10
_IDLE_CONNECTIONS = 4
_PORT = 3306
_SESSION = (
    "SET time_zone = '+00:00', sql_mode = '', lock_wait_timeout = 3, wait_timeout = 28800, net_write_timeout = 600,"
    " net_read_timeout = 600{more}"
)
_MARIADB_ONLY = ", max_statement_time = 0, character_set_results = utf8mb4"
_OPTIONS = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_mode")
_REFUSED_LOGIN = frozenset((1044, 1045, 1049, 1698, 1862, 4151))
_DENIED = frozenset((1142, 1143, 1227, 1370))
_UNAVAILABLE = frozenset((1040, 1053, 1077, 1152, 1159, 1161, 1203, 1205, 1213, 1226, 1317, 1927, 1105, 1180))
TOOK_TOO_LONG = frozenset((1969, 3024))
_REWRITTEN = 1412
_NO_LOG = 1236
_LOST_END = ("impossible position", "corrupt", "log event entry exceeded", "truncated in the middle")
_CLIENT_ERRORS = range(2000, 3000)
_TLS_MODES = ("required", "verify_ca", "verify_identity")


class MariadbAddress:
    """Where a source's database is, and how to open connections to it."""

    def __init__(self, *, source: str, url: Callable[[], str], settings: CaptureSettings) -> None:
        """Read the URL, which `url` returns. One that cannot be read is refused without being repeated."""
        self.source = source
        self._url = url
        self._settings = settings
        self._parameters = self._read(url())
        self._refusal: LoginRefused | None = None
        self._refused_until = self._pause_seconds = 0.0
        self.database = str(self._parameters["database"])
        self.place = f"{self._parameters['host']}:{self._parameters['port']}/{self.database}"
        self.user = str(self._parameters["user"])

    def _read(self, url: str) -> dict[str, Any]:
        try:
            parts = urlsplit(url)
            options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
            database = unquote(parts.path.removeprefix("/"))
            mode = options.get("ssl_mode", _TLS_MODES[-1]).lower()
            is_odd = "@" in database or "@" in (parts.hostname or "") or parts.fragment  # parts of a password, perhaps
            if not database or "/" in database or is_odd or set(options) - set(_OPTIONS) or mode not in _TLS_MODES:
                raise ValueError  # noqa: TRY301 — one error for all that is wrong with it
            return {
                "host": parts.hostname or "127.0.0.1",
                "port": parts.port or _PORT,
                "user": unquote(parts.username or ""),
                "password": unquote(parts.password or ""),
                "database": database,
                "options": options,
            }
        except ValueError:
            raise SourceRefused(
                f'the address of source "{self.source}" cannot be read',
                code="HW-302",
                detail="it is not a MariaDB URL (it is not shown, for it may hold a password)",
                hint="write it as mariadb://user:password@host:3306/database, perhaps with ?ssl_ca=FILE and ssl_mode="
                f"{', '.join(_TLS_MODES)}; of a password, write @ as %40, / as %2F, # as %23 and ? as %3F",
            ) from None

    def __repr__(self) -> str:
        """Return the place without user or password."""
        return f"MariadbAddress({self.source!r}, {self.place!r})"

    def login(self) -> str:
        """Return the URL as it is kept now: it holds the password."""
        return self._url()

    def open(self) -> Connection:
        """Open a connection, in autocommit. After a refused login, with user and password as they are kept now."""
        parameters = self._parameters if self._refusal is None else self._with_new_login()
        if self._refusal is not None and parameters == self._parameters and time.monotonic() < self._refused_until:
            raise self._refusal
        self._parameters = parameters
        try:
            with self.explained():
                connection = self._connect(parameters)
        except LoginRefused as error:
            self._pause_seconds = min(
                max(2 * self._pause_seconds, self._settings.login_first_seconds), self._settings.login_longest_seconds
            )
            self._refusal, self._refused_until = error, time.monotonic() + self._pause_seconds
            raise
        self._refusal, self._pause_seconds = None, 0.0
        return connection

    def _connect(self, parameters: Mapping[str, Any]) -> Connection:
        connection = pymysql.connect(
            **{name: value for name, value in parameters.items() if name != "options"},
            charset="utf8mb4",
            use_unicode=False,
            conv={},
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            ssl=_tls(self.source, parameters["options"]),
        )
        is_mariadb = "mariadb" in str(connection.get_server_info()).lower()
        execute(connection, _SESSION.format(more=_MARIADB_ONLY if is_mariadb else ""))
        execute(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return connection

    def _with_new_login(self) -> dict[str, Any]:
        try:
            kept = self._read(self._url())
        except HeadwaterError:  # it is being changed, perhaps
            return self._parameters
        return {**self._parameters, "user": kept["user"], "password": kept["password"]}

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn a driver's error into one of ours."""
        try:
            yield
        except pymysql.MySQLError as error:
            code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
            raise self.explain(code, " ".join(map(str, error.args[1:]))) from None
        except (OSError, EOFError) as error:
            raise self.explain(2013, str(error)) from None

    def explain(self, code: int, message: str) -> HeadwaterError:  # noqa: PLR0911 — one for each meaning
        """Return what an error of the server or the client library means to us."""
        summary, detail = f'source "{self.source}"', " ".join(message.split()) or "the connection ended"
        detail = f"{self.place}: {detail} ({code})" if code else f"{self.place}: {detail}"
        if code in _REFUSED_LOGIN:
            return LoginRefused(
                f'source "{self.source}" refuses the connection',
                code="HW-320",
                detail=detail,
                hint="check the user, the password and the database in the source's address; a run that has begun "
                "tries again by itself",
            )
        if code in _DENIED:
            hint = "let an owner grant it to the source's account; `headwater plan` prints the statements"
            return SourceRefused(f'source "{self.source}" denies us something', code="HW-321", detail=detail, hint=hint)
        if code in TOOK_TOO_LONG:
            return SourceUnavailable(
                f'source "{self.source}" took too long to answer',
                code="HW-304",
                detail=detail,
                hint="an index on the probed columns may be missing; `headwater plan` names it",
            )
        if code == _REWRITTEN:
            return SourceUnavailable(
                f'a snapshot of source "{self.source}" is gone',
                code="HW-306",
                detail=f"a table was altered after it was taken: {detail}",
                hint="it is taken again by itself",
            )
        if code == _NO_LOG:
            return self._without_log(detail)
        if code == 0 or code in _UNAVAILABLE or code in _CLIENT_ERRORS:
            return SourceUnavailable(
                f'source "{self.source}" does not answer',
                code="HW-303",
                detail=detail,
                hint="it is tried again by itself; check that the server runs and can be reached",
            )
        return SourceRefused(f"{summary} refuses a statement", code="HW-322", detail=detail)

    def _without_log(self, detail: str) -> HeadwaterError:
        """Return what it means that the server does not send its log from where we want it."""
        again = f"`headwater teardown --source {self.source}` and `headwater run` read this source again"
        if any(said in detail for said in _LOST_END):
            return SourceLost(
                f'the log of source "{self.source}" is not the one that was followed',
                code="HW-315",
                detail=detail,
                hint=f"{again}; the server has lost the end of its log: set sync_binlog = 1 and "
                "innodb_flush_log_at_trx_commit = 1 so that it does not happen again",
            )
        if "killed" in detail or "same server" in detail or "connected to the master" in detail:
            return SourceUnavailable(
                f'source "{self.source}" does not answer',
                code="HW-303",
                detail=detail,
                hint="it is tried again by itself",
            )
        return SourceLost(
            f'source "{self.source}" has thrown away log that we still need',
            code="HW-311",
            detail=detail,
            hint=f"{again}; raise binlog_expire_logs_seconds so that it does not happen again",
        )


def _tls(source: str, options: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return how a connection is encrypted: checked against a certificate unless the mode is `required` without one."""
    if not options:
        return None
    mode = options.get("ssl_mode", "verify_identity").lower()
    try:
        context = ssl.create_default_context(cafile=options.get("ssl_ca"))
        context.check_hostname = mode == "verify_identity"
        if mode == "required" and "ssl_ca" not in options:
            context.verify_mode = ssl.CERT_NONE
        if "ssl_cert" in options:
            context.load_cert_chain(options["ssl_cert"], options.get("ssl_key"))
    except OSError as error:
        raise SourceRefused(
            f'the certificates of source "{source}" cannot be read',
            code="HW-391",
            detail=f"{type(error).__name__}: {error}",
            hint="check the files that ssl_ca, ssl_cert and ssl_key name in the source's address",
        ) from None
    return context


def execute(connection: Connection, statement: str) -> list[tuple[bytes | None, ...]]:
    """Run a statement, and return its rows as the server printed them."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def texts(connection: Connection, statement: str) -> list[tuple[str, ...]]:
    """Run a statement, and return its rows as texts. NULL is empty."""
    return [tuple("" if one is None else one.decode() for one in row) for row in execute(connection, statement)]


def stream(connection: Connection, statement: str, row_count: int) -> Iterator[list[tuple[bytes | None, ...]]]:
    """Run a statement, and yield its rows in lists. A connection that is left in the middle of it is of no use."""
    cursor = SSCursor(connection)
    is_done = False
    try:
        cursor.execute(statement)
        while rows := cursor.fetchmany(row_count):
            yield list(rows)
        is_done = True
    finally:
        if is_done:
            cursor.close()
        else:
            connection._result = None  # noqa: SLF001 — else closing reads all that is left
            cursor.connection = None
            abandon(connection)


def abandon(connection: Connection) -> None:
    """Close a connection without a word."""
    with contextlib.suppress(Exception):
        connection._force_close()  # noqa: SLF001 — `close` says goodbye, and may wait


def text_literal(text: str, charset: str = "utf8mb4", collation: str = "") -> str:
    """Return a text as SQL writes it, whatever is in it.

    >>> text_literal("a'b")
    "_utf8mb4 X'612762'"
    """
    if charset == "latin1":
        said = f"_latin1 X'{text.translate(TO_LATIN1).encode('latin1').hex()}'"
    else:
        said = f"_{charset} X'{text.encode('ascii' if charset == 'ascii' else 'utf-8').hex()}'"
    return f"{said} COLLATE {collation}" if collation else said


class MariadbPool:
    """A few idle connections, kept because opening one costs more than a probe."""

    def __init__(self, address: MariadbAddress) -> None:
        """Start empty."""
        self._address = address
        self._idle: list[Connection] = []
        self._lock = threading.Lock()

    def take(self) -> Connection:
        """Return a connection that is alive."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._address.open()
            try:
                connection.ping(reconnect=False)
            except (pymysql.MySQLError, OSError):
                abandon(connection)
            else:
                return connection

    def give_back(self, connection: Connection) -> None:
        """End whatever transaction the connection is in, and keep it if it is healthy and there is room."""
        try:
            connection.rollback()
        except (pymysql.MySQLError, OSError):
            abandon(connection)
            return
        with self._lock:
            if len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        abandon(connection)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            abandon(connection)
