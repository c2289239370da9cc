"""Diagnostics of Shao (arXiv 2605.23701): metadata shift, flip of one metadata field, filtering by metadata.

The summary of the paper that is public names these without their settings; what is done here is said at each function.
All of them refit readers on subsets, so they run only when asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from evidep.audit.assemble import interval
from evidep.audit.metadata_flips import (
    MetadataSplit,
    metadata_flips,
    reader_flips,
    refit_predictions,
    value_texts,
)
from evidep.audit.refits import refittable
from evidep.audit.runner import RunContext, Steps
from evidep.data.splits import stratified_group_folds
from evidep.data.table import aligned_codes
from evidep.readers.protocol import Reader
from evidep.readers.registry import make_reader
from evidep.stats.diagnostics import shift_value, side_difference
from evidep.stats.metadata_cells import metadata_predictions_out_of_fold
from evidep.stats.paired import cluster_mean
from evidep.types import BoolArray, IntArray, PairTable

MOST_COLUMNS: Final = 4
LEAST_TRAIN: Final = 20


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
    readers, reasons = refittable(context.settings.readers, "diagnostics")
    left_out = tuple(split.train.metadata)[MOST_COLUMNS:]
    if left_out:
        reasons.append(f"only the first {MOST_COLUMNS} columns are used; left out: {', '.join(left_out)}")
    usable = [number for number, codes in enumerate(split.train_codes[:MOST_COLUMNS]) if len(np.unique(codes)) > 1]
    for number, column in enumerate(split.columns):
        if number not in usable:
            reasons.append(f"{column}: no flip, all training items have one value")
    shift, flip, filtering = [], metadata_flips(context, split, usable), []
    for spec, name in readers:
        step(f"{name}: metadata flip", 0)
        flip += reader_flips(context, split, usable, spec)
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


def _split(context: RunContext) -> tuple[MetadataSplit, str]:
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
    return MetadataSplit(train, evaluation, kept, train_codes, codes), words


def _shift(
    context: RunContext, split: MetadataSplit, spec: str | Reader, number: int
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
        return f"{column}: no shift, no value is held by 5 to 50 % of the train items and 5 % of the evaluation items"
    train, evaluation, alpha = split.train, split.evaluation, context.settings.alpha
    kept = np.flatnonzero(split.train_codes[number] != value)
    unfit = _unfit(train, kept)
    if unfit is not None:
        return f"{column}: no shift, without {_text_of(split, number, value)} {unfit}"
    random = np.random.default_rng([context.settings.seed, number]).permutation(len(train))[: len(kept)]
    shifted = split.codes[number] == value
    right = {
        name: refit_predictions(context, spec, train.select(np.sort(rows)), evaluation) == evaluation.labels
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
        "gap_ci": interval(gap.ci),
        "accuracy_shifted_same_size": float(right["same size"][shifted].mean()),
        "loss": loss.estimate,
        "loss_ci": interval(loss.ci),
        "reason": _joined({"gap": _sides(gap.reason), "loss": loss.reason}),
    }
    return row, _filtering(context, split, spec, number, kept, shifted, row)


def _filtering(
    context: RunContext,
    split: MetadataSplit,
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
    if len(np.unique(part.components)) < 2:
        reason = "all training items are connected, so that metadata cannot be tried out of fold"
        return row | nothing | {"dropped_share": math.nan, "train_rows": None, "change_ci": None, "reason": reason}
    folds = stratified_group_folds(part.labels, part.components, context.settings.n_folds, seed=context.settings.seed)
    codes = [column[kept] for column in split.train_codes]
    risky = metadata_predictions_out_of_fold(codes, part.labels, folds.fold, part.n_classes) == part.labels
    row |= {"dropped_share": float(risky.mean()), "train_rows": int((~risky).sum())}
    rest = np.flatnonzero(~risky)
    unfit = _unfit(part, rest)
    if unfit is not None:
        return row | nothing | {"change_ci": None, "reason": f"after filtering {unfit}"}
    drawn = np.random.default_rng([context.settings.seed, number, 1]).permutation(len(part))[: len(rest)]
    after, random = (
        refit_predictions(context, spec, part.select(rows), evaluation) == evaluation.labels
        for rows in (rest, np.sort(drawn))
    )
    change = side_difference(after.astype(float) - random, ~shifted, evaluation.groups, alpha)
    return row | {
        "gap_after": side_difference(after, ~shifted, evaluation.groups, alpha).difference,
        "gap_same_size": side_difference(random, ~shifted, evaluation.groups, alpha).difference,
        "accuracy_after": float(after.mean()),
        "change": change.difference,
        "change_ci": interval(change.ci),
        "reason": _sides(change.reason),
    }


def _unfit(train: PairTable, rows: IntArray) -> str | None:
    """Why no reader can be fitted on these training items, or None."""
    if len(rows) < LEAST_TRAIN:
        return f"{len(rows)} training items are left, at least {LEAST_TRAIN} are needed"
    labels = np.unique(train.labels[rows])
    if len(labels) < 2:
        return f"one label is left: all {len(rows)} training items are {train.label_names[labels[0]]}"
    return None


def _text_of(split: MetadataSplit, number: int, code: int) -> str:
    return value_texts(split)[number][code]


def _sides(reason: str | None) -> str | None:
    """The reason of a `side_difference`, its two sets called what they are here."""
    return reason and reason.replace("outside the set", "shifted items").replace("inside the set", "other items")


def _joined(reasons: Mapping[str, str | None]) -> str | None:
    """Reasons, each after the values that it concerns."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        if reason:
            names.setdefault(reason, []).append(name)
    return "; ".join(f"{' and '.join(of)}: {reason}" for reason, of in names.items()) or None
