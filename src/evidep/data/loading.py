"""From whatever the user names (Hub id, folder, file, data in memory) to the splits of an audit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evidep.data.cells import scalar_texts
from evidep.data.files import is_data_file, read_file
from evidep.data.labels import has_labels
from evidep.data.roles import check_columns, infer_roles, inferred, suggestion
from evidep.data.sources import Source, as_source
from evidep.data.table import AuditData, build_audit_data
from evidep.errors import DataError
from evidep.types import ColumnRoles

Splits = Mapping[str | None, Source]
NO_TRAIN: Final = "none"
"""As `train_split`: use no train split even where the data has one."""

_HUB_ID: Final = re.compile(r"[\w.-]+(/[\w.-]+)?")
_SPLIT_NAME: Final = re.compile(
    r"(train|test|valid|val|validation|dev|development|eval|evaluation)(ing)?([\W_\d].*)?", re.I
)
_PREFERRED: Final = ("test", "validation", "valid", "val", "dev", "eval")


def load_audit_data(
    data: Any,
    *,
    train: Any | None = None,
    config: str | None = None,
    split: str | None = None,
    train_split: str | None = None,
    revision: str | None = None,
    roles: ColumnRoles | Mapping[str, Any] | None = None,
) -> AuditData:
    """Load, validate and describe the data of an audit.

    `data` and `train` may each be a `datasets.Dataset` or `DatasetDict`, a Hub id, a folder written by
    `save_to_disk`, a csv, tsv, json, jsonl or parquet file (the text kinds also with .gz), a DataFrame, an Arrow
    table or a list of dicts. Rows without splits of their own are cut by a column named "split", where they have one.

    Args:
        data: The benchmark.
        train: Other data to fit readers on.
        config: Configuration of a Hub data set. It and `revision` are for `data`; `train` uses them if it is the same.
        split: Evaluation split. By default test, else validation, else any that is not for training; a split without
            labels is passed over.
        train_split: Split of `train` (or of `data`) to fit readers on. By default the train split, where there is one
            that is not the evaluation; "none" to fit out-of-fold on the evaluation alone.
        revision: Commit, tag or branch of a Hub data set.
        roles: Which column plays which part; what is not given is inferred from the column names.

    Returns:
        The tables of an audit. What was chosen on the user's behalf is told in `report.notes`.

    Raises:
        DataError: If the data cannot be found, read or audited as it is; the message says what to change.
    """
    wanted = [name for name in (split, train_split) if name is not None]
    splits = open_splits(data, config=config, revision=revision, wanted=wanted)
    if split is not None:
        _check_name(split, splits, "split")
    first = next(iter(splits.values())) if split is None else splits[split]
    found, notes = _roles(first, roles)
    if left_out := _unassigned(splits):
        notes.append(f"{left_out} rows without a value in the column 'split' were left out.")
    name = _evaluation(splits, split, found, notes)
    if train is None:
        fit = _train_within(splits, name, train_split, notes)
    else:
        same = isinstance(train, str | Path) and isinstance(data, str | Path) and str(train) == str(data)
        apart = open_splits(
            train,
            config=config if same else None,
            revision=revision if same else None,
            wanted=[] if train_split is None else [train_split],
        )
        fit = _train_apart(apart, train_split, notes)
        if same and fit.name == name:
            raise DataError(_same_rows("train", train, name))
    return build_audit_data(splits[name], fit, found, notes=notes)


def open_splits(
    data: Any, *, config: str | None = None, revision: str | None = None, wanted: Sequence[str] = ()
) -> Splits:
    """The splits of the data by name; the one key None where it has none.

    Rows that a column "split" leaves without a name belong to no split.

    Args:
        data: As for `load_audit_data`.
        config: Configuration of a Hub data set.
        revision: Commit, tag or branch of a Hub data set.
        wanted: Split names that were asked for: a column "split" that has one of them counts as naming splits even
            where its values are no usual split names.

    Raises:
        DataError: If the data cannot be found or read.
    """
    if isinstance(data, str | Path):
        data = _from_name(data, config, revision)
    elif config is not None or revision is not None:
        raise DataError("config and revision belong to a Hub data set; leave them out for files and data in memory")
    if isinstance(data, Mapping):
        if not data:
            raise DataError("the data has no splits")
        return {str(name): as_source(part, str(name)) for name, part in data.items()}
    source = as_source(data)
    if source.n_rows == 0:
        raise DataError("the data has no rows")
    return _by_column(source, wanted) or {source.name: source}


def _from_name(name: str | Path, config: str | None, revision: str | None) -> Any:
    path = Path(name).expanduser()
    local = path.exists() or isinstance(name, Path) or is_data_file(path.name) or str(name).startswith((".", "/", "~"))
    if local and (config is not None or revision is not None):
        raise DataError(f"config and revision belong to a Hub data set, and {name} is a file or folder; leave them out")
    if path.is_dir():
        return _from_folder(path)
    if local:
        return read_file(path)
    if not _HUB_ID.fullmatch(str(name)):
        raise DataError(f"{name!r} is neither a file or folder here nor a Hub id such as stanfordnlp/snli")
    return _from_hub(str(name), config, revision)


def _from_folder(path: Path) -> Any:
    if not ((path / "dataset_dict.json").exists() or (path / "state.json").exists()):
        raise DataError(
            f"{path}: the folder was not written by save_to_disk (it has no state.json or dataset_dict.json); name a "
            "data file in it instead"
        )
    import datasets

    try:
        return datasets.load_from_disk(str(path))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise DataError(f"{path}: broken save_to_disk folder ({_first_line(error)})") from error


def _from_hub(name: str, config: str | None, revision: str | None) -> Any:
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        return datasets.load_dataset(name, config, revision=revision)
    except (DatasetsError, OSError, ValueError, RuntimeError, pa.ArrowException) as error:
        raise DataError(
            f"the Hub data set {name!r} could not be loaded ({_first_line(error)}); check the id"
            f"{'' if config is None else f', the config {config!r}'} and the network, or give a local file"
        ) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _by_column(source: Source, wanted: Sequence[str]) -> Splits | None:
    """The splits that a column "split" names; None without such a column, or where its values are no split names."""
    if "split" not in source.columns:
        return None
    texts = [scalar_texts(cells, "split", source.where) for cells in source.chunks("split")]
    values = pa.chunked_array(texts, type=pa.large_string()).dictionary_encode().combine_chunks()
    names = values.dictionary.to_pylist()
    index = np.asarray(values.indices.fill_null(-1))
    named = [name for name in names if name.strip()]
    if not named or not (set(wanted) & set(named) or all(map(_SPLIT_NAME.fullmatch, named))):
        return None
    return {name: source.part(name, index == names.index(name)) for name in named}


def _unassigned(splits: Splits) -> int:
    """Rows that the column "split" puts in no split."""
    parts = [source for source in splits.values() if source.keep is not None]
    return parts[0].n_rows - sum(len(part) for part in parts) if parts else 0


def _roles(source: Source, roles: ColumnRoles | Mapping[str, Any] | None) -> tuple[ColumnRoles, list[str]]:
    if isinstance(roles, ColumnRoles):
        check_columns(roles, source.columns)
        return roles, []
    found = infer_roles(source.columns, roles)
    note = inferred(found, roles or {})
    return found, [note] if note else []


def _is_train(name: str | None) -> bool:
    return name is not None and name.casefold().startswith("train")


def _evaluation(splits: Splits, split: str | None, roles: ColumnRoles, notes: list[str]) -> str | None:
    """The name of the split to evaluate on."""
    if split is not None:
        return split
    if len(splits) == 1:
        only = next(iter(splits))
        if _is_train(only):
            notes.append(f"Evaluated on {only!r}, the only split there is.")
        return only
    ranked = sorted(splits, key=lambda name: _rank(str(name)))
    chosen = next(
        (name for name in ranked if roles.label in splits[name].columns and has_labels(splits[name], roles.label)),
        ranked[0],
    )
    passed = ranked[: ranked.index(chosen)]
    without = f" ({', '.join(map(str, passed))} has no labels)" if passed else ""
    notes.append(f"Evaluated on the split {chosen!r}{without}; others: {_listed(splits, chosen)} (--split NAME).")
    return chosen


def _rank(name: str) -> tuple[int, int, str]:
    if _is_train(name):
        return len(_PREFERRED) + 1, 0, name
    for at, prefix in enumerate(_PREFERRED):
        if name.casefold().startswith(prefix):
            return at, len(name), name
    return len(_PREFERRED), len(name), name


def _train_within(splits: Splits, evaluation: str | None, wanted: str | None, notes: list[str]) -> Source | None:
    """The train split of the same data, or None."""
    if wanted is None:
        named = sorted((str(name) for name in splits if _is_train(name) and name != evaluation), key=len)
        if not named:
            return None
        notes.append(f"Readers are fitted on the data's split {named[0]!r} (--train-split NAME, or none).")
        return splits[named[0]]
    if wanted == NO_TRAIN and wanted not in splits:
        return None
    _check_name(wanted, splits, "train_split")
    if wanted == evaluation:
        raise DataError(_same_rows("train_split", wanted, evaluation))
    return splits[wanted]


def _same_rows(argument: str, value: Any, evaluation: str | None) -> str:
    place = "" if evaluation is None else f" ({evaluation})"
    return (
        f"{argument}={str(value)!r} names the rows of the evaluation{place}: "
        f"readers would be scored on what they learned; name another split, or train_split={NO_TRAIN!r} without train "
        "to fit out-of-fold"
    )


def _train_apart(splits: Splits, wanted: str | None, notes: list[str]) -> Source:
    """The split of separate train data."""
    if wanted is not None:
        _check_name(wanted, splits, "train_split")
        return splits[wanted]
    if len(splits) == 1:
        return next(iter(splits.values()))
    named = sorted((str(name) for name in splits if _is_train(name)), key=len)
    if not named:
        raise DataError(f"the train data has several splits ({_listed(splits)}); name one: --train-split NAME")
    notes.append(f"Readers are fitted on the split {named[0]!r} of the train data (--train-split NAME).")
    return splits[named[0]]


def _check_name(wanted: str, splits: Splits, argument: str) -> None:
    if wanted in splits:
        return
    names = [name for name in splits if name is not None]
    if not names:
        raise DataError(f"{argument}={wanted!r} was asked for, but the data has no splits and no column 'split'")
    raise DataError(
        f"{argument}={wanted!r} is none of the data's splits: {', '.join(names)}{suggestion(wanted, names)}"
    )


def _listed(splits: Splits, without: str | None = None) -> str:
    return ", ".join(str(name) for name in splits if name != without)
