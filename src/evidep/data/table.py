"""From rows to validated pairs: the only place where column names and items meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evidep.data import quality
from evidep.data.gather import Gathered, gather
from evidep.data.identity import codes, connected, fingerprint, lookup, renumbered
from evidep.data.labels import align_labels
from evidep.data.quality import DataReport
from evidep.data.roles import EVIDENCE_COUNT
from evidep.data.sources import as_source
from evidep.errors import DataError
from evidep.types import NULL, PRESENT, ColumnRoles, IntArray, PairTable, StringColumn


@dataclass(frozen=True, slots=True, eq=False)
class AuditData:
    """Everything that an audit knows about its data.

    Attributes:
        evaluation: The items that readers are scored on.
        train: The items that readers are fitted on; None means out-of-fold on the evaluation.
        roles: Which column played which part.
        report: What was read, dropped and noticed.
    """

    evaluation: PairTable
    train: PairTable | None
    roles: ColumnRoles
    report: DataReport


def build_audit_data(
    evaluation: Any,
    train: Any | None,
    roles: ColumnRoles,
    *,
    evaluation_name: str | None = None,
    train_name: str | None = None,
    notes: Sequence[str] = (),
) -> AuditData:
    """Validate rows and turn them into tables of items.

    Dropped, and counted by reason: rows without a label and rows whose query is None, empty or whitespace. Kept, and
    counted: rows without evidence, duplicates, items that the train split has too. Blank and missing evidence is the
    string "" and counts as one equal text as donors, but ties no items together: `groups` and `components` link items
    through evidence, query and group values that are really there. One evidence text that every item has links
    nothing either.

    Args:
        evaluation: Rows to score readers on: whatever `sources.as_source` takes.
        train: Rows to fit readers on, or None.
        roles: Which column plays which part, the same for both.
        evaluation_name: Name of the evaluation split, for ids and messages.
        train_name: Name of the train split.
        notes: Sentences that the report begins with.

    Returns:
        Tables with shared label names and the same metadata columns, and the report.

    Raises:
        DataError: If a column is absent, a value cannot be what its role asks for, a group is missing, the splits'
            labels do not fit together, or fewer than two classes or items remain.
    """
    sources = [as_source(evaluation, evaluation_name)]
    if train is not None:
        sources.append(as_source(train, train_name))
    splits = [gather(source, roles) for source in sources]
    names, labels, label_notes = align_labels([split.labels for split in splits], [split.name for split in splits])
    query_codes = codes(*(split.queries for split in splits))
    evidence_codes = codes(*(split.evidence for split in splits))
    metadata = _same_metadata(splits, roles)
    tables = [
        _table(split, names, split_labels, query, evidence, columns)
        for split, split_labels, query, evidence, columns in zip(
            splits, labels, query_codes, evidence_codes, metadata, strict=True
        )
    ]
    found = [note for split in splits for note in split.notes]
    report = quality.data_report(
        splits,
        tables,
        query_codes,
        evidence_codes,
        quality.candidate_columns(sources[0], roles),
        [*notes, *label_notes, *dict.fromkeys(found)],
    )
    return AuditData(tables[0], tables[1] if train is not None else None, roles, report)


def aligned_codes(
    train: Mapping[str, StringColumn] | None, evaluation: Mapping[str, StringColumn]
) -> tuple[list[IntArray] | None, list[IntArray]]:
    """Metadata as integers that mean the same text in both splits; NULL stays NULL.

    Returns:
        One array per column of `evaluation`, in its order: for the train split (or None) and for the evaluation.
        Codes of a column count up from 0 without gaps over both splits.

    Raises:
        DataError: If the train split lacks one of the columns.
    """
    parts: list[list[IntArray]] = [[], []]
    for name, column in evaluation.items():
        if train is not None and name not in train:
            raise DataError(f"the train split lacks the metadata column {name!r}; it has {', '.join(train) or 'none'}")
        columns = [column] if train is None else [column, train[name]]
        texts = pa.concat_arrays([c.texts for c in columns])
        flat = np.asarray(texts.dictionary_encode().indices, dtype=np.int64)
        offset = len(column.texts)
        found = [lookup(values, c.index) for values, c in zip((flat[:offset], flat[offset:]), columns, strict=False)]
        dense = renumbered(np.concatenate(found))
        for part, values in zip(parts, np.split(dense, [len(column)]), strict=True):
            part.append(values)
    return (None if train is None else parts[1]), parts[0]


def _same_metadata(splits: list[Gathered], roles: ColumnRoles) -> list[Mapping[str, StringColumn]]:
    """The metadata of each split, with a count of evidence texts in both where one has it."""
    counted = any(EVIDENCE_COUNT in split.metadata for split in splits)
    if EVIDENCE_COUNT in roles.metadata and not counted:
        raise DataError(
            f"metadata {EVIDENCE_COUNT!r} exists only where evidence values are lists; leave it out of --metadata"
        )
    if not counted:
        return [split.metadata for split in splits]
    return [{EVIDENCE_COUNT: StringColumn.from_list([None] * len(split)), **split.metadata} for split in splits]


def _evidence_link(state: NDArray[np.int8], evidence: IntArray) -> IntArray:
    """[n] code of the evidence that ties items together, NULL where it ties to nothing.

    Blank evidence ties nothing, and neither does one text that every item has: it tells items apart as little as a
    blank one, and would leave a single group of everything.
    """
    link = np.where(state == PRESENT, evidence, NULL)
    if len(link) and link[0] != NULL and bool((link == link[0]).all()):
        return np.full(len(link), NULL, dtype=np.int64)
    return link


def _table(
    split: Gathered,
    names: tuple[str, ...],
    labels: IntArray,
    query: IntArray,
    evidence: IntArray,
    metadata: Mapping[str, StringColumn],
) -> PairTable:
    n = len(split)
    links = [_evidence_link(split.state, evidence)]
    if split.group is not None:
        links.append(split.group)
    queries, texts = split.queries.column, split.evidence.column
    return PairTable(
        ids=split.ids,
        queries=queries,
        evidence=texts,
        evidence_state=split.state,
        evidence_codes=renumbered(evidence),
        labels=labels,
        label_names=names,
        metadata=metadata,
        groups=connected(n, *links),
        components=connected(n, query, *links),
        fingerprint=fingerprint(
            {"query": queries, "evidence": texts, **{f"metadata {k}": column for k, column in metadata.items()}},
            {"state": split.state, "label": labels, **({} if split.group is None else {"group": split.group})},
            {"labels": names},
        ),
    )
