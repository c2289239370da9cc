"""Equality of texts, columns with each text once, connected items, fingerprints."""

import hashlib
import unicodedata
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidep.data.identity import all_distinct, codes, connected, encode, fingerprint, normalise, renumbered
from evidep.types import NULL, StringColumn

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
cells = st.lists(st.one_of(st.none(), texts, st.sampled_from(["", "a", "A ", "ﬁ", "fi", "ß", "SS"])), max_size=30)


def pieces(values, cuts=()):
    bounds = [0, *sorted(cut % (len(values) + 1) for cut in cuts), len(values)]
    parts = [pa.array(values[start:end], type=pa.large_string()) for start, end in pairwise(bounds)]
    return lambda: iter(parts)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("A  b\t c\n", "a b c"),
        ("ﬁne", "FINE"),  # NFKC
        ("Straße", "STRASSE"),  # casefold, which lower() is not
        ("a\u00a0b", "a b"),
        ("a\u2003\u3000b", "a b"),
        ("Ａ１", "a1"),
        ("e\u0301", "\u00e9"),
        ("a\x1cb", "a b"),
    ],
)
def test_equal_as_normalised_text(left, right):
    assert normalise(left) == normalise(right)


def test_different_as_normalised_text():
    assert len({normalise(text) for text in ("a b", "ab", "a-b", "á b", "", "سلام", "سلامٌ")}) == 7


@given(texts)
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(st.characters(max_codepoint=127), max_size=20))
def test_the_ascii_path_agrees_with_the_general_one(text):
    assert normalise(text) == " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@given(cells, st.lists(st.integers(0, 30), max_size=3))
def test_encode_is_from_list(values, cuts):
    expected = StringColumn.from_list(values)
    found = encode(pieces(values, cuts), keyed=True)
    assert found.column.texts.to_pylist() == expected.texts.to_pylist()
    np.testing.assert_array_equal(found.column.index, expected.index)
    assert len(found.keys) == 16 * len(expected.texts)


@given(cells, cells)
def test_codes_are_equal_exactly_where_normalised_texts_are(left, right):
    coded = codes(encode(pieces(left), keyed=True), encode(pieces(right), keyed=True))
    flat = np.concatenate(coded)
    both = [None if value is None else normalise(value) for value in left + right]
    for i, mine in enumerate(both):
        assert (flat[i] == NULL) == (mine is None)
        for j in range(i):
            assert (flat[i] == flat[j]) == (mine == both[j])
    # In order of first appearance, without gaps.
    seen = [code for code in dict.fromkeys(flat.tolist()) if code != NULL]
    assert seen == list(range(len(seen)))


@given(cells)
def test_all_distinct(values):
    present = [value for value in values if value is not None]
    assert all_distinct(pa.array(present, type=pa.large_string())) == (len(set(present)) == len(present))


def test_a_long_column_over_many_pieces():
    rng = np.random.default_rng(0)
    values = [None if at < 50 else f"text {at}" for at in rng.integers(0, 3000, 20_000)]
    found = encode(pieces(values, rng.integers(0, 20_000, 12).tolist()))
    assert found.column.to_list() == values


links = st.integers(0, 12).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.lists(st.integers(-1, 6), min_size=n, max_size=n).map(np.array), max_size=3)
    )
)


@given(links)
def test_connected_agrees_with_the_closure(case):
    n, given_links = case
    given_links = [link.astype(np.int64) for link in given_links]
    joined = np.eye(n, dtype=bool)
    for link in given_links:
        joined |= (link[:, None] == link[None, :]) & (link[:, None] >= 0)
    for _ in range(n):
        joined = (joined.astype(int) @ joined.astype(int)) > 0
    smallest = [int(np.flatnonzero(row)[0]) for row in joined]
    expected = [list(dict.fromkeys(smallest)).index(first) for first in smallest]
    assert connected(n, *given_links).tolist() == expected


def test_connected_by_hand():
    # 0-1 share a query, 1-3 an evidence; 2 has neither; 4 and 5 are NULL in both and are not tied together.
    query = np.array([0, 0, 1, 2, NULL, NULL])
    evidence = np.array([0, 1, 2, 1, NULL, NULL])
    assert connected(6, query, evidence).tolist() == [0, 0, 1, 0, 2, 3]
    assert connected(0).tolist() == []
    assert connected(2).tolist() == [0, 1]


def test_renumbered():
    assert renumbered(np.array([7, NULL, 3, 7])).tolist() == [1, NULL, 0, 1]
    assert renumbered(np.array([], dtype=np.int64)).tolist() == []


def test_fingerprint_is_the_documented_digest():
    """Held fixed over platforms and releases: a change here makes every cache and packet look new."""
    column = StringColumn.from_list(["a", None, "é", "a"])
    expected = hashlib.sha256(
        b"evidep-table-1"
        + b"\0column q 2\0"
        + b"".join(value.to_bytes(8, "little") for value in (0, 1, 3))  # "a" is one byte, "é" two
        + "aé".encode()
        + b"".join(value.to_bytes(8, "little", signed=True) for value in (0, -1, 1, 0))
        + b"\0numbers y 2\0"
        + b"".join(value.to_bytes(8, "little") for value in (5, 6))
        + b"\0names c 1\0"
        + b"".join(value.to_bytes(8, "little") for value in (0, 2))
        + b"no"
    ).hexdigest()
    assert fingerprint({"q": column}, {"y": np.array([5, 6], dtype=np.int8)}, {"c": ("no",)}) == expected


def test_fingerprint_of_a_slice_is_that_of_its_content():
    whole = pa.array(["x", "ab", "c", ""], type=pa.large_string())
    index = np.array([0, 1])
    sliced = StringColumn(whole.slice(1, 2), index)
    assert fingerprint({"q": sliced}, {}, {}) == fingerprint({"q": StringColumn.from_list(["ab", "c"])}, {}, {})
    assert fingerprint({"q": sliced}, {}, {}) != fingerprint({"q": StringColumn.from_list(["a", "bc"])}, {}, {})
