"""What the validity study measures: errors of tests, coverage of intervals, power, regions. Each returns plain rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats
from validity_designs import (
    ONE_LARGE_GROUP,
    Design,
    Sample,
    dealt,
    design_of,
    draw,
    measure,
    pair_sums,
    plan_of,
    rare,
    shuffled_answers,
    skewed,
    stratified,
)

from evidep.data.world_plans import Plan
from evidep.data.world_truth import truth_of
from evidep.stats.accuracy import accuracy_interval
from evidep.stats.calibration import reader_contrast, reader_works
from evidep.stats.delta_evi import delta_evi
from evidep.stats.information import v_information
from evidep.stats.mpds import mpds
from evidep.stats.paired import paired_difference
from evidep.stats.region_evidence import AblationEvidence, AuditEvidence, ContrastEvidence, ReaderEvidence
from evidep.stats.regions import diagnose
from evidep.types import BoolArray, FloatArray, IntArray, Interval

ALPHA, MARGIN = 0.05, 0.02
GROUPINGS = {"each item its own text": (1, False), "4 items a text, one label": (4, True),
             "a fifth of the items one text and label": (ONE_LARGE_GROUP, True)}  # fmt: skip


def at_least(hits: int, n: int, confidence: float = 0.999) -> float:
    """Exact (Clopper-Pearson) lower bound of a rate: an error rate is too high where this is above its nominal one."""
    return float(stats.binomtest(hits, n).proportion_ci(1 - 2 * (1 - confidence)).low)


def at_most(hits: int, n: int, confidence: float = 0.999) -> float:
    """Exact upper bound of a rate: coverage is too low where this is below the nominal one."""
    return float(stats.binomtest(hits, n).proportion_ci(1 - 2 * (1 - confidence)).high)


def null_designs() -> list[tuple[str, Design]]:
    """Readers that follow the evidence, on evidence that was dealt out at random: ΔEvi is 0."""
    return [
        (grouping, dealt(design_of(world, size, coherent), 0.0, world))
        for grouping, (size, coherent) in GROUPINGS.items()
        for world in ("matching", "evidence_only_shortcut", "mismatch_detector")
    ]


def margin_designs(margin: float = MARGIN) -> list[tuple[str, Design]]:
    """ΔEvi exactly at the margin, so "equivalent" is wrong: spread over all items, or in few items that change."""
    found = []
    for grouping, (size, coherent) in GROUPINGS.items():
        for world in ("matching", "mismatch_detector"):
            design = design_of(world, size, coherent)
            share = margin / design.delta_evi
            found.append((grouping, dealt(design, share, f"{world}, spread")))
            found.append((grouping, rare(design, share, f"{world}, few items")))
    return found


def effect_designs() -> list[tuple[str, Design]]:
    """The worlds with their own effect, with a small one, and with one that few items carry."""
    found = []
    for grouping, (size, coherent) in GROUPINGS.items():
        for world in ("matching", "mismatch_detector", "evidence_only_shortcut"):
            found.append((grouping, design_of(world, size, coherent)))
        found.append((grouping, dealt(design_of("matching", size, coherent), 0.2, "matching, a fifth")))
        found.append((grouping, rare(design_of("matching", size, coherent), 0.1, "matching, rare")))
        found.append((grouping, skewed(design_of("evidence_only_shortcut", size, coherent), 0.8)))
    return found


def shuffle_designs() -> list[tuple[str, str, Design]]:
    """(kind, grouping, design) under the other shuffles: null, effect at the margin in few items, own effect.

    Strata of within-metadata name the label in half of the items; out of fold the evidence moves inside one of five
    folds; near-miss donors are the five texts nearest in a topic that has nothing to do with the label.
    """
    found = []
    for grouping, (size, coherent) in GROUPINGS.items():
        for world in ("matching", "mismatch_detector"):
            plain = design_of(world, size, coherent)
            classes = plain.joint.shape[2]
            ways = {
                "within-label": stratified(plain, np.eye(classes)),
                "within-metadata": stratified(plain, (np.eye(classes) + 1 / classes) / 2),
                "out of fold": stratified(plain, np.full((classes, 5), 0.2)),
                "near-miss": replace(plain, shuffle="near-miss"),
            }
            for way, design in ways.items():
                found.append(("null", grouping, dealt(design, 0.0, f"{way}: {world}")))
                few = rare(design, MARGIN / design.delta_evi, f"{way}: {world}, few items")
                found.append(("margin", grouping, few))
                if world == "matching":
                    found.append(("effect", grouping, replace(design, name=f"{way}: {world}, own effect")))
    return found


def all_designs() -> list[tuple[str, str, str, Design]]:
    """(part, kind, grouping, design) of all cells whose ΔEvi is known."""
    kinds = {"null": null_designs, "margin": margin_designs, "effect": effect_designs}
    plain = [(kind, kind, grouping, design) for kind, made in kinds.items() for grouping, design in made()]
    return [*plain, *(("shuffles", *rest) for rest in shuffle_designs())]


def errors_and_coverage(design: Design, n: int, repeats: int, seed: int) -> dict[str, Any]:
    """Counts over repeated samples of one design: rejections, verdicts, intervals given and intervals that cover.

    "nonzero": ΔEvi is said not to be zero, by the verdict "sensitive" or by "detectable but negligible".
    """
    truth = design.delta_evi
    counts: Counter[str] = Counter()
    for sample, number in _samples(design, n, repeats, seed):
        found = measure(design, sample, number, alpha=ALPHA, margin=MARGIN)
        exact = found["exact"]
        counts["p"] += exact.p_value <= ALPHA
        counts["sensitive"] += exact.verdict == "sensitive"
        counts["equivalent"] += exact.verdict == "equivalent"
        counts["inconclusive"] += exact.verdict == "inconclusive"
        counts["nonzero"] += exact.verdict == "sensitive" or exact.negligible
        for way, delta in found.items():
            count_interval(counts, way, delta.ci, truth)
    return {"name": design.name, "n": n, "repeats": repeats, "truth": truth, **counts}


def other_intervals(n: int, repeats: int, seed: int, grouping: tuple[int, bool]) -> dict[str, Any]:
    """Coverage of the other intervals of a packet: accuracy, MPDS, difference of two readers' ΔEvi, V-information.

    The world is mismatch_detector with 20 % of the labels replaced; the second reader is the additive one; metadata
    are a coin that names the label in half of the items.
    """
    size, coherent = grouping
    plan, noise = plan_of("mismatch_detector"), 0.2
    classes = plan.evaluation.shape[2]
    joint = (1 - noise) * plan.evaluation + noise * plan.evaluation.sum(axis=2, keepdims=True) / classes
    ideal = Design("ideal", joint, plan.rule, size, coherent)
    light = Design("additive", joint, plan.additive_rule, size, coherent)
    told = 0.5
    accuracy_metadata = told + (1 - told) / classes
    probability = joint / np.maximum(joint.sum(axis=2, keepdims=True), 1e-300)
    of_query = joint.sum(axis=1) / joint.sum(axis=(1, 2))[:, None]
    seen = joint > 0
    log_ratio = np.log(np.where(seen, probability, 1.0)) - np.log(of_query)[:, None, :]
    information = float((joint * np.where(seen, log_ratio, 0.0)).sum() / math.log(2))
    counts: Counter[str] = Counter()
    for sample, number in _samples(ideal, n, repeats, seed):
        q, e, y = sample.query, sample.evidence, sample.label
        right = ideal.hits[q, e, y]
        count_interval(counts, "accuracy", accuracy_interval(right, sample.group, ALPHA), ideal.accuracy)
        rng = np.random.default_rng([seed, number, 1])
        known = rng.random(n) < told
        metadata = known | (rng.integers(0, classes, n) == y)
        score = mpds(metadata, right, 1 / classes, groups=sample.group, alpha=ALPHA, seed=number, n_resamples=500)
        count_interval(counts, "mpds", score.ci, accuracy_metadata / ideal.accuracy)
        drops = [right_of(d, sample) - pair_sums(d.hits, sample).row_mean for d in (ideal, light)]
        contrast = reader_contrast(*drops, sample.group, ALPHA)
        count_interval(counts, "contrast", contrast.ci, ideal.delta_evi - light.delta_evi)
        value = v_information(np.log(of_query[q, y]), np.log(probability[q, e, y]), sample.group, ALPHA)
        count_interval(counts, "information", value.ci, information)
    return {"n": n, "repeats": repeats, **counts}


def power_curve(n: int, repeats: int, ratios: Sequence[float], seed: int, k: int = 20) -> list[dict[str, Any]]:
    """How often an effect is found, against the predicted minimum detectable effect (MDE) of the same design.

    The share of items whose evidence is left in place is set so that ΔEvi is `ratio` times the MDE, which is taken from
    samples of the design itself.
    """
    full = design_of("matching")
    rows = []
    for ratio in ratios:
        share = 0.05
        for _ in range(6):
            design = dealt(full, share)
            pilots = _samples(design, n, 12 if n < 5000 else 4, seed + 7919)
            found = [measure(design, sample, number)["exact"] for sample, number in pilots]
            predicted = float(np.mean([delta.minimum_detectable_effect for delta in found]))
            share = min(1.0, ratio * predicted / full.delta_evi)
        design = dealt(full, share)
        hits = 0
        for sample, number in _samples(design, n, repeats, seed):
            delta = measure(design, sample, number, k=k, alpha=ALPHA, margin=MARGIN)["exact"]
            hits += delta.verdict == "sensitive" or (delta.negligible and delta.ci.low > 0)
        rows.append({"n": n, "ratio": ratio, "delta_evi": design.delta_evi, "hits": hits, "repeats": repeats})
    return rows


def predicted_power(ratio: float, alpha: float = ALPHA, power: float = 0.8) -> float:
    """Power at `ratio` times the minimum detectable effect, from the normal distribution."""
    critical = stats.norm.ppf(1 - alpha / 2)
    return float(stats.norm.cdf(ratio * (critical + stats.norm.ppf(power)) - critical))


def regions(world: str, n: int, repeats: int, seed: int, *, strong: bool) -> Counter[str]:
    """Regions in which samples of a planted world land, with the additive reader alone or with the ideal one beside.

    Readers know the train split's distribution exactly; a query-only reader answers what is commonest for its query.
    """
    plan = plan_of(world)
    found: Counter[str] = Counter()
    design = Design(world, plan.evaluation, plan.rule)
    for sample, number in _samples(design, n, repeats, seed):
        found[diagnose(_evidence(plan, design, sample, number, strong)).region] += 1
    return found


def true_region(world: str, *, strong: bool) -> str:
    """The region that is true of a planted world."""
    return truth_of(plan_of(world))["region_strong" if strong else "region_light"]


def right_of(design: Design, sample: Sample) -> FloatArray:
    """[n] 1 where the design's rule is right on the own evidence."""
    return design.hits[sample.query, sample.evidence, sample.label].astype(np.float64)


