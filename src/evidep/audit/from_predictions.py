"""MPDS and ΔEvi from predictions that somebody already has: what the evaluate modules and the Space compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from evidep.audit.results import detectable_effect
from evidep.errors import DataError
from evidep.metric_input import column_codes, label_codes, metadata_columns, same_lengths, shuffled_matrix
from evidep.stats.delta_evi import delta_evi
from evidep.stats.mpds import Mpds, metadata_predictions, metadata_predictions_out_of_fold, mpds, n_cells
from evidep.types import DeltaEvi, IntArray


def delta_evi_from_predictions(
    predictions: Any,
    references: Any,
    shuffled_predictions: Any,
    *,
    donors: Any = None,
    groups: Any = None,
    alpha: float = 0.05,
    margin: float = 0.02,
) -> DeltaEvi:
    """ΔEvi of a system that was run once with its evidence and K times with shuffled evidence.

    Args:
        predictions: [n] answers with the true evidence, int or str.
        references: [n] gold labels.
        shuffled_predictions: K lists of n answers, one per evidence shuffle, items in the same order.
        donors: K lists of n item positions: whose evidence was shown. With them the interval also covers the choice of
            evidence texts; without, it holds for items like these and this pool of evidence.
        groups: [n] names of groups whose items are not independent.
        alpha: Level of the test; the interval has level 1 - alpha.
        margin: Largest ΔEvi that counts as none.

    Raises:
        DataError: Labels of a wrong kind, lengths that differ, donors out of range.
        SettingError: alpha that K shuffles cannot reach, or a margin out of range.
    """
    n = same_lengths(predictions=predictions, references=references)
    matrix = shuffled_matrix(shuffled_predictions, n)
    (predicted, gold, shuffled), _ = label_codes(
        {"predictions": predictions, "references": references, "shuffled_predictions": matrix.ravel()}
    )
    correct_full = predicted == gold
    correct_shuffled = shuffled.reshape(matrix.shape) == gold
    return delta_evi(
        correct_full,
        correct_shuffled,
        _donors(donors, matrix.shape),
        groups=group_numbers(groups, n),
        correct_uniform=correct_shuffled,
        unchanged_rate=float("nan") if donors is None else 0.0,
        alpha=alpha,
        margin=margin,
    )


def delta_evi_values(result: DeltaEvi) -> dict[str, Any]:
    """The values of a ΔEvi result as the evaluate module returns them (plain Python, nan where undefined)."""
    return {
        "delta_evi": result.mean,
        "accuracy_full": result.accuracy_full,
        "accuracy_shuffled": list(result.accuracy_shuffled),
        "sd_population": result.sd_population,
        "p_value": result.p_value,
        "ci": [result.ci.low, result.ci.high],
        "verdict": result.verdict,
        "standard_error": result.standard_error,
        "minimum_detectable_effect": detectable_effect(result),
        "reason": result.reason,
    }


def mpds_from_predictions(
    predictions: Any,
    references: Any,
    metadata: Any,
    *,
    train_references: Any = None,
    train_metadata: Any = None,
    groups: Any = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> Mpds:
    """MPDS of a system's answers, against a predictor that sees metadata alone.

    Without train data the metadata predictor is scored out of fold on the given items (stratified, groups kept
    together), never on rows that it was fitted on.

    Raises:
        DataError: Labels or columns of a wrong kind or length, train data given by half.
    """
    n = same_lengths(predictions=predictions, references=references)
    columns = metadata_columns(metadata, n)
    if (train_references is None) != (train_metadata is None):
        raise DataError("train_references and train_metadata belong together: give both or neither")
    numbers = group_numbers(groups, n)
    labels = {"predictions": predictions, "references": references}
    if train_references is None:
        (predicted, gold), values = label_codes(labels)
        codes, _ = column_codes(columns)
        folds, majority = _out_of_fold(gold, numbers, seed)
        guesses = metadata_predictions_out_of_fold(codes, gold, folds, len(values))
    else:
        same_train = same_lengths(train_references=train_references)
        train_columns = metadata_columns(train_metadata, same_train, "train_metadata")
        (predicted, gold, train), values = label_codes(labels | {"train_references": train_references})
        codes, train_codes = column_codes(columns, train_columns)
        assert train_codes is not None
        majority = np.full(n, np.bincount(train).argmax())
        guesses = metadata_predictions(train_codes, train, codes, len(values))
    return mpds(
        guesses == gold,
        predicted == gold,
        float((majority == gold).mean()),
        correct_majority=majority == gold,
        groups=numbers,
        alpha=alpha,
        seed=seed,
        n_cells=n_cells(codes),
    )


def group_numbers(groups: Any, n: int) -> IntArray | None:
    """Groups as integers. A missing name is refused: it would silently merge unrelated items.

    Raises:
        DataError: A wrong length or a missing group.
    """
    if groups is None:
        return None
    listed = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if len(listed) != n:
        raise DataError(f"groups: expected {n} group names, got {len(listed)}")
    for position, value in enumerate(listed):
        if value is None or value != value:
            raise DataError(f"groups[{position}]: is missing; give every item a group, a single item one of its own")
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(value, len(seen)) for value in listed], dtype=np.int64)


def _out_of_fold(gold: IntArray, groups: IntArray | None, seed: int) -> tuple[IntArray, IntArray]:
    from evidep.data.splits import stratified_group_folds

    components = np.arange(len(gold)) if groups is None else groups
    folds = stratified_group_folds(gold, components, 5, seed=seed).fold
    majority = np.empty(len(gold), dtype=np.int64)
    for fold in np.unique(folds):
        majority[folds == fold] = np.bincount(gold[folds != fold]).argmax()
    return folds, majority


def _donors(donors: Any, shape: tuple[int, ...]) -> IntArray | None:
    if donors is None:
        return None
    array = np.asarray(donors)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise DataError(f"donors: expected whole numbers of shape {shape}, got {array.dtype} of shape {array.shape}")
    if array.min() < 0 or array.max() >= shape[1]:
        raise DataError(f"donors: expected item positions from 0 to {shape[1] - 1}, got {int(array.max())}")
    return array.astype(np.int64)
