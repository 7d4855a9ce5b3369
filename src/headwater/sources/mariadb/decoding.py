"""From the bytes of many logged rows to typed Arrow columns, a whole column at a time.

Law: a value gives the same Arrow value from the log and from a read (`printing`). Rows have no fixed length: they are
walked once (`log_rows`); after that a column is where its values stand, and how long they are, and numpy gathers them.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.sources.mariadb.table_map import DIGIT_BYTES, LoggedColumn, decimal_width
from headwater.sources.mariadb.types import FROM_LATIN1, HeldType

Bytes: TypeAlias = npt.NDArray[np.uint8]
Places: TypeAlias = npt.NDArray[np.int64]
Limbs: TypeAlias = npt.NDArray[np.uint64]

_SECONDS_PER_DAY = 86_400
_MICROSECONDS = 1_000_000
_MONTHS = 12
_LIMB = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


class UnfitValueError(Exception):
    """A value does not fit. Carries it until the column's name is known."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a column that are not NULL: where each stands in the bytes, and how long it is."""

    data: Bytes
    at: Places
    lengths: Places

    def fixed(self, width: int) -> Bytes:
        """Return the values as rows of bytes of one width."""
        found: Bytes = self.data[self.at[:, None] + np.arange(width)]
        return found

    def little(self, width: int) -> Limbs:
        """Return the values as numbers whose lowest byte comes first."""
        wide = np.zeros((len(self.at), 8), np.uint8)
        wide[:, :width] = self.fixed(width)
        return wide.view("<u8").reshape(-1).astype(np.uint64)

    def big(self, width: int, skip: int = 0) -> Limbs:
        """Return the values as numbers whose highest byte comes first, without some bytes before them."""
        wide = np.zeros((len(self.at), 8), np.uint8)
        wide[:, 8 - width :] = self.data[(self.at + skip)[:, None] + np.arange(width)]
        return wide.view(">u8").reshape(-1).astype(np.uint64)

    def joined(self) -> tuple[Places, Bytes]:
        """Return the values one after the other, and where each begins there."""
        ends = np.cumsum(self.lengths)
        starts = np.concatenate((np.zeros(1, np.int64), ends))
        places = np.arange(starts[-1]) + np.repeat(self.at - starts[:-1], self.lengths)
        return starts, self.data[places]

    def binary(self) -> pa.Array:
        """Return the values as bytes."""
        starts, joined = self.joined()
        if starts[-1] > np.iinfo(np.int32).max:
            raise UnfitValueError("more than 2 GiB in one column of a part")
        buffers = [None, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(joined)]
        return pa.Array.from_buffers(pa.binary(), len(self.at), buffers)


Decode: TypeAlias = Callable[[Values, LoggedColumn, HeldType], pa.Array]


