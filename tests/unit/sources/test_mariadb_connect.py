"""Addresses of MariaDB databases, and what comes over a connection that is damaged."""

from __future__ import annotations

import zlib
from struct import pack

import pytest

from headwater.errors import SourceRefused, SourceUnavailable
from headwater.model.settings import CaptureSettings
from headwater.sources.mariadb.connect import MariadbAddress
from headwater.sources.mariadb.log_stream import LogStream


def address(url: str) -> MariadbAddress:
    return MariadbAddress(source="shop", url=lambda: url, settings=CaptureSettings())


@pytest.mark.parametrize(
    "end",
    [
        "@db/shop?ssl_mode=verify_identiy",
        "@db/shop?ssl_mode=",
        "@db/shop?ssl-ca=x",
        "12/34@db:3306",
        "12/34@db",
        "12#34@db/shop",
        "12?34@db/shop",
    ],
)
def test_an_address_that_says_something_else_is_refused_without_being_shown(end: str) -> None:
    """A mode that is written wrongly would leave the server unchecked. A password may have signs of an address."""
    with pytest.raises(SourceRefused) as refused:
        address(f"mariadb://me:{end}")
    assert refused.value.code == "HW-302"
    assert "34" not in str(refused.value)


def test_certificates_that_are_not_there_are_named() -> None:
    """As an error of the connection it would be tried again for ever."""
    with pytest.raises(SourceRefused) as refused:
        address("mariadb://me:secret@127.0.0.1:1/shop?ssl_ca=/nowhere/ca.pem").open()
    assert refused.value.code == "HW-391"
    assert "secret" not in str(refused.value)


def test_a_damaged_event_is_not_decoded() -> None:
    stream = LogStream.__new__(LogStream)
    stream._address, stream._has_checksums = address("mariadb://me:secret@db/shop"), True
    event = bytes(range(19))
    assert stream._event(b"\0" + event + pack("<I", zlib.crc32(event))) == event
    with pytest.raises(SourceUnavailable) as refused:
        stream._event(b"\0" + event + pack("<I", zlib.crc32(event) ^ 1))
    assert refused.value.code == "HW-390"
