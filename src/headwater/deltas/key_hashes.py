"""64-bit hashes of key values: equal keys have equal hashes, whatever their types, NULL included.

    column ──► words of 64 bits per row ──► mixed into the row's hash, column after column

Everything is vectorised: a text is taken eight bytes at a time, for all rows at once. Two different keys may share a
hash, so rows that are found by it are compared with the keys afterwards (`indexed_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Words: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]

_WORD = 8
_FACTOR = np.uint64(0x9E37_79B9_7F4A_7C15)
_SHIFT = np.uint64(29)
_START = np.uint64(0x243F_6A88_85A3_08D3)
_NULL = np.uint64(0xC2B2_AE3D_27D4_EB4F)


def key_hashes(columns: Sequence[pa.ChunkedArray]) -> Words:
    """Return a hash for each row of some columns of one length.

    >>> one, same, other = (pa.chunked_array([values]) for values in ([1, None], [1, None], [2, 3]))
    >>> list(key_hashes([one]) == key_hashes([same])), list(key_hashes([one]) == key_hashes([other]))
    ([np.True_, np.True_], [np.False_, np.False_])
    """
    hashes = np.full(len(columns[0]), _START, np.uint64)
    for column in columns:
        done = 0
        for chunk in column.chunks:
            part = hashes[done : done + len(chunk)]
            part[:] = _mixed_in(part, chunk)
            done += len(chunk)
    return hashes


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values that Arrow can compare and group by: arrays in their printed form, others as they are.

    >>> comparable(pa.chunked_array([[[1, None], None]])).to_pylist()
    ['[1, None]', None]
    """
    if not pa.types.is_nested(column.type):
        return column
    printed = [None if value is None else repr(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(printed, pa.string())])


def _mixed_in(hashes: Words, values: pa.Array) -> Words:
    """Return the hashes after values were mixed into them, row by row."""
    if pa.types.is_nested(values.type):
        values = comparable(pa.chunked_array([values])).combine_chunks()
    if _is_text(values.type):
        mixed = _with_texts(hashes, values)
    else:
        mixed = hashes
        for words in _words(values):
            mixed = _mix(mixed, words)
    if not values.null_count:
        return mixed
    is_null = pc.is_null(values).to_numpy(zero_copy_only=False)
    return np.where(is_null, _mix(hashes, np.full(1, _NULL)), mixed)


def _mix(hashes: Words, words: Words) -> Words:
    mixed = (hashes ^ words) * _FACTOR
    return mixed ^ (mixed >> _SHIFT)


def _is_text(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


def _words(values: pa.Array) -> Iterator[Words]:
    """Yield the 64-bit words of values of a fixed size."""
    kind = values.type
    if pa.types.is_decimal(kind):
        wide = values.cast(pa.decimal128(38, kind.scale))
        both = np.frombuffer(wide.buffers()[1], np.uint64).reshape(-1, 2)[wide.offset : wide.offset + len(wide)]
        yield from (both[:, 0], both[:, 1])
    elif pa.types.is_floating(kind):
        numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # one zero
        yield np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    elif pa.types.is_boolean(kind):
        yield values.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64)
    elif pa.types.is_null(kind):
        yield np.zeros(len(values), np.uint64)
    else:
        whole = values if pa.types.is_integer(kind) else values.view(pa.int32() if kind.bit_width == 32 else pa.int64())  # noqa: PLR2004 - bits
        yield whole.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)


def _with_texts(hashes: Words, values: pa.Array) -> Words:
    """Return the hashes after texts were mixed into them: their lengths, then eight bytes of each at a time."""
    wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    _, ends, data = values.buffers()
    offsets = np.frombuffer(ends, np.int64 if wide else np.int32)[values.offset : values.offset + len(values) + 1]
    if not len(values):
        return hashes
    first, last = int(offsets[0]), int(offsets[-1])
    held = np.zeros(last - first + _WORD, np.uint8)
    if last > first:
        held[: last - first] = np.frombuffer(data, np.uint8, last - first, first)
    at = np.ndarray((last - first + 1,), "<u8", held, strides=(1,))  # the eight bytes from every place on
    starts = offsets[:-1].astype(np.int64) - first
    lengths = np.diff(offsets).astype(np.int64)
    mixed = _mix(hashes, lengths.view(np.uint64))
    rows = np.flatnonzero(lengths)
    done = 0
    while len(rows):
        left = lengths[rows] - done
        cut = np.uint64(8) * np.clip(_WORD - left, 0, _WORD - 1).astype(np.uint64)
        mixed[rows] = _mix(mixed[rows], at[starts[rows] + done] << cut)
        done += _WORD
        rows = rows[left > _WORD]
    return mixed
