"""Diagnostics of Shao (arXiv 2605.23701): metadata shift, flip of one metadata field, filtering by metadata.

The summary of the paper that is public names these without their settings; what is done here is said at each function.
All of them refit readers on subsets, so they run only when asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evidep.audit.runner import RunContext, Steps
from evidep.audit.scoring import ReaderRun
from evidep.data.conditions import full
from evidep.data.splits import stratified_group_folds
from evidep.data.table import aligned_codes
from evidep.readers.protocol import Reader
from evidep.readers.registry import make_reader
from evidep.stats.accuracy import accuracy_interval
from evidep.stats.diagnostics import flipped, shift_value, side_difference
from evidep.stats.metadata_cells import metadata_predictions, metadata_predictions_out_of_fold
from evidep.stats.paired import cluster_mean
from evidep.types import BoolArray, IntArray, Interval, PairTable, StringColumn

MOST_COLUMNS: Final = 4
LEAST_TRAIN: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """Train and evaluation items, and their metadata as codes that mean the same in both."""

    train: PairTable
    evaluation: PairTable
    columns: tuple[str, ...]
    train_codes: list[IntArray]
    codes: list[IntArray]


def run_diagnostics(context: RunContext, step: Steps) -> dict[str, Any]:
    """All three diagnostics for every reader that can be fitted, at the audit's first seed.

    Without a train split, readers are fitted on all folds but the first and asked about the first.

    Returns:
        The packet's `diagnostics`: `split` in words, rows of `shift`, `flip` and `filtering`, and `reasons` for what
        could not be done.
    """
    if not context.table.metadata:
        reason = "the diagnostics need metadata columns; name some with --metadata"
        return {"split": None, "shift": [], "flip": [], "filtering": [], "reasons": [reason]}
    split, words = _split(context)
    reasons: list[str] = []
    left_out = tuple(split.train.metadata)[MOST_COLUMNS:]
    if left_out:
        reasons.append(f"only the first {MOST_COLUMNS} columns are used; left out: {', '.join(left_out)}")
    shift, flip, filtering = [], _metadata_flips(context, split), []
    for spec in context.settings.readers:
        reader = make_reader(spec)
        if reader.info.strength == "baseline" or not getattr(reader, "trainable", True):
            continue
        name = reader.info.name
        step(f"{name}: metadata flip", 0)
        flip += _reader_flips(context, split, spec)
        for number, column in enumerate(split.columns):
            step(f"{name}: shift of {column}", 0)
            found = _shift(context, split, spec, number)
            if isinstance(found, str):
                reasons.append(found)
                continue
            shift.append(found[0])
            filtering.append(found[1])
    return {
        "split": words, "shift": shift, "flip": flip, "filtering": filtering, "reasons": list(dict.fromkeys(reasons)),
    }  # fmt: skip


def _split(context: RunContext) -> tuple[_Split, str]:
    data = context.data
    if data.train is not None:
        train, evaluation, words = data.train, data.evaluation, "fitted on the train split, asked about the evaluation"
    else:
        assert context.folds is not None
        first = context.folds == context.folds.min()
        train, evaluation = (data.evaluation.select(np.flatnonzero(rows)) for rows in (~first, first))
        words = f"fitted on the evaluation's other folds, asked about the {int(first.sum())} items of the first fold"
    train_codes, codes = aligned_codes(train.metadata, evaluation.metadata)
    assert train_codes is not None
    kept = tuple(evaluation.metadata)[:MOST_COLUMNS]
    return _Split(train, evaluation, kept, train_codes, codes), words


def _predictions(context: RunContext, spec: str | Reader, train: PairTable, evaluation: PairTable) -> IntArray:
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


def _shift(
    context: RunContext, split: _Split, spec: str | Reader, number: int
) -> tuple[dict[str, Any], dict[str, Any]] | str:
    """Accuracy on items with a metadata value that training never saw, before and after filtering by metadata.

    The commonest value that at most half of the training items have is held out. The loss is measured on the items with
    that value, against a reader fitted on equally many training items drawn at random. The gap is the accuracy on the
    other items minus that on these. Filtering drops, out of the training items that are left, those whose label the
    metadata predict (out of fold), and measures the gap again; its change is against a reader fitted on equally few of
    them drawn at random, so that the smaller training set is not blamed on the filter.
    """
    column = split.columns[number]
    value = shift_value(split.train_codes[number], split.codes[number])
    if value is None:
        return f"{column}: no value is held by 5 to 50 % of the train items and 5 % of the evaluation items"
    train, evaluation, alpha = split.train, split.evaluation, context.settings.alpha
    kept = np.flatnonzero(split.train_codes[number] != value)
    if len(kept) < LEAST_TRAIN or len(np.unique(train.labels[kept])) < 2:
        return f"{column}: too little is left to fit on without the value held out ({len(kept)} items)"
    random = np.random.default_rng([context.settings.seed, number]).permutation(len(train))[: len(kept)]
    shifted = split.codes[number] == value
    right = {
        name: _predictions(context, spec, train.select(np.sort(rows)), evaluation) == evaluation.labels
        for name, rows in (("held out", kept), ("same size", random))
    }
    gap = side_difference(right["held out"], ~shifted, evaluation.groups, alpha)
    loss = cluster_mean(
        right["same size"][shifted].astype(float) - right["held out"][shifted], evaluation.groups[shifted], alpha
    )
    row = {
        "reader": make_reader(spec).info.name,
        "column": column,
        "value": _text_of(split, number, value),
        "items_shifted": int(shifted.sum()),
        "train_rows": len(kept),
        "accuracy_in_distribution": gap.mean_inside,
        "accuracy_shifted": gap.mean_outside,
        "gap": gap.difference,
        "gap_ci": _ends(gap.ci),
        "accuracy_shifted_same_size": float(right["same size"][shifted].mean()),
        "loss": loss.estimate,
        "loss_ci": _ends(loss.ci),
        "reason": gap.reason or loss.reason,
    }
    return row, _filtering(context, split, spec, number, kept, shifted, row)


def _filtering(
    context: RunContext,
    split: _Split,
    spec: str | Reader,
    number: int,
    kept: IntArray,
    shifted: BoolArray,
    shift: Mapping[str, Any],
) -> dict[str, Any]:
    evaluation, alpha = split.evaluation, context.settings.alpha
    row = {key: shift[key] for key in ("reader", "column", "value")} | {"gap_before": shift["gap"]}
    nothing = dict.fromkeys(("gap_after", "gap_same_size", "accuracy_after", "change"), math.nan)
    part = split.train.select(kept)
    folds = stratified_group_folds(part.labels, part.components, context.settings.n_folds, seed=context.settings.seed)
    codes = [column[kept] for column in split.train_codes]
    risky = metadata_predictions_out_of_fold(codes, part.labels, folds.fold, part.n_classes) == part.labels
    row |= {"dropped_share": float(risky.mean()), "train_rows": int((~risky).sum())}
    rest = part.labels[~risky]
    if len(rest) < LEAST_TRAIN or len(np.unique(rest)) < 2:
        return row | nothing | {"change_ci": None, "reason": f"too little is left after filtering: {len(rest)} items"}
    drawn = np.random.default_rng([context.settings.seed, number, 1]).permutation(len(part))[: len(rest)]
    after, random = (
        _predictions(context, spec, part.select(rows), evaluation) == evaluation.labels
        for rows in (np.flatnonzero(~risky), np.sort(drawn))
    )
    change = side_difference(after.astype(float) - random, ~shifted, evaluation.groups, alpha)
    return row | {
        "gap_after": side_difference(after, ~shifted, evaluation.groups, alpha).difference,
        "gap_same_size": side_difference(random, ~shifted, evaluation.groups, alpha).difference,
        "accuracy_after": float(after.mean()),
        "change": change.difference,
        "change_ci": _ends(change.ci),
        "reason": change.reason,
    }


def _metadata_flips(context: RunContext, split: _Split) -> list[dict[str, Any]]:
    """Share of the metadata-majority predictor's answers that change when one field takes another value."""

    def answers(columns: Sequence[IntArray]) -> IntArray:
        return metadata_predictions(split.train_codes, split.train.labels, columns, split.train.n_classes)

    before = answers(split.codes)
    rows = []
    for number, column in enumerate(split.columns):
        if len(np.unique(split.train_codes[number])) < 2:
            continue
        changed = list(split.codes)
        changed[number] = flipped(split.codes[number], split.train_codes[number], context.settings.seed)
        rows.append(_flip_row(context, split, "metadata", column, answers(changed) != before))
    return rows


