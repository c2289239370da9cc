"""Flags beside the region: what a reader of the verdict must know before using it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from evidep.stats.region_evidence import (
    CALIBRATE,
    AuditEvidence,
    ReaderSummary,
    mean_accuracy,
    outperformed,
    retrained,
    span,
)
from evidep.stats.truncation import caveat

_RUNG: Final = {"baseline": 0, "light": 1, "middle": 2, "strong": 3}
_Rule = Callable[[AuditEvidence, Sequence[ReaderSummary]], str | None]


def find_flags(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> tuple[list[str], list[str]]:
    """Names of the flags that hold, in the order of `RULES`, and one sentence for each."""
    found = [(name, sentence) for name, rule in RULES.items() if (sentence := rule(evidence, readers)) is not None]
    return [name for name, _ in found], [sentence for _, sentence in found]


def constant_reaches_high(evidence: AuditEvidence, accuracy_full: float) -> bool:
    """Whether always giving one answer would already have an MPDS of mpds_high."""
    return evidence.majority_rate >= evidence.mpds_high * accuracy_full


def metadata_predicts_labels(evidence: AuditEvidence, accuracy_full: float) -> bool:
    """MPDS >= mpds_high; chance-corrected as well where the constant answer alone would reach it."""
    if evidence.mpds is None or not evidence.mpds >= evidence.mpds_high:
        return False
    return not constant_reaches_high(evidence, accuracy_full) or evidence.mpds_chance_corrected >= evidence.mpds_high


def _best_accuracy(readers: Sequence[ReaderSummary]) -> float:
    working = [reader.accuracy_full for reader in readers if reader.works]
    return max(working or [reader.accuracy_full for reader in readers], default=math.nan)


def _calibration_reversal(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    weaker = outperformed(evidence, readers)
    ladder = [reader for reader in readers if reader.works and reader.name not in weaker]
    for light in (reader for reader in ladder if _near_zero(evidence, reader)):
        for strong in (reader for reader in ladder if reader.verdict("global") == "sensitive"):
            if _RUNG[strong.strength] <= _RUNG[light.strength]:
                continue
            words = f"{light.name} has ΔEvi {light.effect('global'):.4f}, {strong.name} {strong.effect('global'):.4f}"
            if light.verdict("global") != "equivalent":
                words = f"{light.name} is no better with the evidence than retrained without it, and {words}"
            contrast = next(
                (c for c in evidence.contrasts if (c.stronger, c.lighter) == (strong.name, light.name)), None
            )
            # Sensitive beside near zero is no difference yet: their paired contrast has to show one.
            if contrast is not None and contrast.ci.low > 0.0:
                return f"Calibration reversal: {words}; paired difference {contrast.mean:.4f}, {span(contrast.ci)}."
    return None


def _near_zero(evidence: AuditEvidence, reader: ReaderSummary) -> bool:
    """Whether evidence is worth nothing to a reader: no ΔEvi, or no gain over its own fit without evidence.

    The second is met where foreign evidence misleads a reader that its own evidence does not help.
    """
    if reader.verdict("global") == "equivalent":
        return True
    gains = [ablation.difference for ablation in retrained(evidence, "query-only").get(reader.name, [])]
    return bool(gains) and all(gain is not None and gain.high <= evidence.margin for gain in gains)


def _residual_query_signal(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    for name, ablations in retrained(evidence, "query-only").items():
        gain = mean_accuracy(ablations) - evidence.majority_rate
        if gain > evidence.margin and all(ablation.ci.low > evidence.majority_rate for ablation in ablations):
            return (
                f"The query alone carries signal: {name} retrained without evidence reaches"
                f" {mean_accuracy(ablations):.3f}, {span(ablations[0].ci)}, the majority rate is"
                f" {evidence.majority_rate:.3f}."
            )
    return None


def _evidence_only_shortcut(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    working = [reader for reader in readers if reader.works]
    if any(reader.verdict("within-label") == "sensitive" for reader in working):
        return None
    suspects = [
        reader
        for reader in working
        if reader.verdict("global") == "sensitive" and reader.verdict("within-label") == "equivalent"
    ]
    if not suspects:
        return None
    reader = max(suspects, key=lambda suspect: (suspect.interaction, suspect.effect("global")))
    words = (
        f"Evidence-only shortcut: {reader.name} has ΔEvi {reader.effect('global'):.4f} under the global shuffle and"
        f" {reader.effect('within-label'):.4f} among items of one label: it reads the label off the evidence, not off"
        " how evidence fits the query."
    )
    if not reader.interaction:
        words += f" It cannot match the two at all; a reader that can may find more: {CALIBRATE}."
    return words


def _mismatch_detector(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    found = retrained(evidence, "query-only")
    for reader in readers:
        shuffled = reader.accuracy_shuffled("global")
        ablations = found.get(reader.name, []) if reader.works else []
        # Where evidence alone tells the label, foreign evidence tells a foreign label: no mismatch need be noticed.
        shortcut = reader.verdict("within-label") == "equivalent"
        if ablations and not shortcut and all(shuffled < ablation.ci.low for ablation in ablations):
            what = "Mismatch detector" if reader.interaction else "Misled by evidence that does not belong"
            return (
                f"{what}: with swapped evidence {reader.name} falls to {shuffled:.3f}, below the"
                f" {mean_accuracy(ablations):.3f} ({span(ablations[0].ci)}) that it reaches without any evidence. ΔEvi"
                f" {reader.effect('global'):.4f} overstates the value of the evidence, which is nearer to"
                f" {reader.accuracy_full - mean_accuracy(ablations):.3f}."
            )
    return None


def _contaminated_reader(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    seen = [f"{reader.name} ({reader.contamination})" for reader in readers if reader.works and reader.contamination]
    if not seen:
        return None
    return (
        f"Pre-training of {', '.join(seen)} is known to have seen these benchmarks: on one of them its accuracy and"
        " ΔEvi may be memory; a reader without that history would tell."
    )


def _label_skew(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    best = _best_accuracy(readers)
    skewed = evidence.majority_rate > 1.0 / evidence.n_classes + evidence.margin
    if not (skewed and evidence.majority_rate >= best - evidence.margin - 1e-9):
        return None
    return (
        f"Label skew: the constant answer reaches {evidence.majority_rate:.3f}, the best reader {best:.3f}: the base"
        " rate explains the accuracy; a set with balanced labels would tell more."
    )


def _outperformed_reader(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    found = outperformed(evidence, readers)
    effects = {reader.name: reader.effect("global") for reader in readers}
    words = [
        f"{name} has ΔEvi {effects[name]:.4f}, but {better.by}, which loses nothing when the evidence is swapped, is"
        f" right more often by {better.gain:.3f} ({span(better.ci)})"
        for name, better in found.items()
    ]
    if not words:
        return None
    return (
        f"Passed over, because a more accurate reader needs no evidence: {'; '.join(words)}. What such a reader loses"
        " is its own weakness until a reader at least as accurate loses it too."
    )


def _reader_failed(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    failed = [f"{reader.name} ({'; '.join(reader.failures)})" for reader in readers if reader.failures]
    return f"Left out, because they did not work: {', '.join(failed)}." if failed else None


def _negligible_effect(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    found = [
        f"{reader.name} {reader.effect('global'):.4f}"
        for reader in readers
        if reader.works
        and reader.verdict("global") == "equivalent"
        and any(delta.negligible for delta in reader.deltas("global"))
    ]
    if not found:
        return None
    return f"Detectable but negligible: not zero, and yet within ±{evidence.margin:g} ({', '.join(found)})."


def _evidence_cut_off(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    found = [
        f"{reader.name}: {words}"
        for reader in readers
        if (words := next(filter(None, map(caveat, reader.deltas("global"))), None)) is not None
    ]
    return f"Evidence cut off: {'; '.join(found)}. Raise max_length." if found else None


def _labels_permuted(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    found = [reader.name for reader in evidence.readers if reader.labels_permuted_suspected]
    if not found:
        return None
    return (
        f"Labels permuted? {', '.join(dict.fromkeys(found))} is right less often than its answers would be at random:"
        " check the names and the order of the labels in training and evaluation."
    )


def _no_metadata(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    return "No metadata columns were declared: MPDS is not known." if evidence.mpds is None else None


def _metadata_predicts_labels(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> str | None:
    if not metadata_predicts_labels(evidence, _best_accuracy(readers)):
        return None
    return (
        f"Metadata predict the labels: MPDS {evidence.mpds:.3f}, {span(evidence.mpds_ci)}, at least"
        f" {evidence.mpds_high:g}."
    )


RULES: Final[dict[str, _Rule]] = {
    "calibration_reversal": _calibration_reversal,
    "residual_query_signal": _residual_query_signal,
    "evidence_only_shortcut": _evidence_only_shortcut,
    "mismatch_detector": _mismatch_detector,
    "contaminated_reader": _contaminated_reader,
    "label_skew": _label_skew,
    "outperformed_reader": _outperformed_reader,
    "reader_failed": _reader_failed,
    "negligible_effect": _negligible_effect,
    "evidence_cut_off": _evidence_cut_off,
    "labels_permuted_suspected": _labels_permuted,
    "no_metadata": _no_metadata,
    "metadata_predicts_labels": _metadata_predicts_labels,
}
