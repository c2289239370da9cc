"""Labels predicted from metadata alone: the commonest training label of a cell, with coarser cells behind it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from evidep.errors import DataError
from evidep.stats.accuracy import label_codes
from evidep.stats.checks import check_count, codes, same_length
from evidep.types import FloatArray, IntArray

STRENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Back-off strengths to choose from: how many items of its own a cell needs to outweigh the coarser cell around it."""

MetadataRule = Literal["majority", "smoothed"]
_BARELY = 2.0**-30  # only decides between equal counts
_ELEMENTS = 1 << 22
_TIE = 1e-12


def n_cells(columns: Sequence[ArrayLike]) -> int:
    """Number of distinct metadata tuples; a missing value (-1) is a value of its own.

    Raises:
        DataError: If there are no columns or they differ in length.
    """
    return int(_cells(_dense(columns, "columns")).max(initial=-1)) + 1


def metadata_predictions(
    train_columns: Sequence[ArrayLike],
    train_labels: ArrayLike,
    eval_columns: Sequence[ArrayLike],
    n_classes: int,
    rule: MetadataRule = "majority",
) -> IntArray:
    """Predict each evaluation item's label from its metadata alone, as learnt on the training items.

    "majority" is the metadata-majority predictor of MPDS: the commonest training label of the item's metadata cell. An
    unseen cell backs off to ever smaller sets of columns, down to none (the training majority); equal counts go to the
    label that the smaller set prefers, then to the smaller label.

    "smoothed" is the stronger predictor that one can build from the same columns; it is no part of MPDS.

    Every choice is made on the training items alone, is deterministic, and reads ("loss" is the leave-one-out log-loss
    on the training items):

    - Order of the chain, from coarse to fine. It starts with the pair of columns of least loss, the better of the two
      first, or with the best single column where no pair is better; then the column of least loss is added, until all
      are in (ties: the earlier column). At most m^2 subsets of m columns are looked at.
    - Small cells, smoothed rule only. A cell seen once is a noisy vote, so label shares are smoothed towards the
      coarser cell: P(label | cell) = (count + strength * P(label | coarser cell)) / (items + strength). An unseen cell
      thus takes the answer of the coarser one. At strengths 0.5 and 1 a seen cell nearly always answers its commonest
      label; higher ones let a decided coarser cell outvote a few items.
    - How fine and how strong, smoothed rule only. The number of columns, from none to all, and the strength, from
      `STRENGTHS`, are those of least loss (ties: more columns, then the smaller strength). So an identifier, which
      repeats nothing, is not used, and neither is noise.
    - Equal shares go to the smaller label.

    Args:
        train_columns: m arrays [n_train] of integer codes, one per metadata column; -1 stands for a missing value.
        train_labels: [n_train] labels in [0, n_classes).
        eval_columns: m arrays [n_eval], coded alike.
        n_classes: Number of classes C.
        rule: How cells vote, see above.

    Returns:
        [n_eval] predicted labels.

    Raises:
        DataError: If columns are missing, differ in number or length, or a label is outside [0, n_classes).
        SettingError: If n_classes is below 1.
    """
    check_count(n_classes, "n_classes")
    if len(train_columns) != len(eval_columns):
        raise DataError(
            f"eval_columns: expected {len(train_columns)} columns as in train_columns, got {len(eval_columns)}"
        )
    labels = label_codes(train_labels, n_classes, "train_labels")
    n_train = len(labels)
    if n_train == 0:
        raise DataError("train_labels: expected at least one training item, got none")
    train = [codes(column, f"train_columns[{at}]", length=n_train) for at, column in enumerate(train_columns)]
    held_out = [codes(column, f"eval_columns[{at}]") for at, column in enumerate(eval_columns)]
    for at, column in enumerate(held_out):
        same_length(len(column), len(held_out[0]), f"eval_columns[{at}]")
    columns = _dense([np.concatenate(pair) for pair in zip(train, held_out, strict=True)], "train_columns")
    if len(held_out[0]) == 0:
        return np.empty(0, dtype=np.int64)
    order = _order([column[:n_train] for column in columns], labels, n_classes)
    chain = [_cells([columns[k] for k in order[: depth + 1]]) for depth in range(len(order))]
    depth, strength = len(chain), _BARELY
    if rule == "smoothed":
        depth, strength = _depth_and_strength([cells[:n_train] for cells in chain], labels, n_classes)
    return _predict(chain[:depth], labels, n_train, len(held_out[0]), n_classes, strength)


def metadata_predictions_out_of_fold(
    columns: Sequence[ArrayLike],
    labels: ArrayLike,
    folds: ArrayLike,
    n_classes: int,
    rule: MetadataRule = "majority",
) -> IntArray:
    """`metadata_predictions` without a training split: each fold is predicted from the items of all other folds.

    Args:
        columns: m arrays [n] of integer codes.
        labels: [n] labels in [0, n_classes).
        folds: [n] fold of each item. Items that belong together must share a fold.
        n_classes: Number of classes C.
        rule: How cells vote, as in `metadata_predictions`.

    Raises:
        DataError: As in `metadata_predictions`, or if there are fewer than two folds.
    """
    gold = label_codes(labels, n_classes, "labels")
    fold = codes(folds, "folds", length=len(gold))
    names = np.unique(fold)
    if len(names) < 2:
        raise DataError(f"folds: expected at least two folds, got {len(names)}; a predictor is never scored on its own")
    arrays = [codes(column, f"columns[{at}]", length=len(gold)) for at, column in enumerate(columns)]
    predictions = np.empty(len(gold), dtype=np.int64)
    for name in names:
        held_out = fold == name
        predictions[held_out] = metadata_predictions(
            [column[~held_out] for column in arrays],
            gold[~held_out],
            [column[held_out] for column in arrays],
            n_classes,
            rule,
        )
    return predictions


