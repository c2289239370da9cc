"""How far features that nobody declared predict the label: a joint model as upper screen, and the strongest rules."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from evidep.audit.assemble import interval
from evidep.audit.diagnosis import most_accurate
from evidep.audit.results import MetadataResult, ReaderResult
from evidep.audit.runner import RunContext
from evidep.data.auto_metadata import FeatureTable, derive_features
from evidep.stats.accuracy import accuracy_interval
from evidep.types import BoolArray, FloatArray, IntArray

MOST_CATEGORIES: Final = 60
MOST_RULES: Final = 8
EXAMPLES: Final = 5
LEAST_ITEMS: Final = 10
BINS: Final = 4
LEAST_EXCESS: Final = 3.0
"""Standard errors by which a rule's label must be commoner than among all training items: hundreds are tried."""
SAME_ITEMS: Final = 0.8
"""Share of items from which those of two rules are nearly the same."""
SAME_SHARE: Final = 0.05
DECLARED: Final = "metadata:"
"""Before the names of declared columns, which may be those of derived features."""


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """One feature of train and evaluation items: numbers as they are, categories as codes (the rest is the last)."""

    name: str
    train: FloatArray
    evaluation: FloatArray
    categories: tuple[str, ...] | None


def automatic_metadata(
    context: RunContext, readers: tuple[ReaderResult, ...], metadata: MetadataResult | None
) -> tuple[dict[str, Any], dict[str, float]]:
    """Screen the label against features of the texts and the declared metadata columns.

    The joint model is gradient boosting on all features and declared columns (train split, or out of fold). It is no
    part of MPDS: it may combine what single columns do not show. The upper screen is the better of it and of the
    metadata-majority predictor, over the accuracy in MPDS' denominator, so it is never below MPDS.

    A rule is one value of one feature (numbers in quarters) and the label that it raises. Rules are chosen on the
    training items by how many standard errors the label is commoner there than among all, and counted on the evaluation
    items; those whose label is there not commoner than among all items by more than noise (the interval over groups)
    are left out, and their number is given. Of rules with one label and nearly the same items, or items nearly all of a
    clearer rule, the clearest is kept and names the others. Out of fold rules are chosen and counted on the same items,
    which the packet says.

    Returns:
        The packet's `automatic_metadata`, and the seconds that each feature and the model cost.
    """
    table = context.table
    train = context.data.train
    asked = derive_features(table)
    known = asked if train is None else derive_features(train)
    seconds = {name: asked.seconds[name] + (0.0 if train is None else known.seconds[name]) for name in asked.seconds}
    columns = _columns(context, known, asked)
    labels = table.labels if train is None else train.labels
    predictions, cost = _joint(context, columns, labels)
    seconds["joint model"] = cost
    correct = predictions == table.labels
    joint, declared = float(correct.mean()), -math.inf if metadata is None else float(metadata.correct.mean())
    best = most_accurate(readers)
    full = float(best.correct.mean())
    ci = accuracy_interval(correct, table.groups, context.settings.alpha)
    rules, unconfirmed = _rules(context, columns, labels)
    document = {
        "features": [column.name for column in columns],
        "fit": "out of fold" if train is None else "train split",
        "accuracy": joint,
        "ci": interval(ci),
        "majority_rate": float(context.correct_majority.mean()),
        "reader": best.info.name,
        "upper_screen": max(joint, declared) / full if full > 0 else math.nan,
        "upper_screen_from": "joint model" if joint >= declared else "metadata alone",
        "rules": rules,
        "rules_chosen_on": "the evaluation items themselves" if train is None else "the train split",
        "rules_not_confirmed": unconfirmed,
        "reason": ci.reason
        or (None if full > 0 else f"{best.info.name} is never right: the screen has no denominator"),
    }
    return document, seconds


def _columns(context: RunContext, known: FeatureTable, asked: FeatureTable) -> list[_Column]:
    columns = []
    for name, values in asked.columns.items():
        others = known.columns[name]
        if isinstance(values, list) or isinstance(others, list):
            columns.append(_categories(name, [str(v) for v in others], [str(v) for v in values]))
        else:
            columns.append(_Column(name, others, values, None))
    train = context.data.train
    for name, column in context.table.metadata.items():
        texts = [text or "none" for text in column.to_list()]
        before = texts if train is None else [text or "none" for text in train.metadata[name].to_list()]
        columns.append(_categories(f"{DECLARED}{name}", before, texts))
    return [column for column in columns if len(np.unique(column.train[~np.isnan(column.train)])) > 1]


def _categories(name: str, train: list[str], evaluation: list[str]) -> _Column:
    """The commonest training values as codes; all others share the last code."""
    values, counts = np.unique(np.array(train, dtype=object), return_counts=True)
    kept = tuple(str(values[at]) for at in np.argsort(-counts, kind="stable")[:MOST_CATEGORIES])
    code = {value: float(at) for at, value in enumerate(kept)}
    first, second = (np.array([code.get(v, float(len(kept))) for v in side]) for side in (train, evaluation))
    return _Column(name, first, second, kept)


