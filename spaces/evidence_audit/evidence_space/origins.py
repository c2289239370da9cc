"""Where an audit's rows come from: an uploaded file, the Hub, or a planted world."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from evidence_space import limits
from evidence_space.uploads import read_upload, shown_name
from evidep.data.loading import open_splits
from evidep.data.quality import candidate_columns
from evidep.data.roles import infer_roles
from evidep.data.sources import Source, as_source
from evidep.data.synthetic import WORLDS, planted_world
from evidep.errors import DataError
from evidep.report.escape import one_line
from evidep.report.words import REGIONS
from evidep.types import ColumnRoles

FILE, HUB, WORLD = "A file of mine", "A Hub dataset", "A planted example"
ORIGINS: Final = (WORLD, FILE, HUB)
WORLD_ROWS: Final = int(os.environ.get("EVIDEP_SPACE_WORLD_ROWS", "2500"))
"""Items of a planted example: enough for a near-zero effect to be told from a small one."""
WORLD_NAMES: Final = {
    "triviaqa": "the answer stands in the evidence (paper: synthetic TriviaQA)",
    "nq": "metadata give every label away (paper: synthetic NQ)",
    "hotpotqa": "no evidence needed, metadata weak (paper: synthetic HotpotQA)",
    "question_dominant_skewed": "nearly all labels are equal (paper: reconstructed HotpotQA)",
    "matching": "the label says whether query and evidence agree",
    "evidence_only_shortcut": "the evidence's style gives the label away",
    "question_dominant": "the question word gives the label away",
    "mismatch_detector": "evidence matters only by not fitting",
    "reader_limited": "only a reader that compares both texts can tell",
    "base_rate_collapse": "nothing but a base rate",
}
_HUB_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")
_PLAIN: Final = re.compile(r"[\w.-]{1,100}")
_TRAIN_FIRST: Final = "train"


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Rows to be audited.

    Attributes:
        name: What the data is called.
        splits: Split name (None where there is one only) to its rows.
        roles: What is known of the columns' parts, for a planted world; else None.
        truth: What was planted, in one sentence, or None.
        notes: What was done while reading.
    """

    name: str
    splits: Mapping[str | None, Source]
    roles: ColumnRoles | None = None
    truth: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> Source:
        """The split that is shown: not the training split, where there is another."""
        names = [name for name in self.splits if name is None or not str(name).startswith(_TRAIN_FIRST)]
        return self.splits[(names or list(self.splits))[0]]


@dataclass(frozen=True, slots=True)
class Guess:
    """Columns and the parts they seem to play; None where the names do not tell."""

    columns: tuple[str, ...]
    query: str | None = None
    evidence: str | None = None
    label: str | None = None
    metadata: tuple[str, ...] = ()
    group: str | None = None
    message: str = ""
    candidates: tuple[str, ...] = field(default=())


def open_origin(
    kind: str,
    *,
    file: str | Path | None = None,
    world: str | None = None,
    hub_id: str = "",
    config: str = "",
    split: str = "",
    seed: int = 0,
) -> Origin:
    """Read the rows that a visitor chose.

    Raises:
        DataError: Nothing chosen, or it cannot be read within the limits.
    """
    if kind == FILE:
        source = read_upload(file)
        assert file is not None
        return Origin(shown_name(file).removesuffix(".gz").rpartition(".")[0] or "upload", open_splits(source))
    if kind == HUB:
        return hub_origin(hub_id, config, split)
    if kind != WORLD:
        raise DataError(f"choose one of {', '.join(ORIGINS)}, got {one_line(kind, 40)!r}")
    return world_origin(world, WORLD_ROWS, seed)


def world_origin(world: str | None, rows: int, seed: int) -> Origin:
    """A planted world with its truth."""
    if world not in WORLDS:
        raise DataError(f"there is no planted example {one_line(world, 40)!r}; choose from {', '.join(WORLDS)}")
    made = planted_world(world, n_train=rows, n_eval=rows, seed=seed)
    return Origin(
        f"planted {world}",
        {"train": as_source(made.train, "train"), "test": as_source(made.evaluation, "test")},
        made.roles,
        f"Planted: {WORLDS[world].summary}. Light readers should end in {_words(made.truth['region_light'])}, strong "
        f"ones in {_words(made.truth['region_strong'])}.",
    )