def _dense(columns: Sequence[ArrayLike], name: str) -> list[IntArray]:
    if len(columns) == 0:
        raise DataError(f"{name}: expected at least one metadata column, got none; MPDS is undefined without metadata")
    arrays = [codes(column, f"{name}[{at}]") for at, column in enumerate(columns)]
    for at, array in enumerate(arrays):
        same_length(len(array), len(arrays[0]), f"{name}[{at}]")
    return [np.unique(array, return_inverse=True)[1].astype(np.int64, copy=False) for array in arrays]


def _cells(columns: Sequence[IntArray]) -> IntArray:
    """[n] number of each item's tuple of codes, 0 .. cells - 1; columns are dense codes, at least one."""
    key, span = np.zeros_like(columns[0]), 1
    for column in columns:
        values = int(column.max(initial=0)) + 1
        if span > (1 << 62) // values:
            key, span = _ranks(key, span)
        key, span = key * values + column, span * values
    return _ranks(key, span)[0]


def _ranks(key: IntArray, span: int) -> tuple[IntArray, int]:
    """Keys below `span` renumbered 0 .. distinct - 1 in their order, and the number of distinct ones."""
    if span <= 8 * len(key):  # four times as quick as sorting
        used = np.zeros(span, dtype=np.bool_)
        used[key] = True
        return (np.cumsum(used) - 1)[key], int(used.sum())
    distinct, inverse = np.unique(key, return_inverse=True)
    return inverse.astype(np.int64, copy=False), len(distinct)


def _order(columns: list[IntArray], labels: IntArray, n_classes: int) -> list[int]:
    """Columns from the coarsest cell to the finest, as `metadata_predictions` declares."""
    prior = _own_prior(labels, n_classes)

    def loss(subset: Sequence[int]) -> float:
        return _loss(_smoothed(_cells([columns[k] for k in sorted(subset)]), labels, prior, 1.0))

    everything = range(len(columns))
    single = [loss([k]) for k in everything]
    pairs = {pair: loss(pair) for pair in itertools.combinations(everything, 2)}
    order = [_least(single)]
    if pairs and min(pairs.values()) < single[order[0]] - _TIE:
        names = list(pairs)
        pair = names[_least([pairs[name] for name in names])]
        order = sorted(pair, key=lambda k: (single[k], k))
    while len(order) < len(columns):
        rest = [k for k in everything if k not in order]
        order.append(rest[_least([loss([*order, k]) for k in rest])])
    return order


def _least(losses: Sequence[float]) -> int:
    """Position of the smallest loss; of those equal but for rounding, the first."""
    return next(at for at, value in enumerate(losses) if value <= min(losses) + _TIE)


def _own_prior(labels: IntArray, n_classes: int) -> FloatArray:
    """[n] share of each item's label among the other items, smoothed by one item spread over the classes."""
    counts = np.bincount(labels, minlength=n_classes)
    return np.asarray((counts[labels] - 1 + 1.0 / n_classes) / len(labels))


def _smoothed(cells: IntArray, labels: IntArray, coarser: FloatArray, strength: float) -> FloatArray:
    """[n] share of each item's label in its cell, the item itself left out, smoothed towards the coarser share."""
    same = _same_label(cells, labels) - 1
    others = np.bincount(cells)[cells] - 1
    return np.asarray((same + strength * coarser) / (others + strength))


def _loss(own: FloatArray) -> float:
    return -float(np.log(own).mean())


def _same_label(cells: IntArray, labels: IntArray) -> IntArray:
    """[n] items that share each item's cell and label, itself included."""
    key = cells * (int(labels.max()) + 1) + labels
    if int(key.max()) <= 4 * len(key):
        return np.asarray(np.bincount(key)[key])
    _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse])


def _depth_and_strength(chain: list[IntArray], labels: IntArray, n_classes: int) -> tuple[int, float]:
    """Number of columns and strength of least leave-one-out loss; `chain` runs from coarse to fine."""
    prior = _own_prior(labels, n_classes)
    best = (_loss(prior), 0, STRENGTHS[0])
    for strength in STRENGTHS:
        own = prior
        for depth, cells in enumerate(chain, start=1):
            own = _smoothed(cells, labels, own, strength)
            loss = _loss(own)
            tied = abs(loss - best[0]) <= _TIE
            if loss < best[0] - _TIE or (tied and depth > best[1]):
                best = (loss, depth, strength)
    return best[1], best[2]


def _predict(
    chain: list[IntArray], labels: IntArray, n_train: int, n_eval: int, n_classes: int, strength: float
) -> IntArray:
    """Predictions of the items after the training ones, worked out once for each distinct finest cell."""
    prior = (np.bincount(labels, minlength=n_classes) + 1.0 / n_classes) / (n_train + 1)
    if not chain:
        return np.full(n_eval, prior.argmax(), dtype=np.int64)
    ones = np.ones(n_train)
    tables = [
        sparse.csr_array((ones, (cells[:n_train], labels)), shape=(int(cells.max()) + 1, n_classes)) for cells in chain
    ]
    _, first, inverse = np.unique(chain[-1][n_train:], return_index=True, return_inverse=True)
    item = first + n_train
    answer = np.empty(len(item), dtype=np.int64)
    rows = max(1, _ELEMENTS // n_classes)
    for start in range(0, len(item), rows):
        part = item[start : start + rows]
        shares = np.broadcast_to(prior, (len(part), n_classes))
        for cells, table in zip(chain, tables, strict=True):
            counts = table[cells[part]].toarray()
            shares = (counts + strength * shares) / (counts.sum(axis=1, keepdims=True) + strength)
        answer[start : start + rows] = shares.argmax(axis=1)
    return answer[inverse]