def _samples(design: Design, n: int, repeats: int, seed: int) -> Any:
    for number in range(repeats):
        yield draw(design, n, np.random.default_rng([seed, n, number])), number


def count_interval(counts: Counter[str], name: str, ci: Interval, truth: float) -> None:
    """An interval [x, x] that is marked degenerate is counted apart: it is no statement about sampling error."""
    if ci.reason is not None and ci.reason.startswith("degenerate"):
        counts[f"degenerate_{name}"] += 1
    elif math.isfinite(ci.low) and math.isfinite(ci.high):
        counts[f"given_{name}"] += 1
        counts[f"covers_{name}"] += ci.low - 1e-12 <= truth <= ci.high + 1e-12


def _evidence(plan: Plan, design: Design, sample: Sample, number: int, strong: bool) -> AuditEvidence:
    classes = plan.evaluation.shape[2]
    majority = sample.label == int(plan.train.sum(axis=(0, 1)).argmax())
    partial = {
        "query-only": plan.train.sum(axis=1).argmax(axis=1)[sample.query] == sample.label,
        "evidence-only": plan.train.sum(axis=0).argmax(axis=1)[sample.evidence] == sample.label,
    }
    light = Design("light", plan.evaluation, plan.additive_rule)
    ladder = [("additive", "light", light), *([("ideal", "strong", design)] if strong else [])]
    readers, ablations, rights, drops = [], [], [], []
    for name, strength, rule in ladder:
        right = rule.hits[sample.query, sample.evidence, sample.label]
        donors, shuffled, uniform, _ = shuffled_answers(rule.hits, sample, 20, number)
        sums = pair_sums(rule.hits, sample)
        delta = delta_evi(right, shuffled, donors, groups=sample.group, correct_uniform=uniform, sums=sums,
                          unchanged_rate=0.0, alpha=ALPHA, margin=MARGIN)  # fmt: skip
        works = reader_works(right, majority, rule.rule[sample.query, sample.evidence], sample.group, ALPHA)
        readers.append(ReaderEvidence(name, strength, works.works, strength == "strong", None, float(right.mean()),
                                      {"global": delta}, works_reason=works.reason))  # fmt: skip
        for arm, answers in partial.items():
            ablations.append(_ablation(name, arm, answers, right, sample.group))
        rights.append(right)
        drops.append(right - shuffled.mean(axis=0))
    value = mpds(_metadata_right(plan, sample, number), rights[-1], float(majority.mean()), correct_majority=majority,
                 groups=sample.group, seed=number, n_resamples=200)  # fmt: skip
    contrasts: tuple[ContrastEvidence, ...] = ()
    if strong:
        contrast = reader_contrast(drops[1], drops[0], sample.group, ALPHA)
        contrasts = (ContrastEvidence("ideal", "additive", contrast.mean, contrast.ci),)
    return AuditEvidence(MARGIN, ALPHA, float(majority.mean()), classes, tuple(readers), tuple(ablations), value.mpds,
                         value.ci, value.mpds_chance_corrected, contrasts=contrasts)  # fmt: skip


def _ablation(reader: str, arm: str, answers: BoolArray, right: BoolArray, group: IntArray) -> AblationEvidence:
    difference = paired_difference(right, answers, group, ALPHA).ci
    ci = accuracy_interval(answers, group, ALPHA)
    return AblationEvidence(reader, arm, "retrained", float(answers.mean()), ci, difference)


def _metadata_right(plan: Plan, sample: Sample, number: int) -> BoolArray:
    """Whether the metadata-majority predictor is right; values are drawn given the label."""
    given = plan.metadata[0].given_label
    cumulative = np.cumsum(given, axis=1)[sample.label, :-1]
    value = (np.random.default_rng([number, 2]).random(len(sample.label))[:, None] > cumulative).sum(axis=1)
    answer = (plan.train.sum(axis=(0, 1))[:, None] * given).argmax(axis=0)
    return np.asarray(answer[value] == sample.label)
