"""From numbers to a region with reasons: the decision table of the audit.

The rules, in the order in which they decide (global shuffle; readers that beat the constant answer; seeds of one
reader must agree; a reader is passed over where a more accurate one is equivalent to zero, `outperformed`):

1. not_applicable: no evidence can be swapped.
2. reader_limited: no reader works.
3. evidence_sensitive: at least one working reader is sensitive.
4. inconclusive: at least one working reader is neither sensitive nor equivalent to zero.
   From here on every working reader is equivalent to zero.
5. direct_coupling: MPDS >= mpds_high. It needs no strong reader. Where the constant answer alone reaches mpds_high,
   a high MPDS says nothing about metadata: then the chance-corrected MPDS must reach mpds_high too, and rule 6 goes
   first. Where MPDS has no interval (too few groups) a high value decides nothing: inconclusive.
6. question_dominant: the best retrained query-only accuracy is within the margin of the best full accuracy. It needs a
   reader that can match query with evidence (an additive one has ΔEvi near zero on matching tasks by construction), or
   a query-only accuracy that leaves no more than the margin to gain.
7. latent_coupling: a strong reader that can match query with evidence is among the working ones.
8. reader_limited: calibrate first.
"""

from __future__ import annotations

import math
from typing import Literal

from evidep.stats.region_evidence import (
    CALIBRATE,
    AblationEvidence,
    AuditEvidence,
    ContrastEvidence,
    ReaderEvidence,
    ReaderSummary,
    mean_accuracy,
    outperformed,
    retrained,
    span,
    summarise,
    value_of,
)
from evidep.stats.region_flags import constant_reaches_high, find_flags, metadata_predicts_labels
from evidep.stats.truncation import blind
from evidep.types import DeltaEvi, Diagnosis, Interval

__all__ = ["AblationEvidence", "AuditEvidence", "ContrastEvidence", "ReaderEvidence", "diagnose"]

_Region = Literal[
    "direct_coupling",
    "latent_coupling",
    "question_dominant",
    "reader_limited",
    "evidence_sensitive",
    "inconclusive",
    "not_applicable",
]
_ROUNDING = 1e-9


def diagnose(evidence: AuditEvidence) -> Diagnosis:
    """The one region that the evidence lands in, its flags, and the reasons for both in plain sentences.

    The rules are those of Shao (arXiv 2605.23701), made decidable: see the module's first lines. Wherever a value
    lies on one side of a threshold and its interval on both, the value decides and a reason says so.
    """
    readers = summarise(evidence)
    region, reasons = _region(evidence, readers)
    flags, flag_reasons = find_flags(evidence, readers)
    return Diagnosis(region, tuple(flags), (*reasons, *flag_reasons))


def _region(evidence: AuditEvidence, readers: list[ReaderSummary]) -> tuple[_Region, list[str]]:
    working = [reader for reader in readers if reader.works]
    decisive = working or readers
    if decisive and all(reader.verdict("global") == "not_applicable" for reader in decisive):
        return "not_applicable", [_why_not_applicable(decisive)]
    if not working:
        return "reader_limited", [_why_none_works(evidence, readers)]
    applicable = [reader for reader in working if reader.verdict("global") != "not_applicable"]
    sentences = [_reader_sentence(reader) for reader in applicable]
    passed_over = outperformed(evidence, readers)
    applicable = [reader for reader in applicable if reader.name not in passed_over]
    if any(reader.verdict("global") == "sensitive" for reader in applicable):
        return "evidence_sensitive", [*sentences, _why_sensitive(applicable)]
    blind_readers = [reader for reader in applicable if any(blind(delta) for delta in reader.deltas("global"))]
    applicable = [reader for reader in applicable if reader not in blind_readers]
    if blind_readers and not applicable:
        return "reader_limited", [*sentences, _why_blind(blind_readers)]
    open_readers = [reader for reader in applicable if reader.verdict("global") == "inconclusive"]
    if open_readers:
        return "inconclusive", [*sentences, *(_why_inconclusive(reader, evidence) for reader in open_readers)]
    region, why = _when_equivalent(evidence, readers, applicable)
    return region, [*sentences, *why]


