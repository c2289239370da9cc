"""Cross-fitting folds that keep related items together, and the drift between two splits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evidep.errors import DataError, SettingError
from evidep.stats import checks
from evidep.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Folds:
    """A partition of the items for cross-fitting.

    Attributes:
        fold: [n] fold of each item, from 0; no fold is empty.
        n_folds: Number of folds, which is lower than asked for where there are fewer components.
        warnings: What a reader of the results should know: fewer folds, huge components, small classes.
    """

    fold: IntArray
    n_folds: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SplitDrift:
    """How far the label distribution of two splits differs.

    Attributes:
        chi_square: Pearson's statistic of the 2 x C table, classes that neither split has left out; nan with a reason
            where fewer than two classes or no items are there.
        degrees: Its degrees of freedom, classes - 1.
        p_value: P(chi-square >= statistic) where both splits come from one distribution of labels.
        jensen_shannon: Divergence of the two label distributions in bits: 0 for equal ones, 1 for disjoint ones.
        reason: Why values are nan or why the p-value is rough.
    """

    chi_square: float
    degrees: int
    p_value: float
    jensen_shannon: float
    reason: str | None = None


def stratified_group_folds(
    labels: IntArray, components: IntArray, n_folds: int = 5, *, seed: int, tasks: IntArray | None = None
) -> Folds:
    """Deal components into folds so that every fold has nearly the same share of every label (of every task).

    Components with the same make-up (the same labels, counted) are shuffled and dealt out evenly; what does not
    divide evenly goes, largest components first, to the fold that is furthest behind in the labels concerned.
    Nothing is dropped. The same seed gives the same folds.

    Args:
        labels: [n] integer labels.
        components: [n] items of one component are never separated (see `PairTable.components`).
        n_folds: Folds wanted, at least 2.
        seed: Decides which of several components with the same make-up goes where.
        tasks: [n] task of each item: labels are then balanced within each task. None for one task.

    Raises:
        SettingError: If n_folds < 2, seed is negative, or all items form one component.
        DataError: If the arrays are not one whole number per item, or there are no items.
    """
    labels = checks.codes(labels, "labels")
    n = len(labels)
    if n == 0:
        raise DataError("there are no items to deal into folds")
    components = checks.codes(components, "components", length=n)
    tasks = None if tasks is None else checks.codes(tasks, "tasks", length=n)
    for name, value, least in (("n_folds", n_folds, 2), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise SettingError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    component = np.unique(components, return_inverse=True)[1]
    n_components = int(component.max()) + 1
    if n_components < 2:
        raise SettingError(
            f"the {n} items cannot be cut into folds, because all hang together through shared queries, evidence or "
            "groups; name a train split, or drop the group column if it is too coarse"
        )
    warnings = []
    if n_components < n_folds:
        warnings.append(f"{n_components} folds instead of {n_folds}: the items form only {n_components} components.")
        n_folds = n_components
    stratum, names = _strata(labels, tasks)
    fold_of = _deal(stratum, component, n_components, n_folds, seed)
    warnings += _about_sizes(component, n_folds)
    warnings += _about_small_strata(stratum, names, component, n_folds)
    return Folds(fold_of[component], n_folds, tuple(warnings))


def split_drift(labels_train: IntArray, labels_eval: IntArray, n_classes: int) -> SplitDrift:
    """Compare the label (or metadata value) distributions of two splits.

    Args:
        labels_train: [n_train] integers in [0, n_classes).
        labels_eval: [n_eval] integers in [0, n_classes).
        n_classes: Number of classes, at least 1.

    Raises:
        DataError: If a label is outside [0, n_classes).
        SettingError: If n_classes < 1.
    """
    checks.check_count(n_classes, "n_classes")
    table = np.stack([_counts(labels_train, "labels_train", n_classes), _counts(labels_eval, "labels_eval", n_classes)])
    if not table.sum(axis=1).all():
        which = "train" if table[0].sum() == 0 else "evaluation"
        return SplitDrift(math.nan, 0, math.nan, math.nan, f"the {which} split has no items")
    from scipy.spatial.distance import jensenshannon
    from scipy.stats import chi2_contingency

    table = table[:, table.sum(axis=0) > 0]
    shares = table / table.sum(axis=1, keepdims=True)
    divergence = float(jensenshannon(shares[0], shares[1], base=2) ** 2)
    if table.shape[1] < 2:
        return SplitDrift(math.nan, 0, math.nan, divergence, "both splits hold one and the same class")
    test = chi2_contingency(table, correction=False)
    least = float(np.min(test.expected_freq))
    rough = f"an expected count is {least:.1f}, below 5: the p-value is rough" if least < 5 else None
    return SplitDrift(float(test.statistic), int(test.dof), float(test.pvalue), divergence, rough)


def _counts(labels: IntArray, name: str, n_classes: int) -> IntArray:
    labels = checks.codes(labels, name)
    outside = (labels < 0) | (labels >= n_classes)
    if outside.any():
        at = int(np.argmax(outside))
        raise DataError(f"{name}: expected labels from 0 to {n_classes - 1}, got {labels[at]} at item {at}")
    return np.bincount(labels, minlength=n_classes)


def _strata(labels: IntArray, tasks: IntArray | None) -> tuple[IntArray, list[str]]:
    """[n] dense number of each item's (task, label), and the strata in words."""
    if tasks is None:
        distinct, stratum = np.unique(labels, return_inverse=True)
        return stratum, [f"label {label}" for label in distinct]
    pairs, stratum = np.unique(np.stack([tasks, labels]), axis=1, return_inverse=True)
    return stratum.ravel(), [f"label {label} of task {task}" for task, label in pairs.T]