def _reader_flips(context: RunContext, split: _Split, spec: str | Reader) -> list[dict[str, Any]]:
    """The same for a text reader that is fitted with the metadata written into the query ("column: value | query")."""
    usable = [number for number in range(len(split.columns)) if len(np.unique(split.train_codes[number])) > 1]
    if not usable:
        return []
    texts = _values(split)
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
    answers = _predictions(context, spec, train, asked).reshape(len(versions), -1)
    name = make_reader(spec).info.name
    return [
        _flip_row(context, split, name, split.columns[number], answers[at] != answers[0])
        for at, number in enumerate(usable, start=1)
    ]


def _flip_row(context: RunContext, split: _Split, reader: str, column: str, changed: BoolArray) -> dict[str, Any]:
    ci = accuracy_interval(changed, split.evaluation.groups, context.settings.alpha)
    share = float(changed.mean())
    return {"reader": reader, "column": column, "changed_share": share, "ci": _ends(ci), "reason": ci.reason}


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
    fingerprint = f"{table.fingerprint}|written:{names}:{version}:{codes_digest(codes)}"
    return replace(table, queries=StringColumn.from_list(list(queries)), fingerprint=fingerprint)


def codes_digest(codes: Sequence[IntArray]) -> str:
    """Short digest of integer columns, for fingerprints."""
    import hashlib

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


def _values(split: _Split) -> list[list[str]]:
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


def _text_of(split: _Split, number: int, code: int) -> str:
    return _values(split)[number][code]


def _ends(ci: Interval) -> list[float] | None:
    return [ci.low, ci.high] if math.isfinite(ci.low) and math.isfinite(ci.high) else None
