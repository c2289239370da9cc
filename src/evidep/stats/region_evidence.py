"""What a diagnosis rests on: plain values of readers and ablations, and readers summarised over their seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evidep.errors import SettingError
from evidep.stats.checks import check_alpha, check_margin
from evidep.types import DeltaEvi, Interval, Strength, Verdict

CALIBRATE = "add --readers minilm_lr,minilm"


@dataclass(frozen=True, slots=True)
class ReaderEvidence:
    """One reader under one training seed.

    Attributes:
        works: Whether it beats the constant answer by more than noise (`calibration.reader_works`).
        delta: Shuffle family to ΔEvi; the region is decided on "global".
        works_reason: Why it does not work.
    """

    name: str
    strength: Strength
    works: bool
    interaction: bool
    contamination: str | None
    accuracy_full: float
    delta: Mapping[str, DeltaEvi]
    seed: int = 0
    works_reason: str | None = None
    labels_permuted_suspected: bool = False


@dataclass(frozen=True, slots=True)
class AblationEvidence:
    """Accuracy of one reader on partial input.

    Attributes:
        arm: "query-only", "evidence-only" or "shuffled-training".
        how: "retrained" on the partial input, or the full reader "masked" at test time.
        difference: Interval of accuracy_full minus this accuracy, paired by item, where known.
    """

    reader: str
    arm: str
    how: str
    accuracy: float
    ci: Interval
    difference: Interval | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ContrastEvidence:
    """Two readers on the same items and shuffles, stronger minus lighter reader.

    Attributes:
        mean: Difference in global ΔEvi.
        ci: Its interval, paired by item.
        accuracy: Difference in accuracy with the own evidence; nan where it was not computed.
        accuracy_ci: Its interval, paired by item.
    """

    stronger: str
    lighter: str
    mean: float
    ci: Interval
    accuracy: float = math.nan
    accuracy_ci: Interval | None = None


@dataclass(frozen=True, slots=True)
class AuditEvidence:
    """Everything that decides the region, as plain values.

    Attributes:
        margin: Equivalence margin of ΔEvi, declared before the run.
        alpha: Error rate of the tests.
        majority_rate: Accuracy of the constant answer.
        n_classes: Number of classes C.
        readers: One entry for each reader and seed; baselines may be among them and are passed over.
        ablations: Partial-input results, one for each reader, seed, arm and way.
        mpds: MPDS; None where no metadata was declared, nan where it is undefined.
        mpds_ci: Its interval.
        mpds_chance_corrected: Chance-corrected MPDS, nan where undefined.
        mpds_high: MPDS from which metadata count as predicting the labels.
        contrasts: Paired contrasts between readers, where computed.
    """

    margin: float
    alpha: float
    majority_rate: float
    n_classes: int
    readers: tuple[ReaderEvidence, ...]
    ablations: tuple[AblationEvidence, ...] = ()
    mpds: float | None = None
    mpds_ci: Interval | None = None
    mpds_chance_corrected: float = math.nan
    mpds_high: float = 0.9
    contrasts: tuple[ContrastEvidence, ...] = field(default=())

    def __post_init__(self) -> None:
        check_alpha(self.alpha, below=0.5)
        check_margin(self.margin)
        if not self.mpds_high > 0.0:
            raise SettingError(f"mpds_high: expected a number above 0, got {self.mpds_high}; 0.9 is the default")


@dataclass(frozen=True, slots=True)
class ReaderSummary:
    """One reader over all its training seeds. Only seeds that work count, where any does.

    Attributes:
        accuracy_full: Mean over the counted seeds.
        failures: Reasons of the seeds that do not work.
        seeds: The counted seeds' evidence.
    """

    name: str
    strength: Strength
    interaction: bool
    contamination: str | None
    works: bool
    accuracy_full: float
    seeds: tuple[ReaderEvidence, ...]
    failures: tuple[str, ...] = ()

    def deltas(self, shuffle: str) -> list[DeltaEvi]:
        """ΔEvi under a shuffle for each counted seed, where the intervention could be performed."""
        found = [seed.delta[shuffle] for seed in self.seeds if shuffle in seed.delta]
        return [delta for delta in found if delta.verdict != "not_applicable"]

    def verdict(self, shuffle: str) -> Verdict:
        """The verdict on which all seeds agree; "inconclusive" where they do not."""
        verdicts = {delta.verdict for delta in self.deltas(shuffle)}
        if not verdicts:
            return "not_applicable"
        return verdicts.pop() if len(verdicts) == 1 else "inconclusive"

    def effect(self, shuffle: str) -> float:
        """Mean ΔEvi over seeds, the exact one where the reader can give it; nan where there is none."""
        values = [value_of(delta) for delta in self.deltas(shuffle)]
        return sum(values) / len(values) if values else math.nan

    def accuracy_shuffled(self, shuffle: str) -> float:
        """Mean accuracy under the shuffle over seeds; nan where there is none."""
        values = [delta.accuracy_full - value_of(delta) for delta in self.deltas(shuffle)]
        return sum(values) / len(values) if values else math.nan


@dataclass(frozen=True, slots=True)
class Outperformed:
    """A reader that another one beats without any evidence dependence.

    Attributes:
        by: Name of the better reader, which is equivalent to zero.
        gain: Accuracy of the better reader minus this one's, same items.
        ci: Interval of the gain; it lies above 0.
    """

    by: str
    gain: float
    ci: Interval


def outperformed(evidence: AuditEvidence, readers: Sequence[ReaderSummary]) -> dict[str, Outperformed]:
    """Readers that are not equivalent to zero while a more accurate one is, by name.

    Better by more than noise, on the same items, and without losing anything when the evidence is swapped: then the
    accuracy of the lesser reader can be had without evidence, and what it loses is its own weakness.
    """
    zero = {reader.name for reader in readers if reader.works and reader.verdict("global") == "equivalent"}
    found: dict[str, Outperformed] = {}
    for reader in readers:
        if not reader.works or reader.verdict("global") not in ("sensitive", "inconclusive"):
            continue
        for contrast in evidence.contrasts:
            ci = contrast.accuracy_ci
            if ci is None or math.isnan(ci.low):
                continue
            if contrast.stronger == reader.name and contrast.lighter in zero and ci.high < 0.0:
                turned = Interval(-ci.high, -ci.low, ci.level, ci.reason)
                found.setdefault(reader.name, Outperformed(contrast.lighter, -contrast.accuracy, turned))
            elif contrast.lighter == reader.name and contrast.stronger in zero and ci.low > 0.0:
                found.setdefault(reader.name, Outperformed(contrast.stronger, contrast.accuracy, ci))
    return found


def value_of(delta: DeltaEvi) -> float:
    """The effect: exact where the reader can give it, else the mean over the shuffles."""
    return delta.mean if math.isnan(delta.exact) else delta.exact


def summarise(evidence: AuditEvidence) -> list[ReaderSummary]:
    """The readers that read the texts, in the order given, each over its seeds."""
    summaries = []
    for name in dict.fromkeys(reader.name for reader in evidence.readers if reader.strength != "baseline"):
        seeds = [reader for reader in evidence.readers if reader.name == name]
        working = [reader for reader in seeds if reader.works]
        counted = working or seeds
        failures = tuple(
            f"seed {reader.seed}: {reader.works_reason or 'not above the majority rate by more than noise'}"
            for reader in seeds
            if not reader.works
        )
        summaries.append(
            ReaderSummary(
                name,
                seeds[0].strength,
                seeds[0].interaction,
                seeds[0].contamination,
                bool(working),
                sum(reader.accuracy_full for reader in counted) / len(counted),
                tuple(counted),
                failures,
            )
        )
    return summaries


def retrained(evidence: AuditEvidence, arm: str) -> dict[str, list[AblationEvidence]]:
    """Reader to its retrained ablations of one arm, one for each seed; undefined accuracies are left out."""
    found: dict[str, list[AblationEvidence]] = {}
    for ablation in evidence.ablations:
        if (ablation.arm, ablation.how) == (arm, "retrained") and not math.isnan(ablation.accuracy):
            found.setdefault(ablation.reader, []).append(ablation)
    return found


def mean_accuracy(ablations: list[AblationEvidence]) -> float:
    """Mean accuracy over seeds."""
    return sum(ablation.accuracy for ablation in ablations) / len(ablations)


def span(ci: Interval | None) -> str:
    """An interval in words."""
    if ci is None or math.isnan(ci.low):
        return "no interval"
    return f"{ci.level:.0%} interval [{ci.low:.3f}, {ci.high:.3f}]"