def _deal(stratum: IntArray, component: IntArray, n_components: int, n_folds: int, seed: int) -> IntArray:
    """[n_components] fold of each component."""
    rng = np.random.default_rng(seed)
    total = np.bincount(stratum).astype(np.float64)
    fold_of = np.empty(n_components, dtype=np.int64)
    held = np.zeros((n_folds, len(total)))  # beyond what every fold has alike
    for members, make_up in _by_make_up(stratum, component, n_components):
        members = rng.permutation(members)
        evenly = len(members) // n_folds * n_folds
        strata, counts = np.unique(make_up, return_counts=True)
        fold_of[members[:evenly]] = np.arange(evenly) % n_folds
        for rest in members[evenly:]:
            fold = _neediest(held, strata, counts, total)
            fold_of[rest] = fold
            held[fold, strata] += counts
    return fold_of


def _by_make_up(stratum: IntArray, component: IntArray, n_components: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Components grouped by the sorted strata of their items, largest first: (components, strata of the items)."""
    order = np.lexsort((stratum, component))
    ordered = np.ascontiguousarray(stratum[order])
    ends = np.cumsum(np.bincount(component, minlength=n_components)).tolist()
    same: dict[bytes, list[int]] = {}
    start = 0
    for number, end in enumerate(ends):
        same.setdefault(ordered[start:end].tobytes(), []).append(number)
        start = end
    for key in sorted(same, key=lambda key: (-len(key), key)):
        yield np.array(same[key]), np.frombuffer(key, dtype=ordered.dtype)


def _neediest(held: FloatArray, strata: IntArray, counts: IntArray, total: FloatArray) -> int:
    """The fold whose sum over strata of (share held)^2 grows least; ties go to the fold with fewest items."""
    growth = (counts * (2.0 * held[:, strata] + counts) / total[strata] ** 2).sum(axis=1)
    candidates = np.flatnonzero(growth <= growth.min() + 1e-12)
    return int(candidates[np.argmin(held[candidates].sum(axis=1))])


def _about_sizes(component: IntArray, n_folds: int) -> list[str]:
    sizes = np.bincount(component)
    largest, n = int(sizes.max()), len(component)
    if largest * n_folds <= n:
        return []
    return [
        f"The largest component has {largest} of {n} items, more than one fold of {n_folds} should hold; it is kept "
        "whole, so the folds are of unequal size."
    ]


def _about_small_strata(stratum: IntArray, names: list[str], component: IntArray, n_folds: int) -> list[str]:
    pairs = np.unique(np.stack([stratum, component]), axis=1)
    spread = np.bincount(pairs[0], minlength=len(names))
    sizes = np.bincount(stratum, minlength=len(names))
    return [
        f"{name[0].upper()}{name[1:]} has {size} item{'s' * (size != 1)} in {within} component{'s' * (within != 1)}, "
        f"fewer than the {n_folds} folds: some folds have none of it."
        for name, size, within in zip(names, sizes.tolist(), spread.tolist(), strict=True)
        if within < n_folds
    ]
