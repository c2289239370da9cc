"""Checkpoints of a fine-tuning run: safetensors and JSON, written atomically, checked when read."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidep.errors import CacheError, ReaderError
from evidep.readers.weights import first_line

Tensors = Mapping[str, Any]
STATE = "state.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a killed run continues from: plain values, and named groups of tensors."""

    state: dict[str, Any]
    tensors: dict[str, dict[str, Any]]


class CheckpointFolder:
    """The latest checkpoint of one fit. A kill while writing leaves the previous one intact.

    Args:
        folder: Where checkpoints lie; made when the first one is written.
        key: Names the fit (reader, train table, seed). A checkpoint of another fit is refused.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder = folder
        self.key = key

    def save(self, step: int, state: Mapping[str, Any], tensors: Mapping[str, Tensors]) -> None:
        """Write the checkpoint of a step and then delete the older ones.

        Raises:
            CacheError: The disk is full or the folder cannot be written.
        """
        from safetensors.torch import save_file

        target = self.folder / f"step-{step:09d}"
        partial = self.folder / f".partial-{os.getpid()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            digests = {}
            for name, group in tensors.items():
                file = partial / f"{name}.safetensors"
                save_file({key: value.detach().cpu().contiguous() for key, value in group.items()}, file)
                digests[name] = file_digest(file)
            content = {"key": self.key, "step": step, "digests": digests, **state}
            (partial / STATE).write_text(json.dumps(content), encoding="utf-8")
            publish(partial, target)
            for old in self._finished():
                if old != target:
                    shutil.rmtree(old, ignore_errors=True)
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise CacheError(
                f"checkpoint {target}: cannot be written ({first_line(error)}); free space or set workdir"
            ) from error

    def load(self) -> Checkpoint | None:
        """The latest checkpoint, or None where there is none.

        Raises:
            ReaderError: Its files are damaged, or it belongs to another fit.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        finished = self._finished()
        if not finished:
            return None
        latest = finished[-1]
        try:
            state = json.loads((latest / STATE).read_text(encoding="utf-8"))
            wrong = [
                name
                for name, digest in state["digests"].items()
                if file_digest(latest / f"{name}.safetensors") != digest
            ]
            if wrong:
                raise ValueError(f"{wrong[0]}.safetensors does not have the content that was written")
            tensors = {name: load_file(latest / f"{name}.safetensors") for name in state["digests"]}
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise ReaderError(
                f"checkpoint {latest} is damaged ({first_line(error)}); delete {self.folder} to fit from the start"
            ) from error
        if state["key"] != self.key:
            raise ReaderError(
                f"checkpoint {latest} belongs to another reader, train table or seed; use another workdir or delete it"
            )
        return Checkpoint(state, tensors)

    def clear(self) -> None:
        """Delete all checkpoints: the fit is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _finished(self) -> list[Path]:
        return sorted(self.folder.glob("step-*")) if self.folder.is_dir() else []


def publish(partial: Path, target: Path) -> None:
    """Give a completely written folder its name. What has the name already is replaced: check it before."""
    if target.exists():
        old = partial.with_name(f"{partial.name}-old")
        shutil.rmtree(old, ignore_errors=True)
        target.replace(old)
        partial.replace(target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        partial.replace(target)


def file_digest(file: Path) -> str:
    """SHA-256 of a file's content."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
