"""Any kind of rows (datasets, pandas, Arrow, lists of dicts) read one column and one chunk at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, compress, islice
from typing import Any, Final

import pyarrow as pa

from evidep.data.cells import Cells, decoded
from evidep.errors import DataError
from evidep.types import BoolArray

CHUNK: Final = 2048
"""Rows handled as Python objects at a time."""

_GATHERED: Final = 8192


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The rows of one split. Texts stay where they are; only chunks of one column are read at a time.

    Attributes:
        columns: Column names.
        read: Column name to its chunks, in row order.
        n_rows: Rows behind `read`.
        class_names: The names behind the integers of each ClassLabel column.
        name: Name of the split, or None.
        keep: [n_rows] the rows that belong to the split; None for all.
    """

    columns: tuple[str, ...]
    read: Callable[[str], Iterable[Cells]]
    n_rows: int
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    name: str | None = None
    keep: BoolArray | None = None

    def __len__(self) -> int:
        return self.n_rows if self.keep is None else int(self.keep.sum())

    def chunks(self, column: str) -> Iterator[Cells]:
        """The cells of the split's rows, at most `CHUNK` at a time."""
        start = 0
        for cells in self.read(column):
            for at in range(0, len(cells), CHUNK):
                part = cells[at : at + CHUNK]
                part = part if isinstance(part, list) else decoded(part)
                if self.keep is not None:
                    part = filter_cells(part, self.keep[start + at : start + at + len(part)])
                if len(part):
                    yield part
            start += len(cells)

    def where(self, row: int) -> str:
        """The row (0-based, within the split) in words."""
        return f"row {row}" if self.name is None else f"row {row} of split {self.name!r}"

    def part(self, name: str, keep: BoolArray) -> Source:
        """The given rows as a split of their own."""
        return replace(self, name=name, keep=keep)


def filter_cells(cells: Cells, keep: BoolArray) -> Cells:
    """The cells where `keep` is true."""
    if keep.all():
        return cells
    return list(compress(cells, keep)) if isinstance(cells, list) else cells.filter(pa.array(keep))


def as_source(data: Any, name: str | None = None) -> Source:
    """Rows in memory as a `Source`: datasets.Dataset, DataFrame, Arrow table (or stream), or list of dicts.

    Raises:
        DataError: If `data` is a streaming dataset, has an on-the-fly transform, or is none of these.
    """
    if isinstance(data, Source):
        return data if name is None else replace(data, name=name)
    datasets, pandas = sys.modules.get("datasets"), sys.modules.get("pandas")
    if datasets is not None and isinstance(data, datasets.IterableDataset | datasets.IterableDatasetDict):
        raise DataError(
            "a streaming dataset has no length and no random access, so its evidence cannot be shuffled: load it "
            "without streaming=True, or use datasets.Dataset.from_list(list(stream.take(10000)))"
        )
    if datasets is not None and isinstance(data, datasets.Dataset):
        source = _from_dataset(data)
    elif pandas is not None and isinstance(data, pandas.DataFrame):
        source = _from_pandas(data)
    elif isinstance(data, list | tuple):
        source = pack_rows(_checked_rows(data))
    elif hasattr(data, "__arrow_c_stream__"):
        source = from_table(pa.table(data))
    else:
        raise DataError(
            "data must be a datasets.Dataset or DatasetDict, a Hub id, a save_to_disk folder, a "
            "csv/tsv/json/jsonl/parquet file, a DataFrame, an Arrow table or a list of dicts, "
            f"got {type(data).__name__}"
        )
    if len(set(source.columns)) < len(source.columns):
        twice = sorted({column for column in source.columns if source.columns.count(column) > 1})
        raise DataError(f"column names must be unique; these occur more than once: {', '.join(twice)}")
    return source if name is None else replace(source, name=name)


def from_table(table: pa.Table) -> Source:
    """An Arrow table, not copied."""
    return Source(
        tuple(table.column_names),
        lambda column: table.column(column).chunks,
        len(table),
        class_names_of(table.schema),
    )


def class_names_of(schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    """Names behind ClassLabel columns, which datasets keeps in the Arrow schema's metadata under "huggingface"."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {
            column: tuple(feature["names"])
            for column, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and feature.get("names")
        }
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}


def pack_rows(rows: Iterable[Mapping[str, Any]]) -> Source:
    """Rows as columns of Arrow chunks. A key that a row lacks is None there."""
    columns: dict[str, list[Cells]] = {}
    n_rows = 0
    stream = iter(rows)
    while batch := list(islice(stream, CHUNK)):
        for column in dict.fromkeys(chain(columns, *batch)):
            columns.setdefault(column, [pa.nulls(n_rows)] if n_rows else [])
            columns[column].append(pack([row.get(column) for row in batch]))
        n_rows += len(batch)
    return Source(tuple(columns), columns.__getitem__, n_rows)


def pack(values: list[Any]) -> Cells:
    """An Arrow array of the values, or the list itself where their types are mixed or Arrow cannot hold them."""
    # Of mixed types Arrow makes one without a word: true among fractions becomes 1.0, a Decimal among dates a date.
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) > 1 and kinds != {int, float}:
        return values
    try:
        packed = pa.array(values)
    except (pa.ArrowException, ArithmeticError, ValueError, TypeError):
        return values
    return values if isinstance(packed, pa.ChunkedArray) else packed  # it splits what is longer than 2 GiB


def _checked_rows(rows: list[Any] | tuple[Any, ...]) -> Iterator[Mapping[str, Any]]:
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"row {number}: expected a dict of column to value, got {type(row).__name__}")
        yield {str(column): value for column, value in row.items()}


def _from_dataset(dataset: Any) -> Source:
    from datasets import ClassLabel

    if dataset.format["type"] == "custom":
        raise DataError(
            "the dataset has an on-the-fly transform (set_transform), which would be skipped: apply it with "
            "dataset.map, or drop it with dataset.reset_format()"
        )

    # select, shuffle and filter leave the rows in place and keep their positions. datasets' own look-up slices row by
    # row (six minutes for 500,000 shuffled rows, where Arrow's take needs a second).
    positions = None if dataset._indices is None else dataset._indices.column(0)

    def read(column: str) -> Iterator[Cells]:
        stored = dataset.data.column(column)
        if positions is None:
            yield from stored.chunks
        else:
            for start in range(0, len(positions), _GATHERED):
                yield from stored.take(positions.slice(start, _GATHERED)).chunks

    names = {
        column: tuple(feature.names)
        for column, feature in dataset.features.items()
        if isinstance(feature, ClassLabel) and feature.names
    }
    split = None if dataset.split is None else str(dataset.split)
    return Source(tuple(dataset.column_names), read, len(dataset), names, split)


def _from_pandas(frame: Any) -> Source:
    columns = [str(column) for column in frame.columns]
    position = {column: at for at, column in enumerate(columns)}

    def read(column: str) -> Iterable[Cells]:
        series = frame.iloc[:, position[column]]
        if series.dtype == object:
            return (pack(series.iloc[start : start + CHUNK].tolist()) for start in range(0, len(series), CHUNK))
        try:
            cells = pa.array(series, from_pandas=True)
        except (pa.ArrowException, ValueError, TypeError):
            return [series.tolist()]
        return cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]

    return Source(tuple(columns), read, len(frame))
