"""A visitor's file as rows. What cannot be read safely is refused in words before it is read."""

from __future__ import annotations

import gzip
import tempfile
import zlib
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evidence_space import limits
from evidep.data.files import SUFFIXES, is_data_file, read_file
from evidep.data.sources import Source, from_table
from evidep.errors import DataError, EvidepError
from evidep.report.escape import one_line

_FOREIGN: Final = (
    (b"PK\x03\x04", "a zip archive or an Excel workbook: unpack it, or save the sheet as csv"),
    (b"\xd0\xcf\x11\xe0", "an old Office file: save the sheet as csv"),
    (b"%PDF", "a PDF"),
    (b"BZh", "a bzip2 file: unpack it first"),
    (b"\xfd7zXZ", "an xz file: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file: unpack it first"),
    (b"\xff\xfe", "UTF-16 text: save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text: save it as UTF-8"),
    (b"ARROW1", "an Arrow file: save it as parquet"),
)
_BATCH: Final = 16


def shown_name(path: str | Path) -> str:
    """The visitor's file name, harmless and short."""
    return one_line(Path(path).name, 80)


def read_upload(path: str | Path | None) -> Source:
    """The rows of an uploaded file, within the limits, all of them in memory.

    Raises:
        DataError: No file, a file of another kind than its name says, one that is broken, too large or unpacks to too
            much.
    """
    if not path:
        raise DataError("no file yet: choose a csv, tsv, json, jsonl or parquet file")
    file = Path(path)
    name = shown_name(file)
    try:
        source = _read(file, name)
        limits.check_shape(source.n_rows, source.columns, name)
        check_cells(source, name)
    except EvidepError as error:
        raise DataError(_without_path(str(error), file, name)) from error
    return source


def text_file(path: str | Path, folder: str | Path) -> Path:
    """A plain (unpacked, checked) copy of an uploaded text file in `folder`; for readers that want a path.

    Raises:
        DataError: As for `read_upload`.
    """
    file, name = Path(path), shown_name(path)
    head = _checked_head(file, name)
    suffix = _suffix(file)
    target = Path(folder) / f"upload{suffix}"
    target.write_bytes(_unpacked(file, name) if head.startswith(b"\x1f\x8b") else file.read_bytes())
    if suffix == ".parquet":
        pq.write_table(_parquet(target, name), target)
    else:
        _check_text(target, name)
    return target


def _read(file: Path, name: str) -> Source:
    _checked_head(file, name)
    if _suffix(file) == ".parquet":
        return from_table(_parquet(file, name))
    with tempfile.TemporaryDirectory(prefix="evidep-space-") as folder:
        plain = text_file(file, folder)
        try:
            return read_file(plain)
        except EvidepError as error:
            raise DataError(_without_path(str(error), plain, name)) from error
        except MemoryError as error:
            raise DataError(f"{name} needs more memory than there is: upload a sample") from error


def _suffix(file: Path) -> str:
    return "." + file.name.lower().removesuffix(".gz").rpartition(".")[2]


def _checked_head(file: Path, name: str) -> bytes:
    """The first bytes of a file whose name and content agree."""
    if not is_data_file(file.name):
        raise DataError(f"{name}: expected a file ending in {', '.join(SUFFIXES)} (text kinds also with .gz)")
    size = file.stat().st_size
    if size > limits.MAX_FILE_BYTES:
        raise DataError(
            f"{name} is {size / 1024**2:.0f} MB, more than the {limits.MAX_FILE_BYTES // 1024**2} MB that this Space "
            "takes: upload a sample, or audit it on your own machine with `evidep audit`"
        )
    if size == 0:
        raise DataError(f"{name} is empty (0 bytes)")
    with file.open("rb") as stream:
        head = stream.read(8)
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise DataError(f"{name} is {what}")
    if head.startswith(b"PAR1") != (_suffix(file) == ".parquet"):
        kind = "is a Parquet file: give it the ending .parquet" if head.startswith(b"PAR1") else "is no Parquet file"
        raise DataError(f"{name} {kind}")
    if head.startswith(b"\x1f\x8b") != file.name.lower().endswith(".gz"):
        kind = "is gzip-compressed: give it the ending .gz" if head.startswith(b"\x1f\x8b") else "is no gzip file"
        raise DataError(f"{name} {kind}")
    return head


