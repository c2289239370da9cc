"""Designs of the validity study: samples whose ΔEvi is known, drawn from the tables of the planted worlds.

No text and no reader fit is involved: what the reader answers to a pair is a table lookup. So the statistics, the
donor drawing and the region rules, all the package's own, can be run thousands of times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evidep.data.conditions import permute
from evidep.data.derange import Draws
from evidep.data.synthetic import WORLDS
from evidep.data.world_plans import Plan
from evidep.stats.delta_evi import delta_evi
from evidep.stats.pair_sums import PairSums, from_sums
from evidep.types import BoolArray, DeltaEvi, FloatArray, IntArray

ONE_LARGE_GROUP = 0
"""As `group_size`: a fifth of all items share one evidence text, the others have one each."""


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """A joint distribution of hidden states and label, a rule that answers, and how evidence texts repeat.

    Attributes:
        name: What it is called in tables.
        joint: [Q, E, C] probabilities.
        rule: [Q, E] the answer.
        group_size: Items that share one evidence text; `ONE_LARGE_GROUP` for one text in a fifth of the items.
        coherent: Whether the items of a group have one query state and one label.
    """

    name: str
    joint: FloatArray
    rule: IntArray
    group_size: int = 1
    coherent: bool = False

    @property
    def hits(self) -> BoolArray:
        """[Q, E, C] whether the answer is the label."""
        return self.rule[:, :, None] == np.arange(self.joint.shape[2])

    @property
    def accuracy(self) -> float:
        """Accuracy with the own evidence."""
        return float(self.joint[self.hits].sum())

    @property
    def delta_evi(self) -> float:
        """Accuracy with the own evidence minus that with evidence drawn independently."""
        independent = self.joint.sum(axis=1)[:, None, :] * self.joint.sum(axis=(0, 2))[None, :, None]
        return self.accuracy - float(independent[self.hits].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """n items of a design: hidden states, labels and the group whose evidence text each has."""

    query: IntArray
    evidence: IntArray
    label: IntArray
    group: IntArray


def plan_of(world: str) -> Plan:
    """The tables of a planted world with its default shares."""
    kind = WORLDS[world]
    size = kind.n_classes
    first = 1 / size if kind.skew is None else kind.skew
    return kind.build(np.array([first, *[(1 - first) / (size - 1)] * (size - 1)]))


def design_of(world: str, group_size: int = 1, coherent: bool = False) -> Design:
    """A planted world with its ideal reader."""
    plan = plan_of(world)
    return Design(world, plan.evaluation, plan.rule, group_size, coherent)


def dealt(design: Design, share: float, name: str | None = None) -> Design:
    """The design in which the evidence of all but `share` of the items is dealt out at random.

    ΔEvi is `share` times what it was; at 0 the null hypothesis holds although the reader follows the evidence.
    """
    joint = design.joint
    independent = joint.sum(axis=1)[:, None, :] * joint.sum(axis=(0, 2))[None, :, None]
    return replace(design, name=name or f"{design.name}, dealt", joint=share * joint + (1 - share) * independent)


def rare(design: Design, share: float, name: str | None = None) -> Design:
    """The design in which all but `share` of the items are answered right from the query alone.

    ΔEvi is `share` times what it was, and most items never change: the hardest case for a standard error.
    """
    queries, evidences, classes = design.joint.shape
    joint = np.zeros((queries + 1, evidences, classes))
    joint[:queries] = share * design.joint
    joint[queries, :, 0] = (1 - share) * design.joint.sum(axis=(0, 2))
    rule = np.vstack([design.rule, np.zeros((1, evidences), dtype=design.rule.dtype)])
    return replace(design, name=name or f"{design.name}, rare", joint=joint, rule=rule)


def draw(design: Design, n: int, rng: np.random.Generator) -> Sample:
    """A sample of n items. Groups draw their evidence state independently; the items of a group share it."""
    if design.group_size == ONE_LARGE_GROUP:
        sizes = np.array([n // 5, *[1] * (n - n // 5)])
    else:
        sizes = np.full(-(-n // design.group_size), design.group_size)
    group = np.repeat(np.arange(len(sizes)), sizes)[:n]
    of_evidence = design.joint.sum(axis=(0, 2))
    evidence = rng.choice(len(of_evidence), size=len(sizes), p=of_evidence / of_evidence.sum())[group]
    given = np.moveaxis(design.joint, 1, 0).reshape(len(of_evidence), -1)
    cumulative = np.cumsum(given, axis=1) / np.where(of_evidence > 0, of_evidence, 1.0)[:, None]
    # The last cell takes what rounding leaves over.
    chance = rng.random(len(sizes))[group] if design.coherent else rng.random(n)
    cell = (chance[:, None] > cumulative[evidence, :-1]).sum(axis=1)
    query, label = np.divmod(cell, design.joint.shape[2])
    return Sample(query, evidence, label, group)


def pair_sums(hits: BoolArray, sample: Sample) -> PairSums:
    """Exact sums over all pairs, by counting states instead of visiting pairs. Groups are the equal texts."""
    n = len(sample.label)
    weights = hits.astype(np.float64)
    of_evidence = np.bincount(sample.evidence, minlength=hits.shape[1]).astype(np.float64)
    size = np.bincount(sample.group)[sample.group]
    inverse = np.where(size < n, 1.0 / np.maximum(n - size, 1), 0.0)
    counts, weighted = np.zeros((2, hits.shape[0], hits.shape[2]))
    np.add.at(counts, (sample.query, sample.label), 1.0)
    np.add.at(weighted, (sample.query, sample.label), inverse)
    right = hits[sample.query, sample.evidence, sample.label]
    rows = np.einsum("qey,e->qy", weights, of_evidence)[sample.query, sample.label]
    columns = np.einsum("qey,qy->e", weights, counts)[sample.evidence]
    same_columns = np.bincount(sample.group, weights=right)[sample.group]
    weighted_columns = np.einsum("qey,qy->e", weights, weighted)[sample.evidence]
    return from_sums(
        right,
        np.rint(rows).astype(np.int64),
        np.rint(columns).astype(np.int64),
        size * right,
        same_columns.astype(np.int64),
        weighted_columns - same_columns * inverse,
        sample.group,
        np.zeros(n, dtype=np.int64),
    )


def shuffled_answers(hits: BoolArray, sample: Sample, k: int, seed: int) -> tuple[IntArray, BoolArray, BoolArray]:
    """Donors [k, n] of the global shuffle, and right or wrong under them and under the uniform permutations."""
    n = len(sample.label)
    donors = np.empty((k, n), dtype=np.int64)
    shuffled, uniform = np.empty((2, k, n), dtype=bool)
    for number in range(k):
        permutation, donors[number], _ = permute(sample.group, None, Draws(seed, "global", number))
        shuffled[number] = hits[sample.query, sample.evidence[donors[number]], sample.label]
        uniform[number] = hits[sample.query, sample.evidence[permutation], sample.label]
    return donors, shuffled, uniform


def measure(
    design: Design, sample: Sample, seed: int, *, k: int = 20, alpha: float = 0.05, margin: float = 0.02
) -> dict[str, DeltaEvi]:
    """ΔEvi of one sample: "exact" from all pairs, "shuffles" from the K shuffles alone."""
    right = design.hits[sample.query, sample.evidence, sample.label]
    donors, shuffled, uniform = shuffled_answers(design.hits, sample, k, seed)
    found = {}
    for way, sums in (("exact", pair_sums(design.hits, sample)), ("shuffles", None)):
        found[way] = delta_evi(
            right,
            shuffled,
            donors,
            groups=sample.group,
            correct_uniform=uniform,
            sums=sums,
            unchanged_rate=0.0,
            alpha=alpha,
            margin=margin,
        )
    return found