def _when_equivalent(
    evidence: AuditEvidence, readers: list[ReaderSummary], working: list[ReaderSummary]
) -> tuple[_Region, list[str]]:
    best = max(working, key=lambda reader: reader.accuracy_full)
    strong = [reader for reader in working if reader.strength == "strong" and reader.interaction]
    skewed = constant_reaches_high(evidence, best.accuracy_full)
    high = metadata_predicts_labels(evidence, best.accuracy_full)
    about_metadata = _metadata_sentence(evidence, best)
    direct: _Region = "inconclusive" if _withheld(evidence.mpds_ci) else "direct_coupling"
    if high and not skewed:
        return direct, [about_metadata, _what_overturns_direct(strong)]
    top, explained, about_query = _query_only(evidence, best)
    if explained and (any(reader.interaction for reader in working) or 1.0 - top <= evidence.margin + _ROUNDING):
        return "question_dominant", [about_query, about_metadata]
    if high:
        return direct, [about_metadata, about_query, _what_overturns_direct(strong)]
    if strong:
        return "latent_coupling", [about_metadata, about_query]
    return "reader_limited", [_why_calibrate(readers, working), about_query, about_metadata]


def _query_only(evidence: AuditEvidence, best: ReaderSummary) -> tuple[float, bool, str]:
    """Best retrained query-only accuracy, whether it reaches the best full accuracy, and both in words."""
    found = retrained(evidence, "query-only")
    if not found:
        return (
            math.nan,
            False,
            "Not known whether the query alone explains the accuracy: no retrained query-only ablation was run."
            " If it came within the margin the verdict would be question_dominant: add --ablations query-only.",
        )
    name = max(found, key=lambda reader: mean_accuracy(found[reader]))
    top = mean_accuracy(found[name])
    gap = best.accuracy_full - top
    explained = gap <= evidence.margin + _ROUNDING
    words = (
        f"The query alone {'explains' if explained else 'does not explain'} the accuracy: {name} retrained without"
        f" evidence reaches {top:.3f}, the best full accuracy ({best.name}) is {best.accuracy_full:.3f}, gap {gap:.3f}"
        f" against a margin of {evidence.margin:g}."
    )
    for ablation in found[name] if name == best.name else ():
        ci = ablation.difference
        if ci is not None and _withheld(ci):
            words += f" That gap has no interval ({ci.reason}), so other items of this kind could turn this."
            break
        if ci is not None and ci.low <= evidence.margin < ci.high:
            words += f" The {span(ci)} of that gap holds the margin, so more items could turn this."
            break
    return top, explained, words


def _reader_sentence(reader: ReaderSummary) -> str:
    deltas = reader.deltas("global")
    verdict = {
        "sensitive": "sensitive",
        "equivalent": "detectable but negligible"
        if any(delta.negligible for delta in deltas)
        else "equivalent to zero",
        "inconclusive": "inconclusive",
    }[reader.verdict("global")]
    if len(deltas) == 1:
        numbers = f"ΔEvi {reader.effect('global'):.4f}, {span(deltas[0].ci)}, p = {deltas[0].p_value:.3g}"
    else:
        each = ", ".join(f"{value_of(delta):.4f} {delta.verdict}" for delta in deltas)
        numbers = f"mean ΔEvi {reader.effect('global'):.4f} over {len(deltas)} seeds ({each})"
    return f"{reader.name} ({reader.strength}, accuracy {reader.accuracy_full:.3f}): {numbers}: {verdict}."


def _metadata_sentence(evidence: AuditEvidence, best: ReaderSummary) -> str:
    value, ci, high = evidence.mpds, evidence.mpds_ci, evidence.mpds_high
    if value is None:
        return (
            "No metadata were declared, so MPDS is not known; from"
            f" {high:g} on, the verdict would be direct_coupling: add --metadata with the columns that might give the"
            " label away."
        )
    if math.isnan(value):
        return f"MPDS is undefined, so direct_coupling (MPDS >= {high:g}) could not be tested."
    words = f"MPDS {value:.3f}, {span(ci)}, is {'at least' if value >= high else 'below'} {high:g}."
    if ci is not None and _withheld(ci):
        other = "it decides nothing" if value >= high else "direct_coupling is not excluded"
        words += f" Without an interval ({ci.reason}) {other}: audit items from more groups."
    if ci is not None and ci.low < high <= ci.high:
        other = "the verdict could be another one" if value >= high else "direct_coupling is not excluded"
        words += f" Its interval straddles {high:g}: {other}, and more items would tell."
    if constant_reaches_high(evidence, best.accuracy_full):
        words += (
            f" The constant answer alone reaches {evidence.majority_rate:.3f} of {best.accuracy_full:.3f}, so only the"
            f" chance-corrected MPDS ({_or_undefined(evidence.mpds_chance_corrected)}) can speak for metadata."
        )
    return words


def _withheld(ci: Interval | None) -> bool:
    """Whether an interval was computed and could not be given; None stands for one that was not computed."""
    return ci is not None and math.isnan(ci.low)


