"""N-grams of texts as integers: counting them is array work, and no dictionary of n-gram strings is ever built."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evidep.types import FloatArray, IntArray, StringColumn

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana and Han: scripts that do not put spaces between words."""
_MARKS: Final = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
r"""Combining marks, which \w leaves out, and the Indic scripts, whose vowels are such marks."""
TOKEN_PATTERN: Final = rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+(?:[{_MARKS}]+[^\W{_UNSPACED}]*)*"
"""A word, or one character of a script without spaces (so that 1-2-grams of Chinese are characters and pairs)."""
_CHUNK_BYTES: Final = 1 << 19
_UNMERGED: Final = 1 << 18
_WORD_BITS: Final = 32
_WORD_MASK: Final = (1 << _WORD_BITS) - 1
_CHARACTER_BITS: Final = 21


_ASCII_WORDS: Final = bytes(
    ord(chr(code).lower()) if code < 128 and (chr(code).isalnum() or chr(code) == "_") else ord(" ")
    for code in range(256)
)


def tokens(texts: list[str]) -> list[list[str]]:
    """The lower-cased words of each text, as `TOKEN_PATTERN` finds them (in half the time where a text is ASCII)."""
    find = re.compile(TOKEN_PATTERN).findall
    return [
        text.encode().translate(_ASCII_WORDS).decode().split() if text.isascii() else find(text.lower())
        for text in texts
    ]


class NgramCoder(Protocol):
    """Turns texts into integer codes of their n-grams."""

    def codes(self, texts: list[str], *, grow: bool) -> tuple[IntArray, IntArray]:
        """Position of the text and code of the n-gram, for every occurrence; `grow` lets new words in."""
        ...

    def keep(self, codes: IntArray) -> None:
        """Forget what no code in `codes` needs."""
        ...


class WordNgrams:
    """Lower-cased words and pairs of neighbouring words; the code of a pair is exact, not hashed."""

    def __init__(self) -> None:
        self.words: dict[str, int] = defaultdict(count(1).__next__)

    def codes(self, texts: list[str], *, grow: bool) -> tuple[IntArray, IntArray]:
        """See `NgramCoder`. A word's code is its number from 1 on, a pair's is left << 32 | right."""
        found = tokens(texts)
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        n = int(lengths.sum())
        sequence = chain.from_iterable(found)
        numbers = map(self.words.__getitem__, sequence) if grow else map(self.words.get, sequence, repeat(0))
        ids = np.fromiter(numbers, np.int64, n)
        docs = np.repeat(np.arange(len(texts)), lengths)
        left, right = ids[:-1], ids[1:]
        pair = (docs[:-1] == docs[1:]) & (left > 0) & (right > 0)
        single = ids > 0
        return (
            np.concatenate([docs[single], docs[:-1][pair]]),
            np.concatenate([ids[single], (left[pair] << _WORD_BITS) | right[pair]]),
        )

    def keep(self, codes: IntArray) -> None:
        """Forget the words that occur in none of the codes; no word can be added any more."""
        used = np.zeros(len(self.words) + 1, dtype=bool)
        used[codes & (_WORD_MASK)] = True
        used[codes >> _WORD_BITS] = True
        self.words = {word: number for word, number in self.words.items() if used[number]}


