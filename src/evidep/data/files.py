"""Data files as rows: JSON, JSON lines, CSV, TSV (each also gzipped) and Parquet, with strings left as they are."""

from __future__ import annotations

import csv
import gzip
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from evidep.data.cells import Cells
from evidep.data.sources import CHUNK, Source, class_names_of, pack_rows
from evidep.errors import DataError

SUFFIXES: Final = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
_PACKED: Final = tuple(suffix + ".gz" for suffix in SUFFIXES if suffix != ".parquet")


def is_data_file(name: str) -> bool:
    """Whether the name ends like a file that `read_file` knows."""
    return name.lower().endswith(SUFFIXES + _PACKED)


def read_file(path: Path) -> Source:
    """The rows of one data file; its kind follows from its name.

    In CSV and TSV every cell is text ("null", "NA" and "" too); in JSON null is a missing value. Parquet is read
    column by column when it is needed, the other kinds are held in memory.

    Raises:
        DataError: If the file is missing, empty, of another kind, or broken: the message names the line or row.
    """
    name = path.name.lower()
    if not is_data_file(name):
        raise DataError(f"{path}: expected a file ending in {', '.join(SUFFIXES)} (or .gz of the text kinds)")
    kind = name.removesuffix(".gz").rpartition(".")[2]
    with _file_faults(path):
        if path.stat().st_size == 0:
            raise DataError(f"{path}: the file is empty (0 bytes); give one with rows")
        if kind == "parquet":
            source = _read_parquet(path)
        elif kind in ("csv", "tsv"):
            source = _read_delimited(path, "," if kind == "csv" else "\t")
        elif kind == "json":
            source = pack_rows(_json_rows(path))
        else:
            source = pack_rows(_json_line_rows(path, _lines(path)))
    if source.n_rows == 0:
        raise DataError(f"{path}: the file has no rows")
    return source


@contextmanager
def _file_faults(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path}: broken gzip file ({error}); download or compress it again") from error
    except pa.ArrowException as error:
        raise DataError(f"{path}: broken Parquet file ({_first_line(error)})") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({_first_line(error)})") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _open(path: Path) -> BinaryIO:
    return gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def _lines(path: Path) -> Iterator[str]:
    """Lines as text. Only a newline ends a line: JSON strings may hold U+2028 and the like."""
    with _open(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{path}, line {number}: not UTF-8 (byte 0x{error.object[error.start]:02x} at position "
                    f"{error.start}); convert the file, for example with iconv -t utf-8"
                ) from error


def _json_line_rows(path: Path, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _parse(path, line, number)
        if not isinstance(row, dict):
            raise DataError(
                f"{path}, line {number}: expected one JSON object per line, got {type(row).__name__}; "
                "a file that is one JSON array must end in .json"
            )
        yield row


def _parse(path: Path, text: str, line: int | None = None) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        at = error.lineno if line is None else line
        raise DataError(f"{path}, line {at}: not JSON ({error.msg} at column {error.colno})") from error
    except RecursionError as error:
        place = "" if line is None else f", line {line}"
        raise DataError(f"{path}{place}: JSON nested too deeply to be read") from error
    except ValueError as error:
        place = "" if line is None else f", line {line}"
        raise DataError(f"{path}{place}: not JSON ({_first_line(error)})") from error


def _json_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Rows of a .json file: one array, one object with the array under one key, or JSON lines after all."""
    lines = _lines(path)
    head: list[str] = []
    filled = 0
    for line in lines:
        head.append(line)
        filled += bool(line.strip())
        if filled == 2:
            break
    first = next((line for line in head if line.strip()), "")
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        row = None
    if not first:
        return
    if isinstance(row, dict) and (filled == 2 or not any(map(_is_rows, row.values()))):
        yield from _json_line_rows(path, chain(head, lines))
    else:
        yield from _rows_within(path, _parse(path, "".join(chain(head, lines))))


def _rows_within(path: Path, value: Any) -> list[Mapping[str, Any]]:
    if isinstance(value, dict):
        found = [key for key, rows in value.items() if _is_rows(rows)]
        if len(found) != 1:
            raise DataError(
                f"{path}: expected a list of rows under one key (such as 'data'), got an object with keys "
                f"{', '.join(map(repr, list(value)[:8]))}, {len(found)} of which hold rows; write one file per split"
            )
        value = value[found[0]]
    if not isinstance(value, list):
        raise DataError(f"{path}: expected a JSON array of objects, got {type(value).__name__}")
    for number, row in enumerate(value):
        if not isinstance(row, dict):
            raise DataError(f"{path}: element {number} of the array must be an object, got {type(row).__name__}")
    return value


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _read_delimited(path: Path, delimiter: str) -> Source:
    try:
        return pack_rows(_delimited_rows(path, delimiter, csv.QUOTE_MINIMAL))
    except DataError:
        if delimiter == ",":
            raise
    # Many published TSV files (GLUE, SNLI) do not quote at all: a quotation mark there is an ordinary character.
    return pack_rows(_delimited_rows(path, delimiter, csv.QUOTE_NONE))


def _delimited_rows(path: Path, delimiter: str, quoting: Any) -> Iterator[dict[str, str]]:
    limit = csv.field_size_limit(sys.maxsize)
    try:
        reader = csv.reader(_lines(path), delimiter=delimiter, quoting=quoting, strict=True)
        header: list[str] | None = None
        for cells in reader:
            if not cells:
                continue
            if header is None:
                header = cells
                if len(set(header)) < len(header):
                    raise DataError(f"{path}: column names in the header must be unique, got {', '.join(header)}")
            elif len(cells) != len(header):
                raise DataError(
                    f"{path}, line {reader.line_num}: expected {len(header)} cells as in the header, got {len(cells)}; "
                    "quote cells that hold the delimiter or a line break"
                )
            else:
                yield dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: broken quoting ({error})") from error
    finally:
        csv.field_size_limit(limit)


def _read_parquet(path: Path) -> Source:
    with pq.ParquetFile(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows

    def read(column: str) -> Iterator[Cells]:
        # A dot in the name would be read as a path into a nested column.
        wanted = None if "." in column else [column]
        with _file_faults(path), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(CHUNK, columns=wanted):
                yield batch.column(column)

    names = tuple(schema.names)
    if len(set(names)) < len(names):
        raise DataError(f"{path}: column names must be unique, got {', '.join(names)}")
    return Source(names, read, n_rows, class_names_of(schema))
