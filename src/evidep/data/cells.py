"""Single cells as text: what a string, a number, a list or a record means as query, evidence or metadata."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import date, time, timedelta
from numbers import Number
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evidep.errors import DataError
from evidep.types import NULL, BoolArray, IntArray

Cells: TypeAlias = pa.Array | list[Any]
"""A chunk of one column: an Arrow array, or Python objects where no one Arrow type fits them."""

TEXT_KEYS: Final = (
    "text",
    "texts",
    "sentence",
    "sentences",
    "context",
    "contexts",
    "passage_text",
    "passages",
    "paragraphs",
    "snippets",
    "content",
)
"""Keys under which a record is known to keep its text (SQuAD, HotpotQA, MS MARCO, PubMedQA)."""

EVIDENCE_JOINER: Final = "\n"
METADATA_JOINER: Final = " | "
_DEEPEST: Final = 16

Where = Callable[[int], str]
"""Names the t-th cell of the chunk for an error message."""


def scalar_texts(cells: Cells, column: str, where: Where) -> pa.LargeStringArray:
    """Each cell as text; numbers and booleans in one canonical form, None and NaN as null.

    Raises:
        DataError: If a cell is a list, a record or bytes.
    """
    fast = _scalar_array(cells)
    return _strings([_scalar_text(v, column, where, t) for t, v in enumerate(values(cells))]) if fast is None else fast


def metadata_texts(cells: Cells, column: str, where: Where) -> pa.LargeStringArray:
    """As `scalar_texts`, but lists of scalars are joined by " | " and other nested values become canonical JSON."""
    fast = _scalar_array(cells)
    if fast is not None:
        return fast
    return _strings([_metadata_text(value, column, where, t) for t, value in enumerate(values(cells))])


def evidence_texts(
    cells: Cells, column: str, where: Where, keys: set[str]
) -> tuple[pa.LargeStringArray, IntArray | None]:
    """Each cell as one text, and how many texts a list held.

    A list of strings is joined by a newline in its order, elements that are None left out. A record counts as the
    value of the one key of `TEXT_KEYS` that it has; that key is added to `keys`.

    Returns:
        The texts (null where the cell is None), and [n] counts with NULL for cells that are no lists; None instead of
        the counts where no cell is a list or record.

    Raises:
        DataError: If a cell is bytes or a record without exactly one such key, or a list holds other than strings.
    """
    fast = _scalar_array(cells)
    if fast is not None:
        return fast, None
    texts: list[str | None] = []
    counts = np.full(len(cells), NULL, dtype=np.int64)
    for t, value in enumerate(values(cells)):
        if isinstance(value, list | tuple | dict):
            leaves = list(_leaves(value, column, where, t, keys))
            counts[t] = len(leaves)
            texts.append(_encodable(EVIDENCE_JOINER.join(leaves), column, where, t))
        else:
            texts.append(_scalar_text(value, column, where, t))
    return _strings(texts), counts if (counts != NULL).any() else None


def blank(texts: pa.LargeStringArray) -> BoolArray:
    """[n] whether the text is there and is empty or whitespace only (as `str.isspace` has it)."""
    lengths = pc.fill_null(pc.binary_length(pc.utf8_trim_whitespace(texts)), 1)
    return np.asarray(lengths.to_numpy(zero_copy_only=False) == 0)


def number_text(value: Any) -> str | None:
    """The shortest decimal form: 1 and 1.0 are both "1", NaN is None."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        return repr(value)
    return str(value)


