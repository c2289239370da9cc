"""Input of the evaluate modules, checked before evaluate coerces it (1.7 to 1, "0" to 0, None to a wrong answer)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evidep.errors import DataError
from evidep.types import NULL, IntArray


def check_labels(values: Any, argument: str) -> None:
    """Refuse labels that are neither whole numbers nor strings, or that mix the two.

    Raises:
        DataError: Names the argument and the first bad position.
    """
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise DataError(f"{argument}: expected a list of labels (int or str), got {type(values).__name__}")
    array = values if isinstance(values, np.ndarray) else None
    if array is not None and (array.dtype.kind in "iub" and array.ndim == 1):
        return
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    kinds = set()
    for position, value in enumerate(listed):
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, bool | int):
            kinds.add("int")
        elif isinstance(plain, str):
            kinds.add("str")
        else:
            raise DataError(
                f"{argument}[{position}]: expected an int or str label, got {plain!r}; a missing answer needs a label "
                "of its own, and class scores must be turned into labels first (argmax)"
            )
        if len(kinds) > 1:
            raise DataError(f"{argument}[{position}]: expected one kind of label, got both int and str; use one kind")


def check_label_pair(predictions: Any, references: Any) -> None:
    """Check both and refuse int answers beside str labels: turned into strings, none of them might match.

    Raises:
        DataError: A bad label, or different kinds of label.
    """
    label_codes({"predictions": predictions, "references": references})


def check_texts(values: Any, argument: str) -> list[str]:
    """Refuse anything but a list of strings.

    Raises:
        DataError: Names the argument and the first bad position.
    """
    listed = _listed(values, argument)
    for position, value in enumerate(listed):
        if not isinstance(value, str):
            raise DataError(f"{argument}[{position}]: expected a string, got {value!r}"[:200])
    return listed


def text_lists(values: Any, argument: str) -> list[list[str]]:
    """Evidence (each a string, a list of strings or None) as lists of strings; None becomes the empty list.

    Raises:
        DataError: Names the argument and the first bad position.
    """
    lists = []
    for position, value in enumerate(_listed(values, argument)):
        parts = [] if value is None else [value] if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            raise DataError(
                f"{argument}[{position}]: expected a string, a list of strings or None, got {value!r}"[:200]
            )
        lists.append(list(parts))
    return lists


def _listed(values: Any, argument: str) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise DataError(f"{argument}: expected a list of texts, got {type(values).__name__}")
    return values.tolist() if hasattr(values, "tolist") else list(values)


def label_codes(columns: Mapping[str, Any]) -> tuple[list[IntArray], list[Any]]:
    """Integer codes with a common meaning for several label arrays (any lengths), and the sorted label values.

    Raises:
        DataError: A bad label, or different kinds of label in two arguments.
    """
    arrays = {}
    for argument, values in columns.items():
        check_labels(values, argument)
        arrays[argument] = np.asarray(values)
    if len({array.dtype.kind in "iub" for array in arrays.values() if array.size}) > 1:
        kinds = ", ".join(f"{name} {'int' if a.dtype.kind in 'iub' else 'str'}" for name, a in arrays.items())
        raise DataError(f"labels are of different kinds ({kinds}); use one kind everywhere")
    values, codes = np.unique(np.concatenate(list(arrays.values())), return_inverse=True)
    ends = np.cumsum([len(array) for array in arrays.values()])[:-1]
    return [part.astype(np.int64) for part in np.split(codes, ends)], values.tolist()


def same_lengths(**columns: Any) -> int:
    """The common length n of several sequences.

    Raises:
        DataError: Lengths differ, or nothing was given.
    """
    lengths = {name: len(values) if hasattr(values, "__len__") else 0 for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"lengths differ: {', '.join(f'{name} has {size}' for name, size in lengths.items())}")
    n = next(iter(lengths.values()))
    if n == 0:
        raise DataError(f"{' and '.join(columns)}: expected at least one item, got none")
    return n


def shuffled_matrix(shuffled_predictions: Any, n: int) -> np.ndarray[Any, Any]:
    """The K x n predictions under shuffled evidence as an array.

    Raises:
        DataError: Not K rows of n labels each.
    """
    if shuffled_predictions is None or not hasattr(shuffled_predictions, "__len__") or len(shuffled_predictions) == 0:
        raise DataError(
            "shuffled_predictions: expected K lists of n predictions, one per evidence shuffle, got "
            f"{'nothing' if shuffled_predictions is None else repr(shuffled_predictions)[:60]}"
        )
    if isinstance(shuffled_predictions, np.ndarray) and shuffled_predictions.ndim == 2:
        rows: Sequence[Any] = shuffled_predictions  # type: ignore[assignment]
    else:
        rows = list(shuffled_predictions)
    for number, row in enumerate(rows):
        if not hasattr(row, "__len__") or isinstance(row, str) or len(row) != n:
            got = len(row) if hasattr(row, "__len__") and not isinstance(row, str) else repr(row)[:40]
            raise DataError(f"shuffled_predictions[{number}]: expected {n} predictions, got {got} (the shape is K x n)")
        check_labels(row, f"shuffled_predictions[{number}]")
    return np.asarray(rows)


def metadata_columns(metadata: Any, n: int, argument: str = "metadata") -> dict[str, list[str | None]]:
    """Metadata given as {column: n values}, every value as a string or None.

    Raises:
        DataError: No mapping, no column, or a column of another length.
    """
    if not isinstance(metadata, Mapping) or not metadata:
        raise DataError(f"{argument}: expected a dict {{column: list of {n} values}}, got {repr(metadata)[:60]}")
    columns = {}
    for name, values in metadata.items():
        if isinstance(values, str) or not hasattr(values, "__len__") or len(values) != n:
            got = len(values) if hasattr(values, "__len__") and not isinstance(values, str) else repr(values)[:40]
            raise DataError(f"{argument}[{name!r}]: expected {n} values, got {got}")
        listed = values.tolist() if hasattr(values, "tolist") else list(values)
        columns[str(name)] = [None if value is None or value != value else str(value) for value in listed]
    return columns


def column_codes(
    columns: Mapping[str, list[str | None]], others: Mapping[str, list[str | None]] | None = None
) -> tuple[list[IntArray], list[IntArray] | None]:
    """Integer codes of metadata columns (None becomes NULL), common to both tables where two are given.

    Raises:
        DataError: The two tables have different columns.
    """
    if others is not None and set(others) != set(columns):
        raise DataError(
            f"train_metadata: expected the columns of metadata ({', '.join(columns)}), got {', '.join(others)}"
        )
    first, second = [], []
    for name, values in columns.items():
        seen: dict[str, int] = {}
        first.append(_codes(values, seen))
        if others is not None:
            second.append(_codes(others[name], seen))
    return first, None if others is None else second


def _codes(values: list[str | None], seen: dict[str, int]) -> IntArray:
    return np.array([NULL if value is None else seen.setdefault(value, len(seen)) for value in values], dtype=np.int64)
