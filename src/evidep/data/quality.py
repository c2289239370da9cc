"""What is wrong or remarkable about the data, counted before any reader sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from evidep.data.cells import Cells, factor
from evidep.data.gather import Gathered
from evidep.data.roles import key_of
from evidep.data.sources import Source
from evidep.types import BLANK, MISSING, NULL, PRESENT, ColumnRoles, IntArray, PairTable

LOPSIDED: Final = 0.2
"""Share of items in one component above which folds and cluster intervals rest on too few independent parts."""

_NOT_METADATA: Final = frozenset({"id", "uid", "guid", "idx", "index", "split", "pairid"})


@dataclass(frozen=True, slots=True)
class SplitReport:
    """Counts of one split. Texts are compared as normalised text throughout.

    Attributes:
        name: Name of the split, or None.
        rows_read: Rows found.
        rows_kept: Rows that became items.
        dropped: Reason to number of rows that did not become items.
        label_counts: Label name to number of items.
        evidence_states: Items whose evidence is "present", "blank" (empty or whitespace) or "missing" (None).
        duplicate_rows: Items that repeat an earlier item's query, evidence and label.
        conflicting_pairs: Distinct (query, evidence) pairs that occur with more than one label.
        conflicting_rows: Items of those pairs.
        repeated_evidence_share: Share of items whose (non-blank) evidence another item has too.
        largest_evidence_group: Most items that share one non-blank evidence.
        n_groups: Clusters for intervals.
        n_components: Clusters for folds.
        largest_component_share: Share of items in the largest cluster for folds, in (0, 1].
    """

    name: str | None
    rows_read: int
    rows_kept: int
    dropped: Mapping[str, int]
    label_counts: Mapping[str, int]
    evidence_states: Mapping[str, int]
    duplicate_rows: int
    conflicting_pairs: int
    conflicting_rows: int
    repeated_evidence_share: float
    largest_evidence_group: int
    n_groups: int
    n_components: int
    largest_component_share: float


@dataclass(frozen=True, slots=True)
class Overlap:
    """Evaluation items whose normalised text occurs in the train split too. They are reported, not dropped.

    Attributes:
        pairs: Items whose query and evidence occur there together.
        queries: Items whose query occurs there.
        evidence: Items whose non-blank evidence occurs there.
    """

    pairs: int
    queries: int
    evidence: int


@dataclass(frozen=True, slots=True)
class DataReport:
    """What was read, dropped and noticed.

    Attributes:
        evaluation: Counts of the evaluation split.
        train: Counts of the train split, or None.
        overlap: Shared texts of the two splits, or None.
        notes: Sentences for the user: what was inferred, and what to be wary of.
        candidate_metadata: Unused columns that could be named as metadata.
        candidate_groups: Unused columns that look like they name items that belong together.
    """

    evaluation: SplitReport
    train: SplitReport | None
    overlap: Overlap | None
    notes: tuple[str, ...]
    candidate_metadata: tuple[str, ...]
    candidate_groups: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers, ready for JSON."""
        report = asdict(self)
        for key in ("notes", "candidate_metadata", "candidate_groups"):
            report[key] = list(report[key])
        return report


def split_report(split: Gathered, table: PairTable, pair_codes: IntArray) -> SplitReport:
    """Count what is in one split.

    Args:
        split: What was gathered.
        table: The items.
        pair_codes: [n] equal exactly where two items' query and evidence are equal as normalised text.
    """
    n = len(table)
    states = np.bincount(table.evidence_state, minlength=3)
    with_text = table.evidence_codes[table.evidence_state == PRESENT]
    sizes = np.bincount(with_text) if len(with_text) else np.zeros(1, dtype=np.int64)
    labelled = _pairing(pair_codes, table.labels)
    labels_per_pair = np.bincount(pair_codes[np.unique(labelled, return_index=True)[1]])
    in_conflict = labels_per_pair > 1
    return SplitReport(
        name=split.name,
        rows_read=split.rows_read,
        rows_kept=n,
        dropped=split.dropped,
        label_counts=dict(
            zip(table.label_names, np.bincount(table.labels, minlength=table.n_classes).tolist(), strict=True)
        ),
        evidence_states={
            "present": int(states[PRESENT]),
            "blank": int(states[BLANK]),
            "missing": int(states[MISSING]),
        },
        duplicate_rows=n - len(np.unique(labelled)),
        conflicting_pairs=int(in_conflict.sum()),
        conflicting_rows=int(in_conflict[pair_codes].sum()),
        repeated_evidence_share=float(sizes[sizes > 1].sum() / n),
        largest_evidence_group=int(sizes.max()),
        n_groups=int(table.groups.max()) + 1,
        n_components=int(table.components.max()) + 1,
        largest_component_share=float(np.bincount(table.components).max() / n),
    )


