"""From results to the evidence that the region rules read. The rules themselves are in stats/regions.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final

from evidep.audit.results import AuditResults, ReaderResult
from evidep.stats.calibration import reader_contrast
from evidep.stats.paired import paired_difference
from evidep.stats.region_evidence import AblationEvidence, AuditEvidence, ContrastEvidence, ReaderEvidence
from evidep.stats.regions import diagnose
from evidep.types import Diagnosis

RUNGS: Final = ("light", "middle", "strong")
"""The calibration ladder."""


def diagnose_results(results: AuditResults) -> Diagnosis:
    """The region of an audit, its flags and its reasons."""
    settings = results.settings
    metadata = results.metadata
    chosen = None if metadata is None else metadata.by_reader[key(denominator(results))]
    return diagnose(
        AuditEvidence(
            margin=settings.margin,
            alpha=settings.alpha,
            majority_rate=results.majority_rate,
            n_classes=results.data.evaluation.n_classes,
            readers=tuple(_reader(result) for result in results.readers),
            ablations=tuple(
                _ablation(results, result, number)
                for result in results.readers
                for number in range(len(result.ablations))
            ),
            mpds=None if chosen is None else chosen.mpds,
            mpds_ci=None if chosen is None else chosen.ci,
            mpds_chance_corrected=math.nan if chosen is None else chosen.mpds_chance_corrected,
            mpds_high=settings.mpds_high,
            contrasts=contrasts(results),
        )
    )


def denominator(results: AuditResults) -> ReaderResult:
    """The reader whose accuracy is the denominator of MPDS."""
    return most_accurate(results.readers)


def most_accurate(readers: Sequence[ReaderResult]) -> ReaderResult:
    """The most accurate reader that reads the texts and works; where none does, the next best."""

    def rank(result: ReaderResult) -> tuple[bool, bool, float]:
        return result.info.strength != "baseline", result.works.works, float(result.correct.mean())

    return max(readers, key=rank)


def key(result: ReaderResult) -> str:
    """Name of a reader and seed."""
    return f"{result.info.name}/{result.seed}"


def contrasts(results: AuditResults) -> tuple[ContrastEvidence, ...]:
    """Every reader against every one before it on the ladder, at the audit's seed, on the same items and shuffles.

    The ladder goes by rung (light, middle, strong), within a rung in the order given. Readers that do not work and
    baselines are left out.
    """
    settings, groups = results.settings, results.data.evaluation.groups
    ladder = [
        result
        for rung in RUNGS
        for result in results.readers
        if (result.info.strength, result.seed) == (rung, settings.seed) and result.works.works and result.arm("global")
    ]
    found = []
    for lighter, stronger in combinations(ladder, 2):
        drops = stronger.drop("global"), lighter.drop("global")
        contrast = reader_contrast(*drops, groups, settings.alpha, seed=settings.seed)
        gain = paired_difference(stronger.correct, lighter.correct, groups, settings.alpha)
        names = stronger.info.name, lighter.info.name
        found.append(ContrastEvidence(*names, contrast.mean, contrast.ci, gain.estimate, gain.ci))
    return tuple(found)


def _reader(result: ReaderResult) -> ReaderEvidence:
    return ReaderEvidence(
        name=result.info.name,
        strength=result.info.strength,
        works=result.works.works,
        interaction=result.info.interaction,
        contamination=result.info.contamination,
        accuracy_full=float(result.correct.mean()),
        delta={arm.arm: arm.delta for arm in result.arms},
        seed=result.seed,
        works_reason=result.works.reason,
        labels_permuted_suspected=result.works.labels_permuted_suspected,
    )


def _ablation(results: AuditResults, result: ReaderResult, number: int) -> AblationEvidence:
    ablation = result.ablations[number]
    difference = paired_difference(
        result.correct, ablation.correct, results.data.evaluation.groups, results.settings.alpha
    )
    return AblationEvidence(
        result.info.name, ablation.arm, ablation.how, ablation.accuracy, ablation.ci, difference.ci, result.seed
    )