class CharacterTrigrams:
    """Lower-cased character trigrams inside words padded with one space (scikit-learn's `char_wb` with n = 3)."""

    def codes(self, texts: list[str], *, grow: bool) -> tuple[IntArray, IntArray]:
        """See `NgramCoder`. A code packs three code points of 21 bits."""
        padded = [f" {' '.join(text.lower().split())} " for text in texts]
        lengths = np.fromiter(map(len, padded), np.int64, len(padded))
        points = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
        docs = np.repeat(np.arange(len(texts)), lengths)
        inside = (docs[:-2] == docs[2:]) & (points[1:-1] != ord(" "))
        packed = (points[:-2] << 2 * _CHARACTER_BITS) | (points[1:-1] << _CHARACTER_BITS) | points[2:]
        return docs[:-2][inside], packed[inside]

    def keep(self, codes: IntArray) -> None:
        """Nothing to forget."""


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The n-grams that a field is described by.

    Attributes:
        coder: Turns texts into codes.
        codes: [F] codes of the n-grams: feature f is the n-gram codes[f].
        idf: [F] ln((1 + documents) / (1 + documents with the n-gram)) + 1, as in scikit-learn.
        stored: Number of values that the matrix of all documents stores.
    """

    coder: NgramCoder
    codes: IntArray
    idf: FloatArray
    stored: int

    def __len__(self) -> int:
        return len(self.codes)

    def counts(self, texts: list[str]) -> Any:
        """CSR matrix [len(texts), F] of how often each n-gram occurs in each text."""
        docs, codes = self.coder.codes(texts, grow=False)
        at = self._positions(codes)
        known = at >= 0
        return count_matrix(docs[known], at[known], (len(texts), len(self.codes)))

    def word_positions(self, words: list[str]) -> IntArray:
        """[len(words)] feature of each single word, -1 for words that are none."""
        assert isinstance(self.coder, WordNgrams)
        numbers = np.fromiter((self.coder.words.get(word, 0) for word in words), np.int64, len(words))
        return self._positions(numbers)

    def alphabetical(self) -> Vocabulary:
        """The same word n-grams in alphabetical order, the order of scikit-learn's features."""
        assert isinstance(self.coder, WordNgrams)
        word = {number: word for word, number in self.coder.words.items()}
        pairs = zip((self.codes >> _WORD_BITS).tolist(), (self.codes & _WORD_MASK).tolist(), strict=True)
        names = [f"{word[left]} {word[right]}" if left else word[right] for left, right in pairs]
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        return replace(self, codes=self.codes[order], idf=self.idf[order])

    def _positions(self, codes: IntArray) -> IntArray:
        at = pc.index_in(pa.array(codes), value_set=pa.array(self.codes))
        positions: IntArray = at.fill_null(-1).to_numpy().astype(np.int64)
        return positions

    def weighted(self, texts: list[str]) -> Any:
        """CSR matrix [len(texts), F] of count times idf, not normalised."""
        matrix = self.counts(texts)
        matrix.data *= self.idf[matrix.indices]
        return matrix

    def tfidf(self, texts: list[str]) -> Any:
        """CSR matrix [len(texts), F] of count times idf, each row of length 1 (0 where no n-gram is known)."""
        matrix = self.weighted(texts)
        matrix.data /= np.repeat(row_lengths(matrix), np.diff(matrix.indptr))
        return matrix


def learn_vocabulary(
    coder: NgramCoder, documents: Iterable[tuple[list[str], IntArray]], *, min_df: int, max_features: int | None = None
) -> Vocabulary:
    """The n-grams that occur in at least `min_df` documents.

    Args:
        coder: A fresh coder; it is trained in place.
        documents: Chunks of (texts, how many documents have each text).
        min_df: Smallest number of documents.
        max_features: Keep this many of the most widespread ones (ties: the smaller code), None for all.
    """
    total = 0
    parts: list[tuple[IntArray, IntArray]] = []
    for texts, times in documents:
        total += int(times.sum())
        docs, found = coder.codes(texts, grow=True)
        new, occurs = occurrences(docs, found, len(texts))
        weights = np.repeat(times, np.diff(occurs.indptr))
        parts.append((new, np.bincount(occurs.indices, weights=weights, minlength=len(new)).astype(np.int64)))
        if sum(len(codes) for codes, _ in parts) > _UNMERGED:
            parts = [_merged(parts)]
    codes, frequency = _merged(parts)
    order = np.argsort(codes)
    codes, frequency = codes[order], frequency[order]
    kept = np.flatnonzero(frequency >= min_df)
    if max_features is not None and len(kept) > max_features:
        kept = np.sort(kept[np.argsort(-frequency[kept], kind="stable")[:max_features]])
    codes, frequency = codes[kept], frequency[kept]
    coder.keep(codes)
    return Vocabulary(coder, codes, np.log((1 + total) / (1 + frequency)) + 1.0, int(frequency.sum()))


