"""Planted controls: the same texts under labels whose dependence on the evidence is known, audited the same way.

Positive control: labels := f(evidence). Negative control: labels := f(query). f asks which of a few frequent words the
text holds. Readers are refitted; texts, splits, folds and shuffles stay. What the audit then finds is what it would
have found on these very texts, had the benchmark been so.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from evidep.audit.assemble import interval
from evidep.audit.refits import refittable
from evidep.audit.results import ArmResult, detectable_effect
from evidep.audit.runner import RunContext, Steps, majority_baseline, run_arm
from evidep.data.conditions import arm_strata, full
from evidep.stats.calibration import Works, reader_works
from evidep.stats.exact import additive_pair_sums
from evidep.types import DeltaEvi, FloatArray, IntArray, PairTable, StringColumn

Side = Literal["evidence", "query"]
Outcome = Literal["as planted", "too few items", "not as planted"]
MOST_CLASSES: Final = 4
"""Benchmarks with more labels get controls of two labels: every further one needs a word of its own."""
LEAST_SHARE: Final = 0.05
SLACK: Final = 0.1
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Rule:
    """Label t where the text holds words[t] and none of the words before it, the last label where it holds none.

    Attributes:
        side: Which text decides.
        words: Lower-cased words, or single characters.
        characters: Whether they are characters.
    """

    side: Side
    words: tuple[str, ...]
    characters: bool = False

    def labels(self, table: PairTable) -> IntArray:
        """[n] the planted labels. A missing text holds no word."""
        column = _column(table, self.side)
        of_text = np.full(len(column.texts) + 1, len(self.words), dtype=np.int64)
        at = 0
        for texts in column.chunks():
            for text in texts:
                found = set(_words(text, self.characters))
                of_text[at] = next((t for t, word in enumerate(self.words) if word in found), len(self.words))
                at += 1
        return of_text[column.index]

    def relabel(self, table: PairTable) -> PairTable:
        """The table under the planted labels. Its fingerprint names them."""
        labels = self.labels(table)
        digest = hashlib.sha256(labels.tobytes()).hexdigest()[:16]
        return replace(table, labels=labels, fingerprint=f"{table.fingerprint}|{self.side}-control:{digest}")


def choose_rule(train: PairTable, side: Side) -> Rule | None:
    """The rule whose labels come closest to the shares of the real labels, by words of the training texts.

    Word by word: of those that split the texts that are left nearly (within `SLACK`) as the label's share asks for, the
    one that fills most of the texts that hold it, since a reader finds it most easily; where none does, the nearest.
    Every label gets at least `LEAST_SHARE` of the items. Where no word splits the texts so, single characters stand in
    (scripts without spaces); None where these do not either.
    """
    wanted = np.sort(np.bincount(train.labels, minlength=train.n_classes) / len(train))[::-1]
    wanted = wanted[wanted >= LEAST_SHARE]
    if not 2 <= len(wanted) <= MOST_CLASSES:
        wanted = np.array([0.5, 0.5])
    for characters in (False, True):
        words = _choose_words(_column(train, side), wanted / wanted.sum(), characters)
        if words is not None:
            return Rule(side, words, characters)
    return None


def _choose_words(column: StringColumn, wanted: FloatArray, characters: bool) -> tuple[str, ...] | None:
    weight = np.bincount(column.index[column.index >= 0], minlength=len(column.texts)).tolist()
    left = [
        (_shares(text, characters), count)
        for texts, counts in zip(column.chunks(), _chunked(weight), strict=True)
        for text, count in zip(texts, counts, strict=True)
        if count
    ]
    total = rest = len(column)
    remaining, words = 1.0, []
    for share in wanted[:-1].tolist():
        held: Counter[str] = Counter()
        filled: dict[str, float] = defaultdict(float)
        for found, count in left:
            for word, part in found.items():
                held[word] += count
                filled[word] += count * part
        target, least = share / remaining * rest, total * LEAST_SHARE
        fit = [(abs(n - target), word) for word, n in held.items() if n >= least and rest - n >= least]
        if not fit:
            break
        near = [(-filled[word] / held[word], word) for miss, word in fit if miss <= SLACK * rest]
        word = min(near)[1] if near else min(fit)[1]
        words.append(word)
        left = [(found, count) for found, count in left if word not in found]
        rest -= held[word]
        remaining -= share
    return tuple(words) or None


def run_controls(context: RunContext, step: Steps) -> dict[str, Any]:
    """Both controls for every reader that can be fitted, at the audit's first seed.

    Returns:
        The packet's `controls`: `rows`, one per control and reader, and `reasons` of controls that could not be run.
    """
    rows: list[dict[str, Any]] = []
    readers, reasons = refittable(context.settings.readers, "controls")
    sides: tuple[Side, ...] = ("evidence", "query")
    for side in sides:
        train = context.data.train if context.data.train is not None else context.table
        rule = choose_rule(train, side)
        if rule is None:
            reasons.append(
                f"no control from the {side}: no word splits its texts into shares of {LEAST_SHARE:.0%} or more"
            )
            continue
        planted = _planted(context, rule)
        if len(np.unique(planted.table.labels)) < 2:
            reasons.append(f"no control from the {side}: all evaluation items get the same planted label")
            continue
        truth = _truth(planted, rule)
        if math.isnan(truth):
            reasons.append(f"no control from the {side}: no item's evidence can change, so ΔEvi is not applicable")
            continue
        for spec, name in readers:
            step(f"{name}: control, labels from the {side}", 0)
            rows.append(_control(planted, spec, rule, truth, step))
    return {"rows": rows, "reasons": reasons}


def _planted(context: RunContext, rule: Rule) -> RunContext:
    data = context.data
    train = None if data.train is None else rule.relabel(data.train)
    relabelled = replace(data, evaluation=rule.relabel(data.evaluation), train=train)
    _, correct_majority = majority_baseline(relabelled, context.folds)
    return replace(context, data=relabelled, correct_majority=correct_majority)


def _control(context: RunContext, spec: Any, rule: Rule, truth: float, step: Steps) -> dict[str, Any]:
    table, settings = context.table, context.settings
    train = context.data.train if context.data.train is not None else table
    run = context.reader_run(spec, settings.seed, train)
    cell = next(run.cells([full(len(table))]))
    correct = cell.predictions == table.labels
    arm = run_arm(context, run, "global", correct, step)
    works = reader_works(correct, context.correct_majority, cell.predictions, table.groups, settings.alpha)
    end = outcome(rule.side, arm.delta, works, float(context.correct_majority.mean()))
    return _row(run.info.name, settings.seed, rule, arm, works, truth, end, table)


def _truth(context: RunContext, rule: Rule) -> float:
    """ΔEvi of a reader that answers by the rule, over all allowed donors of these items; nan where none can change."""
    table = context.table
    answers = np.eye(table.n_classes)[table.labels]
    nothing = np.zeros_like(answers)
    query, evidence = (answers, nothing) if rule.side == "query" else (nothing, answers)
    sums = additive_pair_sums(
        query, evidence, table.labels, table.evidence_codes, arm_strata(table, "global", context.folds)
    )
    moves = sums.n_donors > 0
    return float(1.0 - sums.row_mean[moves].mean()) if moves.any() else math.nan


def outcome(side: Side, delta: DeltaEvi, works: Works, majority_rate: float) -> Outcome:
    """What a control says of the audit. Too little data is no failure: the two are never mixed up.

    "as planted": a reader that works is sensitive (evidence), respectively equivalent to zero (query). "too few items":
    the verdict is inconclusive, or the reader fails without its interval ruling out that it follows the labels.
    "not as planted": the opposite verdict, or a reader that has not learnt labels which a single word decides.
    """
    if not works.works:
        # A reader that follows the planted labels is always right. An undefined end is not below anything.
        return "not as planted" if works.gain_ci.high < 1.0 - majority_rate else "too few items"
    if delta.verdict == ("sensitive" if side == "evidence" else "equivalent"):
        return "as planted"
    return "too few items" if delta.verdict == "inconclusive" else "not as planted"


def _row(
    reader: str, seed: int, rule: Rule, arm: ArmResult, works: Works, truth: float, end: Outcome, table: PairTable
) -> dict[str, Any]:
    delta = arm.delta
    found = delta.mean if math.isnan(delta.exact) else delta.exact
    reasons = (works.reason, delta.reason, delta.ci.reason)
    return {
        "control": rule.side,
        "reader": reader,
        "seed": seed,
        "words": rule.words,
        "label_shares": np.bincount(table.labels, minlength=table.n_classes)[: len(rule.words) + 1] / len(table),
        "accuracy_full": delta.accuracy_full,
        "works": works.works,
        "truth": truth,
        "delta_evi": found,
        "ci": interval(delta.ci),
        "p_value": delta.p_value,
        "verdict": delta.verdict,
        "minimum_detectable_effect": detectable_effect(delta),
        "outcome": end,
        "items_needed": delta.items_needed if end == "too few items" else None,
        "passed": end == "as planted",
        "reason": "; ".join(dict.fromkeys(reason for reason in reasons if reason)) or None,
    }


def _column(table: PairTable, side: Side) -> StringColumn:
    return table.evidence if side == "evidence" else table.queries


def _words(text: str, characters: bool) -> list[str]:
    lowered = text.lower()
    return [c for c in lowered if c.isalpha()] if characters else _WORD.findall(lowered)


def _shares(text: str, characters: bool) -> dict[str, float]:
    """Share of the text's words that each word is."""
    words = _words(text, characters)
    return {word: count / len(words) for word, count in Counter(words).items()}


def _chunked(values: list[int], size: int = 8192) -> list[list[int]]:
    return [values[start : start + size] for start in range(0, len(values), size)]
