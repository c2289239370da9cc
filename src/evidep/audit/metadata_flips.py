"""Flip of one metadata field (Shao, arXiv 2605.23701): how many answers change when it takes another value."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from evidep.audit.assemble import interval
from evidep.audit.runner import RunContext
from evidep.audit.scoring import ReaderRun
from evidep.data.conditions import full
from evidep.readers.protocol import Reader
from evidep.readers.registry import make_reader
from evidep.stats.accuracy import accuracy_interval
from evidep.stats.diagnostics import flipped
from evidep.stats.metadata_cells import metadata_predictions
from evidep.types import BoolArray, IntArray, PairTable, StringColumn


@dataclass(frozen=True, slots=True, eq=False)
class MetadataSplit:
    """Train and evaluation items, and their metadata as codes that mean the same in both."""

    train: PairTable
    evaluation: PairTable
    columns: tuple[str, ...]
    train_codes: list[IntArray]
    codes: list[IntArray]


def metadata_flips(context: RunContext, split: MetadataSplit, usable: Sequence[int]) -> list[dict[str, Any]]:
    """Share of the metadata-majority predictor's answers that change when one field takes another value."""

    def answers(columns: Sequence[IntArray]) -> IntArray:
        return metadata_predictions(split.train_codes, split.train.labels, columns, split.train.n_classes)

    before = answers(split.codes)
    rows = []
    for number in usable:
        changed = list(split.codes)
        changed[number] = flipped(split.codes[number], split.train_codes[number], context.settings.seed)
        rows.append(_flip_row(context, split, "metadata", split.columns[number], answers(changed) != before))
    return rows


def reader_flips(
    context: RunContext, split: MetadataSplit, usable: Sequence[int], spec: str | Reader
) -> list[dict[str, Any]]:
    """The same for a text reader that is fitted with the metadata written into the query ("column: value | query")."""
    if not usable:
        return []
    texts = value_texts(split)
    train = _written(split.train, split.train_codes, texts, split.columns, "")
    versions = [split.codes]
    for number in usable:
        changed = list(split.codes)
        changed[number] = flipped(split.codes[number], split.train_codes[number], context.settings.seed)
        versions.append(changed)
    # All versions are one table, so that one fit answers them.
    asked = _stack(
        [_written(split.evaluation, codes, texts, split.columns, str(at)) for at, codes in enumerate(versions)]
    )
    answers = refit_predictions(context, spec, train, asked).reshape(len(versions), -1)
    name = make_reader(spec).info.name
    return [
        _flip_row(context, split, name, split.columns[number], answers[at] != answers[0])
        for at, number in enumerate(usable, start=1)
    ]


def _flip_row(
    context: RunContext, split: MetadataSplit, reader: str, column: str, changed: BoolArray
) -> dict[str, Any]:
    ci = accuracy_interval(changed, split.evaluation.groups, context.settings.alpha)
    share = float(changed.mean())
    return {"reader": reader, "column": column, "changed_share": share, "ci": interval(ci), "reason": ci.reason}


def _written(
    table: PairTable, codes: Sequence[IntArray], texts: list[list[str]], columns: Sequence[str], version: str
) -> PairTable:
    heads = [
        [f"{column}: {values[code]}" for code in of] for column, values, of in zip(columns, texts, codes, strict=False)
    ]
    queries = [
        " | ".join([*parts, "" if query is None else query])
        for *parts, query in zip(*heads, table.queries.to_list(), strict=True)
    ]
    names = ",".join(columns)
    fingerprint = f"{table.fingerprint}|written:{names}:{version}:{_codes_digest(codes)}"
    return replace(table, queries=StringColumn.from_list(list(queries)), fingerprint=fingerprint)


def _codes_digest(codes: Sequence[IntArray]) -> str:
    """Short digest of integer columns, for fingerprints."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(column, "<i8").tobytes() for column in codes)).hexdigest()[:16]


def _stack(tables: Sequence[PairTable]) -> PairTable:
    first, times = tables[0], len(tables)
    return replace(
        first,
        ids=pa.concat_arrays([table.ids for table in tables]),
        queries=StringColumn.from_list([text for table in tables for text in table.queries.to_list()]),
        evidence=replace(first.evidence, index=np.tile(first.evidence.index, times)),
        evidence_state=np.tile(first.evidence_state, times),
        evidence_codes=np.tile(first.evidence_codes, times),
        labels=np.tile(first.labels, times),
        metadata={},
        groups=np.tile(first.groups, times),
        components=np.tile(first.components, times),
        fingerprint="+".join(table.fingerprint for table in tables),
    )


def value_texts(split: MetadataSplit) -> list[list[str]]:
    """Text of each code of each column; the last entry, which code -1 picks, stands for a missing value."""
    found = []
    for number, column in enumerate(split.columns):
        size = max(int(codes[number].max(initial=-1)) for codes in (split.train_codes, split.codes)) + 1
        texts = ["none"] * (size + 1)
        for table, codes in ((split.train, split.train_codes), (split.evaluation, split.codes)):
            distinct, first = np.unique(codes[number], return_index=True)
            for code, row in zip(distinct.tolist(), first.tolist(), strict=True):
                if code >= 0:
                    texts[code] = table.metadata[column][row] or ""
        found.append(texts)
    return found


def refit_predictions(context: RunContext, spec: str | Reader, train: PairTable, evaluation: PairTable) -> IntArray:
    """Answers to the evaluation items, each with its own evidence, of a reader fitted on a table of one's own."""
    run = ReaderRun(
        lambda: make_reader(spec),
        train,
        evaluation,
        seed=context.settings.seed,
        store=context.store,
        workdir=context.workdir,
        context="diagnostics",
    )
    return next(run.cells([full(len(evaluation))])).predictions.astype(np.int64)
