"""The columns of one split as texts with identities, before two splits are brought together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evidep.data.cells import Cells, blank, evidence_texts, metadata_texts, scalar_texts
from evidep.data.identity import EncodedColumn, all_distinct, encode
from evidep.data.labels import RawLabels, read_labels
from evidep.data.roles import EVIDENCE_COUNT, check_columns
from evidep.data.sources import Source, filter_cells
from evidep.errors import DataError
from evidep.types import BLANK, MISSING, NULL, PRESENT, BoolArray, ColumnRoles, IntArray, StringColumn


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """What a split holds, without the rows that were dropped.

    Attributes:
        name: Name of the split, or None.
        rows_read: Rows found.
        dropped: Reason to number of rows left out.
        labels: [n] labels under the split's own names.
        queries: [n] queries, keyed for equality as normalised text.
        evidence: [n] evidence, keyed; "" where blank or missing.
        state: [n] PRESENT, BLANK or MISSING.
        metadata: The metadata columns, and `evidence_count` where evidence values are lists.
        group: [n] codes of the group column, or None.
        ids: [n] stable names.
        notes: Sentences for the report.
    """

    name: str | None
    rows_read: int
    dropped: Mapping[str, int]
    labels: RawLabels
    queries: EncodedColumn
    evidence: EncodedColumn
    state: NDArray[np.int8]
    metadata: Mapping[str, StringColumn]
    group: IntArray | None
    ids: pa.LargeStringArray
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.state)


def gather(source: Source, roles: ColumnRoles) -> Gathered:
    """Read one split's columns; rows without a label or a query are dropped and counted.

    Raises:
        DataError: If a column is absent, a value cannot be what its role asks for, or a group is missing.
    """
    if len(source) == 0:
        raise DataError(f"{'the data' if source.name is None else f'split {source.name!r}'} has no rows")
    check_columns(roles, source.columns, "" if source.name is None else f"split {source.name!r}: ")
    labels = read_labels(source, roles.label)
    dropped = Counter(labels.dropped)
    labelled = labels.index >= 0
    keep = labelled & ~_without_query(source, roles.query, labelled, dropped)
    evidence, state, counts, keys = _evidence(source, roles.evidence, keep)
    metadata = {
        column: encode(partial(_texts, source, column, keep, metadata_texts)).column
        for column in roles.metadata
        if column in source.columns
    }
    if counts is not None and EVIDENCE_COUNT not in metadata:
        metadata[EVIDENCE_COUNT] = counts
    ids, notes = _ids(source, keep)
    if keys:
        notes += (f"Evidence values are nested: the text was taken from the key {', '.join(sorted(keys))}.",)
    return Gathered(
        name=source.name,
        rows_read=len(source),
        dropped=dict(dropped),
        labels=labels.within(keep),
        queries=encode(partial(_texts, source, roles.query, keep, scalar_texts), keyed=True),
        evidence=evidence,
        state=state,
        metadata=metadata,
        group=None if roles.group is None else _group(source, roles.group, keep),
        ids=ids,
        notes=notes,
    )


def _texts(
    source: Source, column: str, keep: BoolArray, convert: Callable[[Cells, str, Callable[[int], str]], Any]
) -> Iterator[Any]:
    """`convert` of the column's kept cells, a chunk at a time; it may name a cell of the chunk by its row."""
    start = 0
    for cells in source.chunks(column):
        kept = keep[start : start + len(cells)]
        rows = np.flatnonzero(kept) + start
        yield convert(filter_cells(cells, kept), column, partial(_place, source, rows))
        start += len(cells)


def _place(source: Source, rows: IntArray, t: int) -> str:
    return source.where(int(rows[t]))


def _without_query(source: Source, column: str, labelled: BoolArray, dropped: Counter[str]) -> BoolArray:
    """[n] the labelled rows that have no query; counts them by reason."""
    missing, empty = [np.empty(0, dtype=np.bool_)], [np.empty(0, dtype=np.bool_)]
    for texts in _texts(source, column, np.ones(len(source), dtype=np.bool_), scalar_texts):
        missing.append(_is_null(texts))
        empty.append(blank(texts))
    without = np.zeros(len(source), dtype=np.bool_)
    for reason, parts in (("query missing", missing), ("query blank", empty)):
        rows = np.concatenate(parts) & labelled
        without |= rows
        if rows.any():
            dropped[reason] += int(rows.sum())
    return without


def _evidence(
    source: Source, column: str, keep: BoolArray
) -> tuple[EncodedColumn, NDArray[np.int8], StringColumn | None, set[str]]:
    """The evidence, its states, how many texts each list held (None without lists), and the keys of nested records."""
    keys: set[str] = set()
    states: list[NDArray[np.int8]] = []
    counts: list[IntArray] = []

    def convert(cells: Cells, column: str, where: Callable[[int], str]) -> pa.LargeStringArray:
        texts, sizes = evidence_texts(cells, column, where, keys)
        counts.append(np.full(len(texts), NULL, dtype=np.int64) if sizes is None else sizes)
        missing, empty = _is_null(texts), blank(texts)
        states.append(np.where(missing, MISSING, np.where(empty, BLANK, PRESENT)).astype(np.int8))
        without = missing | empty
        return pc.if_else(pa.array(~without), texts, "").cast(pa.large_string()) if without.any() else texts

    def pieces() -> Iterator[pa.LargeStringArray]:
        states[:] = [np.empty(0, dtype=np.int8)]
        counts[:] = [np.empty(0, dtype=np.int64)]
        yield from _texts(source, column, keep, convert)

    evidence = encode(pieces, keyed=True)
    sizes = np.concatenate(counts)
    held = None
    if (sizes != NULL).any():
        held = StringColumn.from_list([None if size == NULL else str(size) for size in sizes.tolist()])
    return evidence, np.concatenate(states), held, keys


def _group(source: Source, column: str, keep: BoolArray) -> IntArray:
    group = encode(partial(_texts, source, column, keep, metadata_texts)).column.index
    without = np.flatnonzero(group == NULL)
    if len(without):
        raise DataError(
            f"group column {column!r}, {source.where(int(np.flatnonzero(keep)[without[0]]))}: no value "
            f"({len(without)} such rows); give every item a group (one of its own where it has none), or leave out "
            "--group"
        )
    return group


def _ids(source: Source, keep: BoolArray) -> tuple[pa.LargeStringArray, tuple[str, ...]]:
    """The column "id" where it names every item differently, else split name and row number."""
    notes: tuple[str, ...] = ()
    if "id" in source.columns:
        parts = [pa.array([], type=pa.large_string()), *_texts(source, "id", keep, metadata_texts)]
        ids = pa.concat_arrays(parts)
        if ids.null_count == 0 and all_distinct(ids):
            return ids, notes
        notes = ("The column 'id' does not name every item differently: items are named by split and row number.",)
    rows = pa.array(np.flatnonzero(keep)).cast(pa.large_string())
    prefix, colon = (pa.scalar(text, type=pa.large_string()) for text in (source.name or "data", ":"))
    return pc.binary_join_element_wise(prefix, rows, colon), notes


def _is_null(texts: pa.LargeStringArray) -> BoolArray:
    return np.asarray(texts.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
