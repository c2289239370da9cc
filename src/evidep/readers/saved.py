"""Saved readers: a transformers folder with evidep's notes beside the weights, written whole and checked when read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from evidep.errors import CacheError, ReaderError, SettingError
from evidep.readers.checkpoint import file_digest, publish
from evidep.readers.recipe import FitReport, TrainSettings
from evidep.readers.weights import first_line, quiet
from evidep.types import IntArray

METADATA: Final = "evidep_reader.json"
CARD: Final = "README.md"
FORMAT: Final = 2
"""Version of the notes; 1 held no digests of the files."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Which fit weights come from: fingerprints of reader and train table, and the seed."""

    reader: str
    train: str
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Notes:
    """What a saved reader says of itself.

    Attributes:
        settings: Keywords of the reader: name, max_length, precision, token_budget, licence.
        recipe: How the weights were fitted.
        base_model: What the fit began from; of a local folder its last part alone.
        base_revision: Its revision on the Hub, where one was asked for.
        contamination: What the pre-training is known to have seen, or None.
        label_names: The data's labels.
        columns: [C] the model's output of each label.
        report: How the fit went, or None.
        fitted: Which fit it was, or None where the weights were used as they came.
        key: Names the fit that a workdir's folder belongs to; None for a folder that `save` wrote.
    """

    settings: Mapping[str, Any]
    recipe: TrainSettings
    base_model: str
    base_revision: str | None
    contamination: str | None
    label_names: tuple[str, ...]
    columns: IntArray
    report: FitReport | None
    fitted: Fitted | None
    key: str | None = None


def save_target(folder: str | Path) -> Path:
    """The absolute path of a folder that a reader may be saved into: a new one, an empty one, or a saved reader.

    Raises:
        CacheError: Saving would delete files that no reader wrote, or the working directory.
    """
    target = Path(folder).expanduser().resolve()
    if Path.cwd().is_relative_to(target):
        raise CacheError(f"folder {target}: a reader replaces its folder, and this one is in use; name a folder in it")
    if target.exists() and not target.is_dir():
        raise CacheError(f"folder {target}: is a file; give a new or an empty folder")
    strangers = _strangers(target)
    if strangers:
        raise CacheError(
            f"folder {target}: holds {strangers[0]!r}, which no reader wrote and saving would delete; "
            "give a new or an empty folder"
        )
    return target


def _strangers(target: Path) -> list[str]:
    """Names in a folder that are not of a saved reader."""
    present = {entry.name for entry in target.iterdir()} if target.is_dir() else set()
    own = {METADATA, CARD}
    if METADATA in present:
        try:
            own |= {name.split("/")[0] for name in _checked(target)["digests"]}
        except (OSError, ValueError) as error:
            raise CacheError(
                f"folder {target}: {METADATA} is damaged ({first_line(error)}), so what is the reader's is not known; "
                "give another folder"
            ) from error
        return sorted(present - own)
    return sorted(present)


def save_reader(folder: str | Path, notes: Notes, model: Any, tokenizer: Any, card: str | None = None) -> None:
    """Write model, tokenizer, notes and card; a kill leaves the folder as it was or finished.

    Raises:
        CacheError: The folder cannot be written, or holds other files.
    """
    target = save_target(folder)
    partial = target.with_name(f".{target.name}-partial-{os.getpid()}")
    try:
        partial.mkdir(parents=True, exist_ok=True)
        with quiet():
            model.save_pretrained(partial)
            tokenizer.save_pretrained(partial)
        files = sorted(file for file in partial.rglob("*") if file.is_file())
        values = {
            "version": FORMAT,
            "key": notes.key,
            "settings": dict(notes.settings),
            "recipe": asdict(notes.recipe),
            "base_model": notes.base_model,
            "base_revision": notes.base_revision,
            "contamination": notes.contamination,
            "label_names": list(notes.label_names),
            "columns": notes.columns.tolist(),
            "report": None if notes.report is None else notes.report.as_dict(),
            "fitted": None if notes.fitted is None else asdict(notes.fitted),
            "digests": {file.relative_to(partial).as_posix(): file_digest(file) for file in files},
        }
        (partial / METADATA).write_text(json.dumps(values, indent=1), encoding="utf-8")
        if card is not None:
            (partial / CARD).write_text(card, encoding="utf-8")
        publish(partial, target)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise CacheError(f"reader folder {target}: cannot be written ({first_line(error)})") from error


