"""Cells are atomic, content-addressed, and say in one line what is wrong with a folder."""

from __future__ import annotations

import os

import numpy as np
import pytest

from evidep.audit.cache import CellStore, cell_key, smallest_integers
from evidep.errors import CacheError


def test_a_cell_comes_back_as_it_went_in(tmp_path):
    arrays = {"predictions": np.array([0, 2, 1], dtype=np.int8), "moments": np.array([0.25, 0.5])}
    CellStore(tmp_path).put("ab12", arrays)
    found = CellStore(tmp_path).get("ab12")
    assert found is not None
    assert set(found) == {"predictions", "moments"}
    assert found["predictions"].dtype == np.int8
    np.testing.assert_array_equal(found["predictions"], [0, 2, 1])


def test_nothing_but_the_finished_file_is_left(tmp_path):
    CellStore(tmp_path).put("ab12", {"x": np.arange(3)})
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["ab12.npz"]


def test_a_half_written_temporary_file_is_no_cell(tmp_path):
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / ".ab12.npz.1.tmp").write_bytes(b"half")
    assert CellStore(tmp_path).get("ab12") is None


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_an_unreadable_cell_is_named_with_the_way_out(tmp_path, content):
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "ab12.npz").write_bytes(content)
    with pytest.raises(CacheError, match=r"ab12\.npz.*delete that file to recompute it") as caught:
        CellStore(tmp_path).get("ab12")
    assert "\n" not in str(caught.value)


def test_a_cell_with_a_flipped_byte_is_refused(tmp_path):
    CellStore(tmp_path).put("ab12", {"x": np.arange(1000)})
    path = tmp_path / "ab" / "ab12.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(CacheError, match="delete that file"):
        CellStore(tmp_path).get("ab12")


def test_a_file_where_the_folder_should_be_is_one_clear_line(tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(CacheError, match="choose another --out folder"):
        CellStore(tmp_path / "out" / "cells")


def test_a_full_disk_loses_nothing_that_was_finished(tmp_path, monkeypatch):
    store = CellStore(tmp_path)
    store.put("aa11", {"x": np.arange(3)})

    def no_space(*_args, **_kwargs):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(np, "savez", no_space)
    with pytest.raises(CacheError, match=r"No space left on device.*cells written before are kept"):
        store.put("bb22", {"x": np.arange(3)})
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["aa11.npz"]
    assert store.get("aa11") is not None


def test_the_key_depends_on_every_part_and_on_nothing_else():
    base = cell_key(reader="a", seed=0, condition="global/0")
    assert base == cell_key(condition="global/0", seed=0, reader="a")
    others = {
        cell_key(reader="b", seed=0, condition="global/0"),
        cell_key(reader="a", seed=1, condition="global/0"),
        cell_key(reader="a", seed=0, condition="global/1"),
        cell_key(reader="a", seed=None, condition="global/0"),
    }
    assert len(others) == 4
    assert base not in others


def test_predictions_take_the_smallest_type_that_holds_them():
    assert smallest_integers(np.array([0, 127])).dtype == np.int8
    assert smallest_integers(np.array([0, 128])).dtype == np.int16
    assert smallest_integers(np.array([0, 1 << 20])).dtype == np.int32
    np.testing.assert_array_equal(smallest_integers(np.array([-1, 40000])), [-1, 40000])


def test_the_store_counts_what_it_computed_and_reused(tmp_path):
    store = CellStore(tmp_path)
    store.put("ab", {"x": np.arange(2)})
    store.get("ab")
    store.get("missing")
    assert (store.computed, store.reused) == (1, 1)


def test_without_a_folder_nothing_is_kept():
    store = CellStore()
    store.put("ab", {"x": np.arange(2)})
    assert store.get("ab") is None
    assert (store.computed, store.reused) == (1, 0)