def data_report(
    splits: Sequence[Gathered],
    tables: Sequence[PairTable],
    query_codes: Sequence[IntArray],
    evidence_codes: Sequence[IntArray],
    candidates: tuple[tuple[str, ...], tuple[str, ...]],
    notes: Sequence[str],
) -> DataReport:
    """The report on an evaluation and, where there is one, a train split (in that order in every argument).

    Args:
        splits: What was gathered.
        tables: The finished tables.
        query_codes: For each split [n], equal exactly where queries are equal, within and across splits.
        evidence_codes: The same for the evidence.
        candidates: Columns that could be metadata, and groups.
        notes: Sentences that come first.
    """
    pairs = pair_codes(query_codes, evidence_codes)
    reports = [split_report(*found) for found in zip(splits, tables, pairs, strict=True)]
    sentences = list(notes)
    for report, role in zip(reports, ("evaluation", "train"), strict=False):
        sentences += warnings(report, role)
    shared = None
    if len(splits) > 1:
        texts = [
            np.where(split.state == PRESENT, code, NULL) for split, code in zip(splits, evidence_codes, strict=True)
        ]
        shared = Overlap(*(_shared(*codes) for codes in (pairs, query_codes, texts)))
        if shared.pairs:
            sentences.append(
                f"{shared.pairs} of {len(tables[0])} evaluation items occur in the train split too (query and "
                "evidence); they were kept."
            )
    metadata, groups = candidates
    if metadata:
        sentences.append(f"Columns that could be metadata (none is used unless named): {', '.join(metadata)}.")
    if groups:
        sentences.append(f"Columns that may name items that belong together (--group COLUMN): {', '.join(groups)}.")
    train = reports[1] if len(splits) > 1 else None
    return DataReport(reports[0], train, shared, tuple(sentences), metadata, groups)


def pair_codes(queries: Sequence[IntArray], evidence: Sequence[IntArray]) -> list[IntArray]:
    """For each split, [n] integers equal exactly where both codes are equal, within and across splits."""
    joined = _pairing(np.concatenate(queries), np.concatenate(evidence))
    _, dense = np.unique(joined, return_inverse=True)
    return np.split(dense.astype(np.int64), np.cumsum([len(part) for part in queries])[:-1])


def _shared(evaluation: IntArray, train: IntArray) -> int:
    return int((np.isin(evaluation, train) & (evaluation >= 0)).sum())


def warnings(report: SplitReport, role: str) -> list[str]:
    """Sentences about what in the counts makes an audit weaker or doubtful."""
    n, found = report.rows_kept, []
    place = role if report.name is None else f"{role} split {report.name!r}"
    for reason, count in report.dropped.items():
        found.append(f"{count} of {report.rows_read} rows of the {place} were dropped: {reason}.")
    if report.dropped.get("label -1", 0) > report.rows_read / 10:
        found.append("If -1 is a class and not a missing label, turn the labels into names before the audit.")
    if without := n - report.evidence_states["present"]:
        found.append(
            f"{without} of {n} items of the {place} have no evidence text "
            f"({report.evidence_states['blank']} blank, {report.evidence_states['missing']} missing); they were kept."
        )
    if report.duplicate_rows:
        found.append(
            f"{report.duplicate_rows} of {n} items of the {place} repeat an earlier query, evidence and label."
        )
    if report.conflicting_pairs:
        found.append(
            f"{report.conflicting_rows} of {n} items of the {place} share query and evidence with an item of another "
            f"label ({report.conflicting_pairs} pairs): no reader can get all of them right."
        )
    if report.largest_component_share > LOPSIDED:
        found.append(
            f"{report.largest_component_share:.0%} of the {place} hang together through shared queries, evidence or "
            "groups: folds and intervals rest on few independent parts."
        )
    classes = sum(count > 0 for count in report.label_counts.values())
    if classes > max(20, n / 4):
        found.append(f"The {place} has {classes} labels in {n} items: free answers rather than classes?")
    return found


def candidate_columns(source: Source, roles: ColumnRoles) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Unused columns that could be metadata, and those whose name and repeats suggest a group.

    Metadata: between two distinct values and half as many as rows, in the first rows looked at. Group: a name that
    ends in "group" or "id", with values that repeat.
    """
    metadata, groups = [], []
    used = {roles.query, roles.evidence, roles.label, roles.group, *roles.metadata}
    for column in source.columns:
        name = key_of(column)
        if column in used or name in _NOT_METADATA:
            continue
        cells: Cells = next(source.chunks(column), [])
        distinct, _ = factor(cells)
        try:
            count = len({value for value in distinct if value is not None})
        except TypeError:  # nested values cannot be hashed
            continue
        if name.endswith(("group", "id")):
            if roles.group is None and 1 < count < len(cells):
                groups.append(column)
        elif 1 < count <= len(cells) / 2:
            metadata.append(column)
    return tuple(metadata), tuple(groups)


def _pairing(left: IntArray, right: IntArray) -> IntArray:
    """One integer for each pair of codes >= 0."""
    return left * (int(right.max(initial=0)) + 1) + right
