"""What makes two texts the same, and which items hang together through shared texts."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from evidep.data.sources import CHUNK
from evidep.types import NULL, BoolArray, IntArray, StringColumn

_DIGEST: Final = 16
"""Bytes of a text's digest: at 128 bits, equal digests mean equal texts for any data that fits on a machine."""


def normalise(text: str) -> str:
    """The text in the form in which two texts count as equal: NFKC, casefolded, runs of whitespace one space."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


@dataclass(frozen=True, slots=True, eq=False)
class EncodedColumn:
    """A column with each distinct text once, and a key per distinct text for equality as normalised text.

    Attributes:
        column: The column; its texts are in order of first appearance.
        keys: [distinct texts] digests of the normalised texts, 16 bytes each; empty where none were asked for.
    """

    column: StringColumn
    keys: bytes


def encode(pieces: Callable[[], Iterable[pa.LargeStringArray]], *, keyed: bool = False) -> EncodedColumn:
    """Gather the pieces of a column into one `StringColumn`.

    The pieces are read twice: once for the digests, by which equal texts are found, and once to copy each distinct
    text into its final place. So no text is held twice, as Arrow's dictionary_encode of a whole column does.

    Args:
        pieces: Gives the column in order, null where an item has no text; the same at every call.
        keyed: Whether to compute the keys of normalised texts.
    """
    digests, lengths, places = bytearray(), bytearray(), bytearray()
    found = 0
    for piece in pieces():
        coded = piece.dictionary_encode()
        digests += b"".join(map(_digest, coded.dictionary.to_pylist()))
        lengths += _bytes(np.asarray(pc.binary_length(coded.dictionary)))
        place = coded.indices.fill_null(NULL).to_numpy(zero_copy_only=False).astype(np.int64)
        places += _bytes(np.where(place < 0, NULL, place + found))
        found += len(coded.dictionary)
    code = _dense(digests)
    index = lookup(code, np.frombuffer(places, dtype=np.int64))
    # Codes count up in order of first appearance, so a text is new where its code exceeds all before it.
    new = np.diff(np.maximum.accumulate(code), prepend=NULL) > 0
    offsets = np.cumsum(np.append(0, np.frombuffer(lengths, dtype=np.int64)[new]), dtype=np.int64)
    del digests, lengths, places, code
    data = pa.allocate_buffer(int(offsets[-1]))
    keys = _copy_new(pieces(), new, memoryview(data).cast("B"), keyed)
    texts = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), data)
    return EncodedColumn(StringColumn(texts, index), keys)


def all_distinct(texts: pa.LargeStringArray) -> bool:
    """Whether no two of the texts (none of them null) are equal."""
    digests = bytearray()
    for start in range(0, len(texts), CHUNK):
        digests += b"".join(map(_digest, texts.slice(start, CHUNK).to_pylist()))
    return int(_dense(digests).max(initial=NULL)) + 1 == len(texts)


def _copy_new(pieces: Iterable[pa.LargeStringArray], new: BoolArray, data: memoryview, keyed: bool) -> bytes:
    """Write the new texts of each piece into `data`, one after the other; returns their keys."""
    keys = bytearray()
    start = at = 0
    for piece in pieces:
        distinct = piece.dictionary_encode().dictionary
        fresh = distinct.filter(pa.array(new[start : start + len(distinct)]))
        start += len(distinct)
        if len(fresh):
            raw = _raw(fresh)[1]
            data[at : at + len(raw)] = raw
            at += len(raw)
            if keyed:
                keys += b"".join(_digest(normalise(text)) for text in fresh.to_pylist())
    return bytes(keys)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST).digest()


def _dense(digests: bytes | bytearray) -> IntArray:
    """[n] codes of equal digests, counting up in order of first appearance."""
    low, high = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2).T
    order = np.lexsort((low, high))  # stable: equal digests stay in order, the first to appear comes first
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)
    first = np.empty_like(order)
    first[order] = order[starts][np.cumsum(starts) - 1]
    return renumbered(first)


def _raw(texts: pa.LargeStringArray) -> tuple[IntArray, memoryview]:
    """Start of each text (and the end of the last) and the bytes that these offsets, less the first, point into."""
    _, offsets_buffer, data = texts.buffers()
    if not len(texts) or offsets_buffer is None:
        return np.zeros(1, dtype=np.int64), memoryview(b"")
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return offsets - offsets[0], memoryview(data or b"").cast("B")[int(offsets[0]) : int(offsets[-1])]


def codes(*columns: EncodedColumn) -> list[IntArray]:
    """For each keyed column, [n] integers equal exactly where normalised texts are equal, within and across columns.

    Codes count up in order of first appearance; items without a text have NULL.
    """
    flat = _dense(b"".join(column.keys for column in columns))
    ends = np.cumsum([len(column.keys) // _DIGEST for column in columns])
    return [lookup(part, column.column.index) for part, column in zip(np.split(flat, ends[:-1]), columns, strict=True)]


def renumbered(codes: IntArray) -> IntArray:
    """Codes >= 0 without the gaps, in the same order; NULL stays NULL."""
    used = np.zeros(int(codes.max(initial=NULL)) + 2, dtype=np.int64)
    used[codes] = 1
    used[-1] = 0
    return lookup((np.cumsum(used) - 1)[:-1], codes)


def lookup(values: IntArray, index: IntArray) -> IntArray:
    """values[index], with NULL where the index is NULL."""
    return np.append(values, NULL)[index]


def connected(n: int, *links: IntArray) -> IntArray:
    """[n] number of each item's connected component; two items are linked where they share a code of any link.

    Args:
        n: Number of items.
        links: [n] codes each, NULL for an item that this link ties to nothing.

    Returns:
        Components counted from 0 in order of their first item.
    """
    items, nodes, size = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)], n
    for link in links:
        shared = np.append(np.bincount(link[link >= 0]) > 1, False)  # NULL picks the last
        tied = np.flatnonzero(shared[link])
        items.append(tied)
        nodes.append(renumbered(link[tied]) + size)
        size += int(shared.sum())
    rows, columns = np.concatenate(items), np.concatenate(nodes)
    narrow = np.int32 if size <= np.iinfo(np.int32).max else np.int64
    graph = coo_array(
        (np.ones(len(rows), dtype=np.int8), (rows.astype(narrow), columns.astype(narrow))), shape=(size, size)
    )
    _, component = connected_components(graph, directed=False)
    return np.asarray(component[:n], dtype=np.int64)


def fingerprint(
    columns: Mapping[str, StringColumn],
    numbers: Mapping[str, NDArray[np.integer[Any]]],
    names: Mapping[str, tuple[str, ...]],
) -> str:
    """Hex SHA-256 of the content. Equal on every platform; how the rows were stored or cut in chunks has no part in it.

    Args:
        columns: Columns whose texts are in order of first appearance (as `encode` gives them).
        numbers: Integer arrays.
        names: Lists of strings.
    """
    digest = hashlib.sha256(b"evidep-table-1")
    for key, column in columns.items():
        _add(digest, f"column {key}", column.texts)
        digest.update(_bytes(column.index))
    for key, value in numbers.items():
        digest.update(f"\0numbers {key} {len(value)}\0".encode())
        digest.update(_bytes(value))
    for key, strings in names.items():
        _add(digest, f"names {key}", pa.array(list(strings), type=pa.large_string()))
    return digest.hexdigest()


def _bytes(numbers: NDArray[np.integer[Any]]) -> memoryview:
    return np.ascontiguousarray(numbers, dtype="<i8").data.cast("B") if len(numbers) else memoryview(b"")


def _add(digest: hashlib._Hash, name: str, texts: pa.LargeStringArray) -> None:
    digest.update(f"\0{name} {len(texts)}\0".encode())
    offsets, data = _raw(texts)
    digest.update(_bytes(offsets))
    digest.update(data)
