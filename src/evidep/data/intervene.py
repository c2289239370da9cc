"""The interventions for users of datasets: swap or blank the evidence of a Dataset, cached as `Dataset.map` caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evidep.data.cells import evidence_texts, metadata_texts
from evidep.data.conditions import SHUFFLE_ARMS, cross, draw_neighbours, permute
from evidep.data.derange import ALGORITHM_VERSION, Draws
from evidep.data.identity import codes, encode
from evidep.data.labels import read_labels
from evidep.data.roles import EVIDENCE_COUNT
from evidep.data.sources import Source, as_source
from evidep.errors import DataError, SettingError
from evidep.types import NULL, IntArray

if TYPE_CHECKING:
    import datasets

_BATCH_BYTES: Final = 2**27
"""Long texts go through in smaller batches, which keeps memory low and 32-bit offsets within their range."""

Data = TypeVar("Data", "datasets.Dataset", "datasets.DatasetDict")


def permute_evidence(
    dataset: Data,
    *,
    evidence: str,
    shuffle: str = "global",
    seed: int = 0,
    k: int = 0,
    label: str | None = None,
    metadata: str | Sequence[str] = (),
    num_proc: int | None = None,
) -> Data:
    """The dataset in which every row has another row's evidence; all other columns stay as they are.

    The donors are those of `evidep.audit` for the same rows, seed and k: a permutation (near-miss: a draw), in which a
    row keeps an equal text only where that cannot be avoided. Texts are compared after Unicode normalisation,
    casefolding and collapsing of whitespace; None, "" and blank text are one text. The result is cached under a
    fingerprint of the dataset, the donors and all arguments: the number of processes changes nothing, and K calls
    with different k stay K different permutations on a cold and on a warm cache.

    Args:
        dataset: A Dataset, or a DatasetDict whose splits are shuffled each within itself.
        evidence: Column whose values are moved: strings, None, lists of strings or records with a text.
        shuffle: global (all rows trade), within-label, within-metadata (rows with equal values in every metadata column
            trade; rows whose evidence lists hold different numbers of texts do not), or near-miss (one of
            the five most similar other texts).
        seed: Any whole number from 0.
        k: Number of the shuffle, from 0.
        label: Label column, which within-label needs. Rows without a label trade among themselves.
        metadata: Metadata columns, which within-metadata needs.
        num_proc: Processes, as in `Dataset.map`.

    Returns:
        The same kind of object with the same features and format.

    Raises:
        SettingError: For an unknown shuffle, a negative seed or k, or a column that the shuffle needs.
        DataError: For a streaming dataset, an absent column, no rows, or values that are no evidence.
    """
    metadata = (metadata,) if isinstance(metadata, str) else tuple(metadata)
    _check_shuffle(shuffle, label, metadata)

    def one_split(split: datasets.Dataset) -> datasets.Dataset:
        source = _open(split, [evidence, *([label] if shuffle == "within-label" and label else []), *metadata])
        donors = _donors(source, evidence, shuffle, Draws(seed, shuffle, k), label, metadata)
        return _map(
            split,
            partial(
                _take, column=evidence, source=split.select_columns([evidence]).with_format("arrow"), donors=donors
            ),
            [
                "permute_evidence",
                ALGORITHM_VERSION,
                evidence,
                shuffle,
                int(seed),
                int(k),
                label,
                metadata,
                donors.tobytes(),
            ],
            num_proc,
        )

    return _each_split(dataset, one_split)


def drop_evidence(dataset: Data, *, evidence: str, value: str | None = "", num_proc: int | None = None) -> Data:
    """The dataset in which no row has evidence: the ablation to retrain on, or to predict on.

    Args:
        dataset: A Dataset or DatasetDict.
        evidence: Column to blank. It stays, so that code which reads it runs on.
        value: What every row gets: "" (an empty list in a column of lists) or None. They are not the same to
            a model that marks a missing segment.
        num_proc: Processes, as in `Dataset.map`.

    Returns:
        The same kind of object with the same features and format.

    Raises:
        SettingError: If `value` is other than "" or None, or is "" and the column holds neither strings nor lists.
        DataError: For a streaming dataset, an absent column or no rows.
    """
    if value not in ("", None):
        raise SettingError(f'value: expected "" or None, got {value!r}')

    def one_split(split: datasets.Dataset) -> datasets.Dataset:
        _open(split, [evidence])
        kind = split.data.schema.field(evidence).type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        if value is not None and not (is_text or is_list):
            raise SettingError(f"column {evidence!r} holds {kind}, which has no empty text: pass value=None")
        blank: str | list[str] | None = [] if is_list and value is not None else value
        function = partial(_fill, column=evidence, value=blank)
        return _map(split, function, ["drop_evidence", ALGORITHM_VERSION, evidence, value], num_proc)

    return _each_split(dataset, one_split)


def _each_split(dataset: Data, one_split: Callable[[Any], Any]) -> Data:
    import datasets

    if isinstance(dataset, datasets.DatasetDict):
        return datasets.DatasetDict({name: one_split(split) for name, split in dataset.items()})
    if isinstance(dataset, datasets.Dataset | datasets.IterableDataset | datasets.IterableDatasetDict):
        return one_split(dataset)
    raise DataError(
        f"dataset: expected a datasets.Dataset or DatasetDict, got {type(dataset).__name__}; "
        "datasets.Dataset.from_list makes one of a list of dicts"
    )


def _open(dataset: Any, columns: Sequence[str]) -> Source:
    source = as_source(dataset)
    for column in columns:
        if column not in source.columns:
            raise DataError(f"column {column!r} is not in the dataset; it has {', '.join(source.columns)}")
    if len(source) == 0:
        raise DataError("the dataset has no rows, so there is no evidence to intervene on")
    return source


def _check_shuffle(shuffle: str, label: str | None, metadata: tuple[str, ...]) -> None:
    if shuffle not in SHUFFLE_ARMS:
        raise SettingError(f"shuffle: {shuffle!r} is unknown; choose from {', '.join(SHUFFLE_ARMS)}")
    if shuffle == "within-label" and label is None:
        raise SettingError("shuffle='within-label' needs the label column: label='...'")
    if shuffle == "within-metadata" and not metadata:
        raise SettingError("shuffle='within-metadata' needs metadata columns: metadata=['...']")


def _donors(
    source: Source, evidence: str, shuffle: str, draws: Draws, label: str | None, metadata: tuple[str, ...]
) -> IntArray:
    """[n] the row whose evidence each row gets."""
    counts: list[IntArray] = []

    def texts() -> Iterator[Any]:
        counts.clear()  # `encode` reads twice
        start = 0
        for cells in source.chunks(evidence):
            found, sizes = evidence_texts(cells, evidence, partial(_place, source, start), set())
            counts.append(np.full(len(found), NULL, dtype=np.int64) if sizes is None else sizes)
            start += len(found)
            yield pc.fill_null(found, "")

    encoded = encode(texts, keyed=True)
    evidence_codes = codes(encoded)[0]
    if shuffle == "near-miss":
        from evidep.data.near_miss import nearest_other_texts

        return draw_neighbours(nearest_other_texts(encoded.column, evidence_codes), evidence_codes, draws)
    strata = None
    if shuffle == "within-label" and label is not None:
        strata = read_labels(source, label).index
    elif shuffle == "within-metadata":
        columns = [_metadata(source, column) for column in metadata]
        held = np.concatenate(counts)
        strata = cross([*columns, held] if (held != NULL).any() and EVIDENCE_COUNT not in metadata else columns)
    return permute(evidence_codes, strata, draws)[1]


def _metadata(source: Source, column: str) -> IntArray:
    def texts() -> Iterator[Any]:
        start = 0
        for cells in source.chunks(column):
            yield metadata_texts(cells, column, partial(_place, source, start))
            start += len(cells)

    return encode(texts).column.index


def _place(source: Source, start: int, at: int) -> str:
    return source.where(start + at)


def _map(dataset: Any, function: Callable[..., Any], identity: list[Any], num_proc: int | None) -> Any:
    from datasets.fingerprint import Hasher

    before = dataset.format
    bytes_per_row = dataset.data.nbytes / max(dataset.data.num_rows, 1)
    after = dataset.with_format("arrow").map(
        function,
        with_indices=True,
        batched=True,
        batch_size=int(min(1000, 1 + _BATCH_BYTES // (1 + bytes_per_row))),
        features=dataset.features,
        num_proc=num_proc,
        new_fingerprint=Hasher.hash([dataset._fingerprint, *identity]),
        desc="Evidence",
    )
    return after.with_format(before["type"], columns=before["columns"], **before["format_kwargs"])


def _take(batch: pa.Table, rows: list[int], *, column: str, source: Any, donors: IntArray) -> pa.Table:
    """The batch with the evidence of its rows' donors. Only this batch of `source` is gathered, never the column."""
    return _replace(batch, column, source[donors[rows]].column(0))


def _fill(batch: pa.Table, rows: list[int], *, column: str, value: Any) -> pa.Table:
    field = batch.schema.field(column)
    return _replace(batch, column, pa.array([value] * len(rows), type=field.type))


def _replace(batch: pa.Table, column: str, values: Any) -> pa.Table:
    at = batch.schema.get_field_index(column)
    return batch.set_column(at, batch.schema.field(at), values)