def plain(value: Any) -> Any:
    """The Python value of a numpy scalar or array, None for the missing values of pandas, all else as it is."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value


def values(cells: Cells) -> list[Any]:
    """The cells as Python objects."""
    return [plain(value) for value in cells] if isinstance(cells, list) else cells.to_pylist()


def factor(cells: Cells) -> tuple[list[Any], IntArray]:
    """Distinct values of the chunk and [n] the position of each cell's value; null is NULL.

    Values that cannot be compared cheaply (nested, mixed) are returned one per cell.
    """
    if not isinstance(cells, list):
        cells = decoded(cells)
        if not pa.types.is_nested(cells.type) and not pa.types.is_null(cells.type):
            coded = cells.dictionary_encode()
            return coded.dictionary.to_pylist(), _codes(coded)
    return values(cells), np.arange(len(cells), dtype=np.int64)


def _codes(coded: pa.DictionaryArray) -> IntArray:
    return np.asarray(pc.fill_null(coded.indices, NULL).to_numpy(zero_copy_only=False), dtype=np.int64)


def decoded(cells: pa.Array) -> pa.Array:
    """The array in the plain type of its values: no dictionary, no extension, no view, strings as large_string."""
    if isinstance(cells, pa.ExtensionArray):
        cells = cells.storage
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_string(cells.type) or pa.types.is_string_view(cells.type):
        cells = cells.cast(pa.large_string())
    elif pa.types.is_binary_view(cells.type):
        cells = cells.cast(pa.large_binary())
    return cells


def _scalar_array(cells: Cells) -> pa.LargeStringArray | None:
    """The chunk as text without Python objects, or None where a Python object is needed for each cell."""
    if isinstance(cells, list):
        return None
    cells = decoded(cells)
    kind = cells.type
    if pa.types.is_large_string(kind):
        return cells
    if pa.types.is_null(kind):
        return pa.nulls(len(cells), pa.large_string())
    if pa.types.is_floating(kind):
        coded = cells.dictionary_encode()
        names = _strings([number_text(value) for value in coded.dictionary.to_pylist()])
        return names.take(coded.indices)
    if (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
    ):
        try:
            return cells.cast(pa.large_string())
        except pa.ArrowNotImplementedError:
            return None
    return None


def _strings(texts: list[str | None]) -> pa.LargeStringArray:
    return pa.array(texts, type=pa.large_string())


def _scalar_text(value: Any, column: str, where: Where, t: int) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return _encodable(value, column, where, t)
    if isinstance(value, list | tuple | dict):
        raise DataError(
            f"column {column!r}, {where(t)}: expected one text, got {_kind(value)}; make it one string per row "
            "(for example with dataset.map) or name another column"
        )
    if isinstance(value, Number | date | time | timedelta) and not isinstance(value, complex):
        return number_text(value)
    raise DataError(
        f"column {column!r}, {where(t)}: expected text, got {_kind(value)}; turn the column into text first"
    )


def _metadata_text(value: Any, column: str, where: Where, t: int) -> str | None:
    if not isinstance(value, list | tuple | dict):
        return _scalar_text(value, column, where, t)
    if isinstance(value, list | tuple) and not any(isinstance(part, list | tuple | dict) for part in value):
        parts = [_scalar_text(part, column, where, t) for part in value]
        return METADATA_JOINER.join(part for part in parts if part is not None)
    try:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    except (RecursionError, TypeError) as error:
        raise DataError(
            f"column {column!r}, {where(t)}: this nested value cannot become text ({error}); flatten the column first"
        ) from error
    return _encodable(text, column, where, t)


def _leaves(value: Any, column: str, where: Where, t: int, keys: set[str], depth: int = 0) -> Iterator[str]:
    value = plain(value)
    if depth > _DEEPEST:
        raise DataError(
            f"column {column!r}, {where(t)}: evidence is nested more than {_DEEPEST} levels deep; "
            "make it one string or one list of strings per row"
        )
    if value is None:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part, column, where, t, keys, depth + 1)
    elif isinstance(value, dict):
        present = [key for key in TEXT_KEYS if value.get(key) is not None]
        if not present and any(key in value for key in TEXT_KEYS):
            return
        if len(present) != 1:
            raise DataError(
                f"column {column!r}, {where(t)}: evidence is a record with keys {sorted(map(str, value))}, of which "
                f"{'none' if not present else ' and '.join(present)} may hold the text; make it one string or one "
                "list of strings per row"
            )
        keys.add(present[0])
        yield from _leaves(value[present[0]], column, where, t, keys, depth + 1)
    else:
        raise DataError(
            f"column {column!r}, {where(t)}: evidence lists must hold strings, got {_kind(value)} ({value!r:.40})"
        )


def _encodable(text: str, column: str, where: Where, t: int) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"column {column!r}, {where(t)}: the text holds half of a surrogate pair "
            f"({text[error.start]!a} at position {error.start}) and is no valid Unicode; repair the row"
        ) from error
    return text


def _kind(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"a record with keys {sorted(map(str, value))}"
    return type(value).__name__
