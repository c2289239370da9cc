"""What a saved reader or a finished checkpoint says of itself: its labels, and evidep's notes beside the weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from evidep.errors import ReaderError
from evidep.readers.weights import first_line
from evidep.types import IntArray

METADATA: Final = "evidep_reader.json"


def match_labels(
    id2label: Mapping[int, str], label_names: Sequence[str], label_map: Mapping[str, str], model: str
) -> IntArray:
    """For each of the table's labels, the checkpoint's output of that name (case, spaces and dashes ignored).

    Raises:
        ReaderError: The names do not match one to one.
    """
    offered = {_plain(label_map.get(name, name)): int(at) for at, name in id2label.items()}
    wanted = [_plain(name) for name in label_names]
    if len(offered) != len(id2label) or sorted(offered) != sorted(wanted):
        raise ReaderError(
            f"labels of the checkpoint {model!r} ({', '.join(id2label.values())}) do not match the data's "
            f"({', '.join(label_names)}); give label_map={{checkpoint label: data label}} or new_head=True"
        )
    return np.array([offered[name] for name in wanted], dtype=np.int64)


def _plain(label: str) -> str:
    return "".join(str(label).casefold().replace("_", " ").replace("-", " ").split())


def read_metadata(folder: Path) -> dict[str, Any]:
    """The notes that `save` wrote beside the weights.

    Raises:
        ReaderError: The folder holds none, or they are damaged.
    """
    try:
        values: dict[str, Any] = json.loads((folder / METADATA).read_text(encoding="utf-8"))
        missing = [
            key for key in ("settings", "recipe", "label_names", "columns", "report", "key") if key not in values
        ]
        if missing:
            raise ValueError(f"{METADATA} lacks {missing[0]}")
    except (OSError, ValueError) as error:
        raise ReaderError(
            f"{folder} is no saved reader ({first_line(error)}); give a folder that save() wrote"
        ) from error
    return values
