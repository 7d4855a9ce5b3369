"""A server that speaks S3, on 127.0.0.1, to be told what to do wrong: moto's, in a process of its own.

    python s3_server.py     prints its port, and serves until it is killed

Requests that write on a condition are answered one after the other, as S3 does: of several exactly one wins. A request
to `/__test` says what becomes of the next ones, and returns those that came since the last time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

BUCKET = "headwater-test"
IDENTITY = {"AWS_ACCESS_KEY_ID": "test-identity", "AWS_SECRET_ACCESS_KEY": "test-secret"}
"""What this process and all that it starts shows to the server, which believes anything."""
_KEYS = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "HTTP_IF_NONE_MATCH")


@dataclass
class S3Server:
    """The server as tests see it."""

    port: int
    options: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.options = {"endpoint": f"http://127.0.0.1:{self.port}", "region": "us-east-1", "allow_http": "true"}

    @property
    def environment(self) -> dict[str, str]:
        """What a process finds the server by that is told nothing else."""
        return {
            "AWS_ENDPOINT_URL": self.options["endpoint"],
            "AWS_REGION": self.options["region"],
            "AWS_ALLOW_HTTP": "true",
            **IDENTITY,
        }

    def address(self, name: str = "warehouse") -> str:
        """Return an address that nothing is at."""
        return f"s3://{BUCKET}/{uuid.uuid4().hex[:8]}/{name}"

    def requests(self) -> list[str]:
        """Return the requests since the last time: method, path and query."""
        return self._tell({})

    @contextmanager
    def failing(self, how: str, *, only: str = "", count: int = 1_000_000) -> Iterator[None]:
        """Answer wrongly: `overwrite`, `refuse` (403), `break` (503), `lose` (do it, and answer 503), for a while.

        `only` is a part of the method and the path of the requests that are meant.
        """
        self._tell({"how": how, "only": only, "count": count})
        try:
            yield
        finally:
            self._tell({"how": ""})

    def _tell(self, what: Mapping[str, object]) -> list[str]:
        with closing(HTTPConnection("127.0.0.1", self.port)) as connection:
            connection.request("POST", "/__test", body=json.dumps(what))
            heard: list[str] = json.loads(connection.getresponse().read())
            return heard


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start a server with an empty bucket, and end it."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__))], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield S3Server(port=int(process.stdout.readline()))
        finally:
            process.kill()


@dataclass
class _Faults:
    """What becomes of requests, and what they were."""

    how: str = ""
    only: str = ""
    count: int = 0
    heard: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, said: Mapping[str, Any]) -> list[str]:
        with self.lock:
            if said:
                self.how, self.only, self.count = said["how"], said.get("only", ""), said.get("count", 0)
                return []
            heard, self.heard = self.heard, []
            return heard

    def of(self, request: str) -> str:
        with self.lock:
            self.heard.append(request)
            if not self.how or self.only not in request or self.count == 0:
                return ""
            self.count -= 1
            return self.how


def _application(inner: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    faults, one_at_a_time = _Faults(), threading.Lock()

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/__test":
            said = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            start("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(faults.tell(said)).encode()]
        method, path, query, condition = (environ.get(key, "") for key in _KEYS)
        how = faults.of(f"{method} {path}{'?' if query else ''}{query}{' if absent' if condition else ''}")
        if how in ("refuse", "break"):
            start({"refuse": "403 Forbidden", "break": "503 Slow Down"}[how], [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code></Error>" if how == "refuse" else b""]
        if how == "overwrite":
            environ.pop("HTTP_IF_NONE_MATCH", None)
        if how == "lose":
            with one_at_a_time:
                list(inner(environ, lambda *_: lambda _: None))
            start("503 Slow Down", [("Content-Type", "application/xml")])
            return [b""]
        if condition:
            with one_at_a_time:
                return list(inner(environ, start))
        return inner(environ, start)

    return answer


def main() -> None:
    """Serve until killed, or until the process that started this one is gone."""
    import boto3  # noqa: PLC0415 - only the server needs these
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # noqa: PLC0415
    from werkzeug.serving import make_server  # noqa: PLC0415

    server = make_server("127.0.0.1", 0, _application(DomainDispatcherApplication(create_backend_app)), threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= IDENTITY
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{server.port}", region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)


if __name__ == "__main__":
    main()
