"""How far features that nobody declared predict the label: a joint model as upper screen, and the strongest rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from evidep.audit.results import ReaderResult
from evidep.audit.runner import RunContext
from evidep.data.auto_metadata import FeatureTable, derive_features
from evidep.stats.accuracy import accuracy_interval, wilson_interval
from evidep.types import BoolArray, FloatArray, IntArray

MOST_CATEGORIES: Final = 60
MOST_RULES: Final = 8
EXAMPLES: Final = 5
LEAST_ITEMS: Final = 10
BINS: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """One feature of train and evaluation items: numbers as they are, categories as codes (the rest is the last)."""

    name: str
    train: FloatArray
    evaluation: FloatArray
    categories: tuple[str, ...] | None


def automatic_metadata(
    context: RunContext, readers: tuple[ReaderResult, ...]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Screen the label against features of the texts and the declared metadata columns.

    The joint model is gradient boosting on all features (train split, or out of fold). It is no part of MPDS: it is a
    stronger predictor that may combine what single columns do not show, so its accuracy is an upper screen for what
    surface features can do. A rule is one value of one feature (numbers in quarters); rules are chosen on the training
    items by how many labels they gain over the majority, and counted on the evaluation items. Out of fold they are
    chosen and counted on the same items, which the packet says.

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
    best = max(
        (r for r in readers if r.info.strength != "baseline"), key=lambda r: float(r.correct.mean()), default=None
    )
    full = math.nan if best is None else float(best.correct.mean())
    ci = accuracy_interval(correct, table.groups, context.settings.alpha)
    document = {
        "features": [column.name for column in columns],
        "fit": "out of fold" if train is None else "train split",
        "accuracy": float(correct.mean()),
        "ci": [ci.low, ci.high] if math.isfinite(ci.low) else None,
        "majority_rate": float(context.correct_majority.mean()),
        "reader": None if best is None else best.info.name,
        "upper_screen": float(correct.mean()) / full if full > 0 else math.nan,
        "rules": _rules(context, columns, labels),
        "rules_chosen_on": "the evaluation items themselves" if train is None else "the train split",
        "reason": ci.reason or (None if full > 0 else "no reader that reads the texts is ever right"),
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
        columns.append(_categories(name, before, texts))
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


def _rules(context: RunContext, columns: list[_Column], labels: IntArray) -> list[dict[str, Any]]:
    table = context.table
    shares = np.bincount(labels, minlength=table.n_classes) / len(labels)
    majority = int(shares.argmax())
    found = []
    for column in columns:
        for words, inside_train, inside in _conditions(column):
            size = int(inside_train.sum())
            if size < LEAST_ITEMS or size > 0.9 * len(labels):
                continue
            counts = np.bincount(labels[inside_train], minlength=table.n_classes)
            # Standardised excess of each label: a minority label that a condition doubles counts too.
            excess = (counts - size * shares) / np.sqrt(np.maximum(size * shares * (1 - shares), 1e-12))
            label = int(excess.argmax())
            if excess[label] < 3.0:
                continue
            gain = int(counts[label] - counts[majority])
            found.append((-(max(gain, 0)), -float(excess[label]), column.name, words, label, inside_train, inside))
    found.sort(key=lambda rule: rule[:4])
    return [_rule(context, rule, labels) for rule in found[:MOST_RULES]]


def _rule(context: RunContext, rule: tuple[Any, ...], labels: IntArray) -> dict[str, Any]:
    _, _, feature, words, label, inside_train, inside = rule
    table = context.table
    name, base = table.label_names[label], float((table.labels == label).mean())
    n = int(inside.sum())
    hits = inside & (table.labels == label)
    share = float(hits.sum()) / n if n else math.nan
    ci = wilson_interval(int(hits.sum()), n, context.settings.alpha)
    numbers = f"{share:.0%} of {n} items" if n else "no evaluation item"
    return {
        "sentence": f"Where {feature} {words}, the label is {name} in {numbers} ({base:.0%} of all items).",
        "feature": feature,
        "condition": words,
        "label": name,
        "train_items": int(inside_train.sum()),
        "train_share": float((labels[inside_train] == label).mean()),
        "items": n,
        "share": share,
        "ci": [ci.low, ci.high] if math.isfinite(ci.low) else None,
        "base_share": base,
        "examples": [table.ids[int(at)].as_py() for at in np.flatnonzero(hits)[:EXAMPLES]],
        "reason": None if n else "the condition holds for no evaluation item",
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
