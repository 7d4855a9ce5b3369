"""A console, and how a test asks it."""

from __future__ import annotations

# ruff: noqa: S310
import urllib.error
import urllib.request
from dataclasses import dataclass

from headwater.api.session import Headwater


@dataclass(frozen=True, slots=True)
class Served:
    """A project, and where its console is."""

    project: Headwater
    address: str

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Return the status and the text of an answer."""
        request = urllib.request.Request(self.address.rstrip("/") + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