def decode(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    """Return the typed values of a column. None of them is NULL."""
    return _DECODE[held.kind](values, column, held)


def _integers(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    raw = values.little(column.width)
    bits = np.uint64(64 - 8 * column.width)
    if not held.is_unsigned:
        signed = (raw << bits).view(np.int64) >> bits.astype(np.int64)
        return pa.array(signed).cast(
            {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32()}.get(held.spark, pa.int64())
        )
    if held.length == 8:  # noqa: PLR2004 — bytes
        low, high = raw & _LIMB, raw >> _SHIFT
        return _decimals_of([low, high, np.zeros_like(low), np.zeros_like(low)], np.zeros(len(raw), np.bool_), 20, 0)
    target = {"smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}[held.spark]
    return pa.array(raw.astype(np.int64)).cast(target)


def _decimals(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del column
    precision, scale = held.length, held.scale
    raw = values.fixed(decimal_width(precision, scale)).copy()
    negative = raw[:, 0] < 0x80  # noqa: PLR2004 — the sign bit
    raw[:, 0] ^= 0x80
    raw[negative] ^= 0xFF
    whole = precision - scale
    groups = [whole % 9] * (whole % 9 > 0) + [9] * (whole // 9 + scale // 9) + [scale % 9] * (scale % 9 > 0)
    limbs = [np.zeros(len(raw), np.uint64) for _ in range(4)]
    at = 0
    for digits in groups:
        width = DIGIT_BYTES[digits]
        wide = np.zeros((len(raw), 8), np.uint8)
        wide[:, 8 - width :] = raw[:, at : at + width]
        carry = wide.view(">u8").reshape(-1).astype(np.uint64)
        factor = np.uint64(10**digits)
        for place, limb in enumerate(limbs):
            product = limb * factor + carry
            limbs[place], carry = product & _LIMB, product >> _SHIFT
        at += width
    return _decimals_of(limbs, negative, precision, scale)


def _decimals_of(limbs: list[Limbs], negative: npt.NDArray[np.bool_], precision: int, scale: int) -> pa.Array:
    """Return decimals of numbers of 128 bits, the lowest 32 of them first."""
    low, high = limbs[0] | limbs[1] << _SHIFT, limbs[2] | limbs[3] << _SHIFT
    minus_low = ~low + np.uint64(1)
    minus_high = ~high + (minus_low == 0)
    pairs = np.empty((len(low), 2), np.uint64)
    pairs[:, 0], pairs[:, 1] = np.where(negative, minus_low, low), np.where(negative, minus_high, high)
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(low), [None, pa.py_buffer(pairs)])


def _floats(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del held
    kind = np.dtype("<f4" if column.width == 4 else "<f8")  # noqa: PLR2004 — bytes
    return pa.array(np.ascontiguousarray(values.fixed(column.width)).view(kind).reshape(-1) + kind.type(0))


def _years(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del held
    raw = values.little(column.width).astype(np.int32)
    return pa.array(np.where(raw == 0, 0, raw + 1900).astype(np.int32))


def _dates(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del held
    raw = values.little(column.width).astype(np.int64)
    return pa.array(_days(raw >> 9, raw >> 5 & 15, raw & 31).astype(np.int32)).cast(pa.date32())


def _days(years: Places, months: Places, days: Places) -> Places:
    """Return days since 1970. Dates that no calendar has are refused."""
    first = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    found = first.astype("datetime64[D]") + (days - 1)
    wrong = (years < 1) | (months < 1) | (months > _MONTHS) | (days < 1) | (found.astype("datetime64[M]") != first)
    if wrong.any():
        one = int(np.flatnonzero(wrong)[0])
        raise UnfitValueError(f"{years[one]:04d}-{months[one]:02d}-{days[one]:02d}")
    return found.astype(np.int64)


def _datetimes(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del column
    raw = values.big(5).astype(np.int64) - 0x8000000000
    day, clock = raw >> 17, raw & 0x1FFFF
    month = day >> 5
    days = _days(month // 13, month % 13, day & 31)
    seconds = days * _SECONDS_PER_DAY + (clock >> 12) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)
    return pa.array(seconds * _MICROSECONDS + _fraction(values, held.length, 5)).cast(pa.timestamp("us"))


def _timestamps(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del column
    seconds = values.big(4).astype(np.int64)
    found = seconds * _MICROSECONDS + _fraction(values, held.length, 4)
    if (found == 0).any():
        raise UnfitValueError("0000-00-00 00:00:00")
    return pa.array(found).cast(pa.timestamp("us", tz="UTC"))


def _fraction(values: Values, digits: int, skip: int) -> Places:
    """Return the microseconds that stand behind some bytes."""
    width = (digits + 1) // 2
    if width == 0:
        return np.zeros(len(values.at), np.int64)
    scaled: Places = values.big(width, skip).astype(np.int64) * 100 ** (3 - width)
    return scaled


def _times(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    digits = held.length
    bits = 8 * ((digits + 1) // 2)
    raw = values.big(column.width).astype(np.int64) - (0x800000 << bits)
    size = np.abs(raw)
    micros = (size & ((1 << bits) - 1)) * 100 ** (3 - bits // 8) if bits else np.zeros_like(size)
    clock = size >> bits
    parts = zip(
        (raw < 0).tolist(),
        (clock >> 12 & 0x3FF).tolist(),
        (clock >> 6 & 63).tolist(),
        (clock & 63).tolist(),
        micros.tolist(),
        strict=True,
    )
    texts = [
        f"{'-' if minus else ''}{hours:02d}:{minutes:02d}:{seconds:02d}"
        + (f".{micro:06d}"[: digits + 1] if digits else "")
        for minus, hours, minutes, seconds, micro in parts
    ]
    return pa.array(texts, pa.string())


def _bits(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    bits = np.unpackbits(values.fixed(column.width), axis=1)[:, 8 * column.width - held.length :] + ord("0")
    return _texts_of_width(np.ascontiguousarray(bits.astype(np.uint8)), held.length)


def _texts_of_width(rows: Bytes, width: int) -> pa.Array:
    starts = np.arange(len(rows) + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(
        pa.string(), len(rows), [None, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(rows.reshape(-1))]
    )


def _members(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del held
    names = pa.array(("", *column.members), pa.string())
    return names.take(pa.array(values.little(column.width).astype(np.int64)))


def _sets(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del held
    masks, back = np.unique(values.little(column.width), return_inverse=True)
    texts = [
        ",".join(name for place, name in enumerate(column.members) if mask >> place & 1) for mask in masks.tolist()
    ]
    return pa.array(texts, pa.string()).take(pa.array(back.reshape(-1)))


def _texts(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del column
    found = values.binary()
    if held.charset == "latin1":
        buffers = found.buffers()
        if buffers[2] is not None and (np.frombuffer(buffers[2], np.uint8) > 0x7F).any():  # noqa: PLR2004 — ASCII
            return pa.array([one.decode("latin1").translate(FROM_LATIN1) for one in found.to_pylist()], pa.string())
    return found.cast(pa.string())


def _binary(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del column
    if held.length == 0:
        return values.binary()
    return pa.array([one.ljust(held.length, b"\0") for one in values.binary().to_pylist()], pa.binary())


def _uuids(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del column
    texts = []
    for one in values.binary().to_pylist():
        digits = one.ljust(held.length, b"\0").hex()
        texts.append("-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])))
    return pa.array(texts, pa.string())


def _addresses(values: Values, column: LoggedColumn, held: HeldType) -> pa.Array:
    del column
    shown = _ipv4 if held.kind == "inet4" else _ipv6
    return pa.array([shown(one.ljust(held.length, b"\0")) for one in values.binary().to_pylist()], pa.string())


def _ipv4(stored: bytes) -> str:
    return str(ipaddress.IPv4Address(stored))


def _ipv6(stored: bytes) -> str:
    """Return an address as MariaDB prints it: the first of the longest runs of zeros is left out, also if it is one."""
    words = [stored[at] << 8 | stored[at + 1] for at in range(0, 16, 2)]
    begin, length, at = 8, 0, 0
    for is_zero, group in itertools.groupby(words, lambda word: word == 0):
        size = len(list(group))
        if is_zero and size > length:
            begin, length = at, size
        at += size
    if begin == 0 and (length == 6 or (length == 5 and words[5] == 0xFFFF)):  # noqa: PLR2004 — one of version 4 is in it
        return f"{'::' if length == 6 else '::ffff:'}{ipaddress.IPv4Address(stored[12:])}"  # noqa: PLR2004 — as above
    before, after = (":".join(f"{word:x}" for word in some) for some in (words[:begin], words[begin + length :]))
    return f"{before}::{after}" if length else before


_DECODE: Mapping[str, Decode] = {
    "integer": _integers,
    "decimal": _decimals,
    "float": _floats,
    "double": _floats,
    "date": _dates,
    "datetime": _datetimes,
    "timestamp": _timestamps,
    "time": _times,
    "year": _years,
    "bit": _bits,
    "enum": _members,
    "set": _sets,
    "text": _texts,
    "binary": _binary,
    "uuid": _uuids,
    "inet4": _addresses,
    "inet6": _addresses,
}