def _unpacked(file: Path, name: str) -> bytes:
    """The content of a gzip file, read no further than the limit."""
    try:
        with gzip.open(file) as stream:
            content = stream.read(limits.MAX_UNPACKED_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: broken gzip file ({error}); compress it again") from error
    if len(content) > limits.MAX_UNPACKED_BYTES:
        raise DataError(
            f"{name} unpacks to more than {limits.MAX_UNPACKED_BYTES // 1024**2} MB, the most that this Space takes"
        )
    return content


def _check_text(file: Path, name: str) -> None:
    content = file.read_bytes()
    if b"\0" in content:
        raise DataError(f"{name} holds NUL bytes, so it is no UTF-8 text: save it as UTF-8")
    marks = (
        sum(map(content.count, (b"{", b"[")))
        if "json" in file.suffix
        else max(content.count(b","), content.count(b"\t"))
    )
    if marks > limits.MAX_MARKS:
        raise DataError(f"{name} holds {marks:,} cells or brackets, more than {limits.MAX_MARKS:,}: upload a sample")


def _parquet(file: Path, name: str) -> pa.Table:
    """A Parquet file as a table. A page of a few bytes may stand for gigabytes, so sizes are checked as it is read."""
    try:
        with pq.ParquetFile(file) as opened:
            schema, metadata = opened.schema_arrow, opened.metadata
            limits.check_shape(metadata.num_rows, schema.names, name)
            size = sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups))
            if size > limits.MAX_UNPACKED_BYTES:
                raise DataError(
                    f"{name} unpacks to {size / 1024**2:.0f} MB, more than {limits.MAX_UNPACKED_BYTES // 1024**2} MB"
                )
        texts = [field.name for field in schema if _is_text(field.type)]
        with pq.ParquetFile(file, read_dictionary=texts) as opened:
            batches, total = [], 0
            for batch in opened.iter_batches(_BATCH if len(texts) < len(schema.names) else 1024):
                total += sum(_decoded_bytes(batch.column(at)) for at in range(batch.num_columns))
                if total > limits.MAX_TEXT_BYTES:
                    raise DataError(f"{name} holds more than {limits.MAX_TEXT_BYTES // 1024**2} MB of cells")
                batches.append(pa.RecordBatch.from_arrays([_plain(c) for c in batch.columns], names=batch.schema.names))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name}: broken Parquet file ({(str(error) or 'unreadable').splitlines()[0]})") from error
    except (RecursionError, OverflowError, UnicodeDecodeError) as error:
        raise DataError(f"{name}: Parquet file that cannot be read ({type(error).__name__})") from error
    if not batches:
        raise DataError(f"{name} has no rows")
    return pa.Table.from_batches(batches).replace_schema_metadata(schema.metadata)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)


def _decoded_bytes(column: pa.Array) -> int:
    """Bytes of a column once its dictionary is written out."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    if len(column.dictionary) == 0 or not _is_text(column.type.value_type):
        return int(column.nbytes)
    lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
    return int(pc.sum(lengths.cast(pa.int64())).as_py() or 0)


def _plain(column: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(column.type):
        return column
    return column.dictionary_decode().cast(
        pa.large_string() if _is_text(column.type.value_type) else column.type.value_type
    )


def check_cells(source: Source, name: str) -> None:
    """Refuse a cell, or all cells together, that are longer than the limits.

    Raises:
        DataError: Names row and column.
    """
    total = 0
    for column in source.columns:
        start = 0
        for cells in source.chunks(column):
            lengths = cell_lengths(cells)
            total += sum(lengths)
            longest = max(lengths, default=0)
            if longest > limits.MAX_CELL:
                row = start + lengths.index(longest)
                raise DataError(
                    f"{name}, row {row}, column {one_line(column, 60)!r}: the cell has {longest:,} characters, more "
                    f"than {limits.MAX_CELL:,}: shorten it"
                )
            if total > limits.MAX_TEXT_BYTES:
                raise DataError(
                    f"{name} holds more than {limits.MAX_TEXT_BYTES // 1024**2} MB of text: upload a sample"
                )
            start += len(cells)


def cell_lengths(cells: Any) -> list[int]:
    """Characters of each cell as it would be written."""
    values = cells.to_pylist() if hasattr(cells, "to_pylist") else list(cells)
    return [len(value) if isinstance(value, str) else 0 if value is None else len(str(value)) for value in values]


def _without_path(message: str, file: Path, name: str) -> str:
    """An error's words without the place where this machine keeps the file."""
    return message.replace(str(file), name).replace(str(file.resolve()), name)