def read_notes(folder: str | Path, *, verify: bool = True) -> Notes:
    """The notes beside saved weights; `verify` also checks that every file still has the content that was written.

    Raises:
        ReaderError: The folder holds none, or notes or files are damaged.
    """
    place = Path(folder)
    try:
        values = _checked(place)
        for name, digest in values["digests"].items():
            if verify and file_digest(place / name) != digest:
                raise ValueError(f"{name} does not have the content that was written")
        return Notes(
            settings=values["settings"],
            recipe=TrainSettings.of(values["recipe"]),
            base_model=values["base_model"],
            base_revision=values["base_revision"],
            contamination=values["contamination"],
            label_names=tuple(values["label_names"]),
            columns=np.array(values["columns"], dtype=np.int64),
            report=None if values["report"] is None else FitReport.from_dict(values["report"]),
            fitted=None if values["fitted"] is None else Fitted(**values["fitted"]),
            key=values["key"],
        )
    except (OSError, ValueError, SettingError) as error:
        raise ReaderError(
            f"{folder} is no saved reader, or a damaged one ({first_line(error)}); give a folder that save() wrote, or "
            "delete it to fit again"
        ) from error


def _checked(folder: Path) -> dict[str, Any]:
    """The notes as JSON values. Raises ValueError where they are not what `save_reader` writes."""
    import jsonschema

    values: Any = json.loads((folder / METADATA).read_text(encoding="utf-8"))
    version = values.get("version") if isinstance(values, dict) else None
    if isinstance(version, int) and version != FORMAT:
        raise ValueError(f"{METADATA} has version {version}, this release of evidep reads {FORMAT}")
    errors = sorted(jsonschema.Draft202012Validator(_SCHEMA).iter_errors(values), key=lambda e: list(map(str, e.path)))
    if errors:
        where = "/".join(str(part) for part in errors[0].absolute_path)
        raise ValueError(f"{METADATA}{where and ' at '}{where}: {errors[0].message[:100]}")
    if sorted(values["columns"]) != list(range(len(values["label_names"]))):
        raise ValueError(f"{METADATA} at columns: expected each output once, got {values['columns']}")
    found: dict[str, Any] = values
    return found


def _object(properties: Mapping[str, Any], *, null: bool = False) -> dict[str, Any]:
    """Schema of an object with exactly these members."""
    kind = ["object", "null"] if null else "object"
    return {"type": kind, "properties": properties, "required": list(properties), "additionalProperties": False}


_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_NUMBER: Final = {"type": "number"}
_SCHEMA: Final = _object(
    {
        "version": {"const": FORMAT},
        "key": {"type": ["string", "null"]},
        "settings": _object(
            {
                "name": _TEXT,
                "max_length": {"type": ["integer", "null"]},
                "precision": _TEXT,
                "token_budget": {"type": ["integer", "null"]},
                "licence": {"type": ["string", "null"]},
            }
        ),
        "recipe": {"type": "object"},
        "base_model": _TEXT,
        "base_revision": {"type": ["string", "null"]},
        "contamination": {"type": ["string", "null"]},
        "label_names": {"type": "array", "items": _TEXT, "minItems": 1, "uniqueItems": True},
        "columns": {"type": "array", "items": _COUNT},
        "report": _object(
            {
                "items": _COUNT,
                "held_out": _COUNT,
                "steps": _COUNT,
                "best_step": _COUNT,
                "evaluations": {
                    "type": "array",
                    "items": _object({"step": _COUNT, "loss": _NUMBER, "accuracy": _NUMBER, "train_loss": _NUMBER}),
                },
                "held_out_majority": {"type": ["number", "null"]},
                "collapsed": {"type": "boolean"},
                "precision": _TEXT,
                "world_size": _COUNT,
                "threads": _COUNT,
                "micro_batch": _COUNT,
                "seconds": _NUMBER,
                "note": {"type": ["string", "null"]},
            },
            null=True,
        ),
        "fitted": _object({"reader": _TEXT, "train": _TEXT, "seed": _COUNT}, null=True),
        "digests": {"type": "object", "additionalProperties": _TEXT, "required": ["config.json"]},
    }
)


def public_name(model: str) -> str:
    """A model's name without the path of a local folder, which says more of a machine than of the model."""
    path = Path(model).expanduser()
    local = path.is_absolute() or model.startswith(".") or model.count("/") > 1 or path.exists()
    return path.resolve().name if local else model


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