def _words(region: str) -> str:
    return REGIONS[region].title


def hub_origin(hub_id: str, config: str, split: str) -> Origin:
    """The first rows of the splits of a Hub dataset, read as a stream so that no more than the limit is loaded.

    Raises:
        DataError: A name that is none, a dataset that needs code of its own or cannot be reached.
    """
    hub_id, config, split = hub_id.strip(), config.strip(), split.strip()
    if not _HUB_ID.fullmatch(hub_id) or ".." in hub_id:
        raise DataError(f"expected a dataset id such as stanfordnlp/snli, got {one_line(hub_id, 80)!r}")
    for what, value in (("configuration", config), ("split", split)):
        if value and not _PLAIN.fullmatch(value):
            raise DataError(f"{one_line(value, 80)!r} cannot be the name of a {what}")
    if Path(hub_id).exists():
        raise DataError(f"{hub_id!r} cannot be used here: choose the full id, owner/name")
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        streams = datasets.load_dataset(hub_id, config or None, streaming=True)
        if split and split not in streams:
            raise DataError(f"{hub_id} has no split {split!r}; it has {', '.join(map(str, streams))}")
        chosen = [name for name in streams if not split or name == split or str(name).startswith(_TRAIN_FIRST)]
        notes, found = [], {}
        for name in chosen:
            stream = streams[name]
            rows = list(itertools.islice(stream, limits.MAX_ROWS + 1))
            if len(rows) > limits.MAX_ROWS:
                rows = rows[: limits.MAX_ROWS]
                notes.append(f"Only the first {limits.MAX_ROWS:,} rows of the split {name} were read.")
            if rows:
                found[str(name)] = datasets.Dataset.from_list(rows, features=stream.features)
    except (DatasetsError, OSError, ValueError, RuntimeError, KeyError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise DataError(
            f"the Hub dataset {hub_id!r} could not be loaded ({one_line(reason, 200)}); check the id"
            f"{f' and the configuration {config!r}' if config else ''}, or whether this Space has network access"
        ) from error
    if not found:
        raise DataError(f"{hub_id} has no rows")
    sources = {name: as_source(data, name) for name, data in found.items()}
    for source in sources.values():
        limits.check_shape(source.n_rows, source.columns, hub_id)
    return Origin(hub_id, sources, notes=tuple(notes))


def guess_roles(origin: Origin) -> Guess:
    """Which column seems to be what, and which could be metadata."""
    columns = origin.first.columns
    if origin.roles is not None:
        known = origin.roles
        return Guess(columns, known.query, known.evidence, known.label, known.metadata, known.group)
    try:
        roles = infer_roles(columns)
    except DataError as error:
        words = str(error).partition("; add --")[0]
        return Guess(columns, message=f"Choose the columns: {words}.")
    candidates, _ = candidate_columns(origin.first, roles)
    message = "Columns were guessed from their names; change them where the guess is wrong."
    if candidates:
        message += f" Could be metadata: {', '.join(one_line(name, 40) for name in candidates[:12])}."
    return Guess(columns, roles.query, roles.evidence, roles.label, message=message, candidates=tuple(candidates))


def preview(source: Source, rows: int = limits.PREVIEW_ROWS, width: int = 160) -> tuple[list[str], list[list[str]]]:
    """Column names and the first rows as short, harmless text."""
    heads = [one_line(column, 40) for column in source.columns]
    cells: list[list[Any]] = []
    for column in source.columns:
        found: list[Any] = []
        for part in source.chunks(column):
            values = part[: rows - len(found)]
            names = source.class_names.get(column)
            listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
            found += [names[v] if names and isinstance(v, int) and 0 <= v < len(names) else v for v in listed]
            if len(found) >= rows:
                break
        cells.append(["" if value is None else one_line(value, width) for value in found])
    return heads, [list(row) for row in zip(*cells, strict=True)]