def _joint(context: RunContext, columns: list[_Column], labels: IntArray) -> tuple[IntArray, float]:
    import time

    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    started = time.perf_counter()
    table, folds = context.table, context.folds
    predictions = np.zeros(len(table), dtype=np.int64)
    if not columns:
        return np.full(len(table), np.bincount(labels).argmax()), 0.0
    known, asked = (np.column_stack([getattr(c, side) for c in columns]) for side in ("train", "evaluation"))
    parts = [(np.ones(len(labels), dtype=bool), np.ones(len(table), dtype=bool))]
    if context.data.train is None:
        assert folds is not None
        parts = [(folds != fold, folds == fold) for fold in np.unique(folds)]
    with threadpool_limits(1):
        for fit, ask in parts:
            if len(np.unique(labels[fit])) < 2:
                predictions[ask] = labels[fit][0]
                continue
            model = HistGradientBoostingClassifier(
                max_iter=40,
                max_leaf_nodes=15,
                min_samples_leaf=10,
                learning_rate=0.15,
                early_stopping=False,
                categorical_features=[c.categories is not None for c in columns],
                random_state=context.settings.seed,
            ).fit(known[fit], labels[fit])
            predictions[ask] = model.predict(asked[ask])
    return predictions, time.perf_counter() - started


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """One condition, the label that it raises, and the items that meet it."""

    feature: str
    condition: str
    label: int
    share: float
    excess: float
    numeric: bool
    train: BoolArray
    evaluation: BoolArray

    @property
    def words(self) -> str:
        return f"{self.feature} {self.condition}"

    @property
    def rank(self) -> tuple[float, bool, bool, str]:
        """Clearest first; of equal ones declared columns before derived features, values before ranges of numbers."""
        return -self.excess, not self.feature.startswith(DECLARED), self.numeric, self.words

    def repeats(self, other: _Rule) -> bool:
        """Whether both are one artefact: the same label on nearly the same training items.

        So is a rule nearly all of whose items meet the other, unless its label is clearly commoner there.
        """
        if self.label != other.label:
            return False
        shared = int((self.train & other.train).sum())
        within = shared >= SAME_ITEMS * int(self.train.sum()) and self.share <= other.share + SAME_SHARE
        return within or shared >= SAME_ITEMS * int((self.train | other.train).sum())


def _rules(context: RunContext, columns: list[_Column], labels: IntArray) -> tuple[list[dict[str, Any]], int]:
    """The clearest rules, and how many that the training items suggest do not hold on the evaluation items."""
    kept: list[tuple[_Rule, list[str]]] = []
    rows: list[dict[str, Any]] = []
    unconfirmed = 0
    for rule in sorted(_candidates(columns, labels, context.table.n_classes), key=lambda rule: rule.rank):
        stronger = next((also for other, also in kept if rule.repeats(other)), None)
        if stronger is not None:
            stronger.append(rule.words)
            continue
        also: list[str] = []
        row = _rule_row(context, rule, also)
        if row is None:
            unconfirmed += 1
        elif len(kept) < MOST_RULES:
            kept.append((rule, also))
            rows.append(row)
    return rows, unconfirmed


def _candidates(columns: list[_Column], labels: IntArray, n_classes: int) -> Iterator[_Rule]:
    """Every condition that raises a label among the training items by three standard errors."""
    shares = np.bincount(labels, minlength=n_classes) / len(labels)
    for column in columns:
        for words, inside_train, inside in _conditions(column):
            size = int(inside_train.sum())
            if size < LEAST_ITEMS or size > 0.9 * len(labels):
                continue
            counts = np.bincount(labels[inside_train], minlength=n_classes)
            # Standardised excess of each label: a minority label that a condition doubles counts too.
            excess = (counts - size * shares) / np.sqrt(np.maximum(size * shares * (1 - shares), 1e-12))
            label = int(excess.argmax())
            if excess[label] < LEAST_EXCESS:
                continue
            share, numeric = float(counts[label]) / size, column.categories is None
            yield _Rule(column.name, words, label, share, float(excess[label]), numeric, inside_train, inside)


def _rule_row(context: RunContext, rule: _Rule, also: list[str]) -> dict[str, Any] | None:
    """What the packet says of a rule; None where it does not hold on the evaluation items."""
    table = context.table
    name, base = table.label_names[rule.label], float((table.labels == rule.label).mean())
    right = table.labels[rule.evaluation] == rule.label
    if len(right) == 0:
        return None
    share, n = float(right.mean()), len(right)
    ci = accuracy_interval(right, table.groups[rule.evaluation], context.settings.alpha)
    if share <= base or ci.low <= base:
        return None
    examples = np.flatnonzero(rule.evaluation)[right][:EXAMPLES]
    return {
        "sentence": f"Where {rule.words}, the label is {name} in {share:.0%} of {n} items ({base:.0%} of all items).",
        "feature": rule.feature,
        "condition": rule.condition,
        "label": name,
        "train_items": int(rule.train.sum()),
        "train_share": rule.share,
        "items": n,
        "share": share,
        "ci": interval(ci),
        "base_share": base,
        "same_artefact": also,
        "examples": [table.ids[int(at)].as_py() for at in examples],
        "reason": ci.reason,
    }


def _conditions(column: _Column) -> list[tuple[str, BoolArray, BoolArray]]:
    if column.categories is not None:
        return [
            (f"is {value!r}", column.train == at, column.evaluation == at) for at, value in enumerate(column.categories)
        ]
    known = column.train[~np.isnan(column.train)]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1], method="closest_observation"))
    bounds = [-math.inf, *edges.tolist(), math.inf]
    found = []
    for low, high in pairwise(bounds):
        words = f"is at most {high:.3g}" if low == -math.inf else f"is above {low:.3g}"
        words += "" if math.inf in (high, -low) else f" and at most {high:.3g}"
        found.append((words, *((side > low) & (side <= high) for side in (column.train, column.evaluation))))
    return found
