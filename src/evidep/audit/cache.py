"""Finished work, kept by content: one file per cell, named by the hash of all that decides its values."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidep.errors import CacheError

Arrays = dict[str, NDArray[Any]]


def cell_key(**parts: Any) -> str:
    """Hex key of a cell. Every value that can change the cell's numbers must be among `parts` (JSON-like values)."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class CellStore:
    """Arrays by key under a folder. Without a folder nothing is kept: an audit asks for every cell once.

    A cell is written to a temporary file and renamed, so a reader never meets half a cell, whenever the writer was
    killed. Two processes that compute the same cell write the same bytes; the last rename wins.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root
        self.computed = 0
        self.reused = 0
        if root is not None:
            try:
                root.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=root):
                    pass
            except OSError as error:
                raise CacheError(f"cannot write to {root}: {error.strerror}; choose another --out folder") from error

    def get(self, key: str) -> Arrays | None:
        """The arrays of a finished cell, or None. Raises CacheError where a file is there but cannot be read."""
        found = None if self.root is None else self._read(self._path(key))
        if found is not None:
            self.reused += 1
        return found

    def put(self, key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep a finished cell. Raises CacheError on a full disk or a folder without the right to write."""
        self.computed += 1
        if self.root is None:
            return
        path = self._path(key)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise CacheError(
                f"cannot write the finished cell {path}: {error.strerror}; cells written before are kept, "
                "free some space or fix the rights and run the same command again"
            ) from error

    def _path(self, key: str) -> Path:
        assert self.root is not None
        return self.root / key[:2] / f"{key}.npz"

    @staticmethod
    def _read(path: Path) -> Arrays | None:
        try:
            with np.load(path, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise CacheError(
                f"cannot read the finished cell {path} ({error}); delete that file to recompute it"
            ) from error


def smallest_integers(values: NDArray[Any]) -> NDArray[Any]:
    """The same integers in the smallest signed type that holds them (predictions of a few classes fit a byte)."""
    if len(values) == 0:
        return values.astype(np.int8)
    low, high = int(values.min()), int(values.max())
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind)
    return values
