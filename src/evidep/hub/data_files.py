"""Would the audit's files be loaded as data? `datasets` looks for data files by itself where a card names none."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

_FRONT_MATTER: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?---\r?\n(.*?)\r?\n---[ \t]*(\r?\n|\Z)", re.DOTALL)
MOST_FILES: Final = 2000
"""Files of the repository that are looked at. Data that names its splits is recognised from the first few."""


def would_be_loaded(readme: bytes | None, present: Iterable[str], added: Iterable[str]) -> bool:
    """Whether loading the dataset would pick up any of the added files as data.

    Args:
        readme: The dataset's card, None where there is none.
        present: Paths of the files in the repository.
        added: Paths of the files to be added.
    """
    if _names_its_files(readme):
        return False
    ours = set(added)
    theirs = sorted(path for path in present if path not in ours)[:MOST_FILES]
    with tempfile.TemporaryDirectory(prefix="evidep-hub-") as name:
        folder = Path(name)
        for path in (*theirs, *ours):
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        return bool(_found_by_datasets(folder) & ours)


def _found_by_datasets(folder: Path) -> set[str]:
    from datasets.data_files import DataFilesDict, get_data_patterns

    try:
        patterns = get_data_patterns(str(folder))
        found = DataFilesDict.from_patterns(patterns, base_path=str(folder))
    except (FileNotFoundError, ValueError):
        return set()  # no data files at all: nothing that could be mistaken
    return {Path(file).relative_to(folder).as_posix() for files in found.values() for file in files}


def _names_its_files(readme: bytes | None) -> bool:
    """Whether every configuration in the card says which files, or which folder, hold its data."""
    configs = front_matter(readme).get("configs")
    if not isinstance(configs, list) or not configs:
        return False
    return all(isinstance(config, dict) and (config.get("data_files") or config.get("data_dir")) for config in configs)


def front_matter(readme: bytes | None) -> dict[str, Any]:
    """The YAML at the head of a card; empty where there is none or it cannot be read."""
    import yaml

    found = _FRONT_MATTER.match(readme or b"")
    if found is None:
        return {}
    try:
        values = yaml.safe_load(found[1])
    except (yaml.YAMLError, UnicodeDecodeError):
        return {}
    return values if isinstance(values, dict) else {}