def _what_overturns_direct(strong: list[ReaderSummary]) -> str:
    if strong:
        return "The verdict would change if a reader with a higher accuracy lowered MPDS or were sensitive."
    return (
        "No strong reader was run: one that is sensitive, or accurate enough to lower MPDS, would change the verdict:"
        f" {CALIBRATE}."
    )


def _why_calibrate(readers: list[ReaderSummary], working: list[ReaderSummary]) -> str:
    failed = [reader.name for reader in readers if reader.strength == "strong" and not reader.works]
    counted = {reader.name for reader in working}
    weaker = [r.name for r in readers if r.strength == "strong" and r.works and r.name not in counted]
    state = "no strong reader was run"
    if weaker:
        state = f"the strong reader {', '.join(weaker)} is less accurate than a lighter one"
    if failed:
        state = f"the strong reader {', '.join(failed)} did not work"
    if any(reader.strength == "strong" for reader in working):
        state = "the strong reader cannot match query with evidence"
    additive = [reader.name for reader in working if not reader.interaction]
    limit = f" ({', '.join(additive)} cannot match query with evidence at all)" if additive else ""
    remedy = CALIBRATE
    if failed or weaker:
        remedy = f"repair its training, or give it more training items ({CALIBRATE} otherwise)"
    return (
        f"Near-zero ΔEvi may show the limits of the reader instead of the benchmark: {state}{limit}."
        f" Calibrate first: {remedy}."
    )


def _why_none_works(evidence: AuditEvidence, readers: list[ReaderSummary]) -> str:
    if not readers:
        return f"No reader that reads the texts was run. Calibrate first: {CALIBRATE}."
    accuracies = ", ".join(f"{reader.name} {reader.accuracy_full:.3f}" for reader in readers)
    remedy = f"Calibrate first: {CALIBRATE}, or give more training items."
    if any(reader.strength == "strong" for reader in readers):
        remedy = "Calibrate first: give more training items, or run a larger reader."
    return (
        f"No reader beats the majority rate of {evidence.majority_rate:.3f} by more than noise ({accuracies}), so"
        f" their ΔEvi says nothing about the benchmark. {remedy}"
    )


def _why_not_applicable(readers: list[ReaderSummary]) -> str:
    found = [seed.delta["global"] for reader in readers for seed in reader.seeds if "global" in seed.delta]
    if not found:
        return "The global shuffle was not run, and the region is decided on it: add --shuffles global."
    reason = next((delta.reason for delta in found if delta.reason), "no item's evidence can change")
    return f"The evidence cannot be swapped: {reason}. Items with different evidence would make an audit possible."


def _why_sensitive(readers: list[ReaderSummary]) -> str:
    sensitive = [reader.name for reader in readers if reader.verdict("global") == "sensitive"]
    return (
        f"Accuracy falls by more than noise when the evidence is swapped ({', '.join(sensitive)}): one working reader"
        " is enough. The verdict would change only if that fall did not repeat on other items of this kind."
    )


def _why_blind(readers: list[ReaderSummary]) -> str:
    names = ", ".join(reader.name for reader in readers)
    return (
        f"Truncation hides most swaps from {names}, and no other reader decides: a ΔEvi near zero says nothing here."
        " The verdict would change if a reader that sees the whole evidence were sensitive: raise max_length."
    )


def _why_inconclusive(reader: ReaderSummary, evidence: AuditEvidence) -> str:
    deltas = reader.deltas("global")
    if len({delta.verdict for delta in deltas}) > 1:
        return f"The seeds of {reader.name} disagree: more seeds (--reader-seeds) or more items would settle it."
    words = f"{reader.name} neither excludes zero nor stays within ±{evidence.margin:g}"
    return f"{words}: {'; '.join(dict.fromkeys(_what_settles(delta, evidence) for delta in deltas))}."


def _what_settles(delta: DeltaEvi, evidence: AuditEvidence) -> str:
    k = len(delta.accuracy_shuffled)
    if delta.p_method == "permutation" and 1.0 / (k + 1) > evidence.alpha + _ROUNDING:
        least = math.ceil(1.0 / evidence.alpha - _ROUNDING) - 1
        return f"{k} shuffles cannot give a p-value below {1.0 / (k + 1):.3f}: add --k {least} or more"
    if delta.items_needed is not None:
        return f"about {delta.items_needed:,} items would settle it, there are {delta.n_items:,}"
    if delta.ci.high < 0.0:
        return f"ΔEvi is negative ({span(delta.ci)}), swapped evidence helps this reader: train it on more items"
    return "no number of items can be given: its estimate or standard error gives no basis"


def _or_undefined(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.3f}"