def _merged(parts: list[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """Distinct codes of all parts, each with the sum of its counts."""
    codes, at = _distinct(np.concatenate([np.empty(0, dtype=np.int64), *(codes for codes, _ in parts)]))
    counts = np.concatenate([np.empty(0, dtype=np.int64), *(counts for _, counts in parts)])
    return codes, np.bincount(at, weights=counts, minlength=len(codes)).astype(np.int64)


def occurrences(docs: IntArray, codes: IntArray, n_texts: int) -> tuple[IntArray, Any]:
    """The distinct codes, in order of appearance, and a CSR matrix [n_texts, distinct] of how often each occurs."""
    distinct, at = _distinct(codes)
    return distinct, count_matrix(docs, at, (n_texts, len(distinct)))


def _distinct(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct codes in order of appearance, and the position of each code among them (hashing: no sort)."""
    encoded = pa.array(codes).dictionary_encode()
    return encoded.dictionary.to_numpy(), encoded.indices.to_numpy()


def count_matrix(rows: IntArray, columns: npt.NDArray[np.integer[Any]], shape: tuple[int, int]) -> Any:
    """CSR matrix of how often each (row, column) occurs; 32-bit indices."""
    from scipy import sparse

    ones = np.ones(len(rows))
    matrix = sparse.coo_array((ones, (rows.astype(np.int32), columns.astype(np.int32))), shape=shape).tocsr()
    matrix.sort_indices()
    return matrix


def chunk_size(column: StringColumn) -> int:
    """How many texts make about half a megabyte."""
    mean = max(1.0, column.texts.nbytes / max(1, len(column.texts)))
    return int(np.clip(_CHUNK_BYTES / mean, 1, 8192))


def used_chunks(column: StringColumn) -> Iterator[tuple[IntArray, list[str]]]:
    """Position and text of the distinct texts that some item has, in order, half a megabyte at a time."""
    used = np.unique(column.index[column.index >= 0])
    size = chunk_size(column)
    for start in range(0, len(used), size):
        at = used[start : start + size]
        yield at, column.texts.take(pa.array(at)).to_pylist()


def counted_chunks(column: StringColumn) -> Iterator[tuple[list[str], IntArray]]:
    """The texts of `used_chunks`, with the number of items that have each."""
    times = np.bincount(column.index[column.index >= 0], minlength=len(column.texts))
    for at, texts in used_chunks(column):
        yield texts, times[at]


def row_chunks(queries: StringColumn, evidence: StringColumn) -> Iterator[tuple[list[str], list[str]]]:
    """Queries and evidence of all items, in order, half a megabyte of either at a time; "" where there is no text."""
    size = min(chunk_size(queries), chunk_size(evidence))
    for start in range(0, len(queries), size):
        rows = np.arange(start, min(start + size, len(queries)))
        query, text = (column.take(rows).compact().to_list() for column in (queries, evidence))
        yield [value or "" for value in query], [value or "" for value in text]


def distinct_index(column: StringColumn) -> IntArray:
    """[n + 2] item to distinct text; items without a text, and EMPTY and NULL, lead to one more, the empty text."""
    absent = len(column.texts)
    return np.concatenate([np.where(column.index < 0, absent, column.index), [absent, absent]])


def row_lengths(matrix: Any) -> FloatArray:
    """[rows] Euclidean length of each row of a CSR matrix, 1 where it is 0."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squared = np.bincount(rows, weights=matrix.data**2, minlength=matrix.shape[0])
    lengths: npt.NDArray[np.float64] = np.sqrt(squared)
    lengths[lengths == 0] = 1.0
    return lengths
