"""What is true of a planted world, computed from its tables."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from evidep.data.world_plans import DEFAULT_MARGIN, Plan
from evidep.types import FloatArray, IntArray


class Truth(TypedDict):
    """What holds of a world in expectation, from its tables. Accuracies are shares in [0, 1].

    "ideal" readers answer by the planted rule; "additive" ones by what additive logistic regression converges to.
    Shuffled evidence comes from another group, drawn independently.
    """

    majority_rate: float
    accuracy_metadata: float
    query_only: float
    evidence_only: float
    accuracy_full: float
    accuracy_shuffled: float
    delta_evi: float
    delta_evi_within_label: float
    mpds: float
    accuracy_full_additive: float
    delta_evi_additive: float
    mpds_additive: float
    region_light: str
    region_strong: str
    flags: tuple[str, ...]


def truth_of(plan: Plan, noise: float = 0.0) -> Truth:
    """Every number that is true of a world, from its tables.

    With J(q, e, y) the evaluation's joint distribution (noise included) and P(e) its evidence margin:
    accuracy_full = sum of J(q, e, rule(q, e)); accuracy_shuffled = sum over q, y of J(q, y) times the probability that
    rule(q, e') = y for an independent e' from P (within a label: from P(e' | y)). Partial inputs and metadata
    answer what is commonest for them in the train split.
    """
    train, evaluation = (_noisy(joint, noise) for joint in (plan.train, plan.evaluation))
    majority = _answers(train.sum(axis=(0, 1))[None], evaluation.sum(axis=(0, 1))[None])
    metadata = _answers(*(_by_metadata(joint, plan, noise) for joint in (plan.train, plan.evaluation)))
    query_only = _answers(train.sum(axis=1), evaluation.sum(axis=1))
    evidence_only = _answers(train.sum(axis=0), evaluation.sum(axis=0))
    full, shuffled, within = _under(plan.rule, evaluation)
    full_additive, shuffled_additive, _ = _under(plan.additive_rule, evaluation)
    light = plan.region_light
    if light == "question_dominant" and 1 - query_only > DEFAULT_MARGIN:
        light = "reader_limited"
    return Truth(
        majority_rate=majority,
        accuracy_metadata=metadata,
        query_only=query_only,
        evidence_only=evidence_only,
        accuracy_full=full,
        accuracy_shuffled=shuffled,
        delta_evi=full - shuffled,
        delta_evi_within_label=full - within,
        mpds=metadata / full,
        accuracy_full_additive=full_additive,
        delta_evi_additive=full_additive - shuffled_additive,
        mpds_additive=metadata / full_additive,
        region_light=light,
        region_strong=plan.region_strong,
        flags=plan.flags,
    )


def _noisy(joint: FloatArray, noise: float) -> FloatArray:
    mixed: FloatArray = (1 - noise) * joint + noise * joint.sum(axis=-1, keepdims=True) / joint.shape[-1]
    return mixed


def _by_metadata(joint: FloatArray, plan: Plan, noise: float) -> FloatArray:
    """[values, C] joint distribution of the first metadata column and the observed label."""
    clean = np.diag(joint.sum(axis=(0, 1)))
    return plan.metadata[0].given_label.T @ _noisy(clean, noise)


def _answers(train: FloatArray, evaluation: FloatArray) -> float:
    """Accuracy of answering, for each seen value, its commonest train label; [values, C] joint distributions."""
    return float(evaluation[np.arange(len(train)), train.argmax(axis=1)].sum())


def _under(rule: IntArray, joint: FloatArray) -> tuple[float, float, float]:
    """Accuracy of a rule with own evidence, with independent evidence, and with evidence of the same label."""
    full = float(np.take_along_axis(joint, rule[:, :, None], axis=2).sum())
    of_query, of_evidence = joint.sum(axis=1), joint.sum(axis=0)
    hits = rule[:, :, None] == np.arange(joint.shape[2])
    label = of_evidence.sum(axis=0)
    given_label = of_evidence / np.where(label > 0, label, 1.0)
    shuffled = float(np.einsum("qy,qey,e->", of_query, hits, of_evidence.sum(axis=1)))
    return full, shuffled, float(np.einsum("qy,qey,ey->", of_query, hits, given_label))
