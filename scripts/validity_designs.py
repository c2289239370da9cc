"""Designs of the validity study: samples whose ΔEvi is known, drawn from the tables of the planted worlds.

No text and no reader fit is involved: what the reader answers to a pair is a table lookup. So the statistics, the
donor drawing and the region rules, all the package's own, can be run thousands of times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evidep.data.conditions import draw_neighbours, permute
from evidep.data.derange import Draws
from evidep.data.synthetic import WORLDS
from evidep.data.world_plans import Plan
from evidep.stats.delta_evi import delta_evi
from evidep.stats.exact import donor_set_sums
from evidep.stats.pair_sums import PairSums, from_sums
from evidep.types import BoolArray, DeltaEvi, FloatArray, IntArray

ONE_LARGE_GROUP = 0
"""As `group_size`: a fifth of all items share one evidence text, the others have one each."""


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """A joint distribution of hidden states and label, a rule that answers, and how evidence texts repeat.

    Attributes:
        name: What it is called in tables.
        joint: [Q, E, Y] probabilities of hidden states and outcome; an outcome is a label, or a label and a stratum.
        rule: [Q, E] the answer.
        group_size: Items that share one evidence text; `ONE_LARGE_GROUP` for one text in a fifth of the items.
        coherent: Whether the items of a group have one query state and one outcome.
        label_of: [Y] label of each outcome; None: the outcomes are the labels.
        stratum_of: [Y] stratum inside which evidence is exchanged; None: one stratum.
        shuffle: "permutation" within strata, or "near-miss": one of the nearest other texts.
    """

    name: str
    joint: FloatArray
    rule: IntArray
    group_size: int = 1
    coherent: bool = False
    label_of: IntArray | None = None
    stratum_of: IntArray | None = None
    shuffle: str = "permutation"

    @property
    def hits(self) -> BoolArray:
        """[Q, E, Y] whether the answer is the label."""
        labels = np.arange(self.joint.shape[2]) if self.label_of is None else self.label_of
        return self.rule[:, :, None] == labels

    @property
    def independent(self) -> FloatArray:
        """[Q, E, Y] the distribution when evidence is drawn anew within the stratum."""
        strata = np.zeros(self.joint.shape[2], dtype=np.int64) if self.stratum_of is None else self.stratum_of
        found = np.zeros_like(self.joint)
        for stratum in np.unique(strata):
            part = self.joint[:, :, strata == stratum]
            of_evidence = part.sum(axis=(0, 2)) / max(float(part.sum()), 1e-300)
            found[:, :, strata == stratum] = part.sum(axis=1)[:, None, :] * of_evidence[None, :, None]
        return found

    @property
    def accuracy(self) -> float:
        """Accuracy with the own evidence."""
        return float(self.joint[self.hits].sum())

    @property
    def delta_evi(self) -> float:
        """Accuracy with the own evidence minus that with evidence drawn anew within the stratum."""
        return self.accuracy - float(self.independent[self.hits].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """n items of a design: hidden states, outcomes, strata and the group whose evidence text each has.

    `label` is the outcome: the label itself wherever a design has no strata.
    """

    query: IntArray
    evidence: IntArray
    label: IntArray
    group: IntArray
    stratum: IntArray
    near: IntArray | None = None


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


def skewed(design: Design, first: float) -> Design:
    """The design with its outcomes weighted so that the first has this share."""
    share = design.joint.sum(axis=(0, 1))
    weight = np.full(len(share), (1 - first) / (1 - share[0]))
    weight[0] = first / share[0]
    return replace(design, name=f"{design.name}, {first:g} of one label", joint=design.joint * weight)


def dealt(design: Design, share: float, name: str | None = None) -> Design:
    """The design in which the evidence of all but `share` of the items is dealt out at random.

    ΔEvi is `share` times what it was; at 0 the null hypothesis holds although the reader follows the evidence.
    """
    joint = share * design.joint + (1 - share) * design.independent
    return replace(design, name=name or f"{design.name}, dealt", joint=joint)


def rare(design: Design, share: float, name: str | None = None) -> Design:
    """The design in which all but `share` of the items are answered right from the query alone.

    ΔEvi is `share` times what it was, and most items never change: the hardest case for a standard error.
    """
    queries, evidences, outcomes = design.joint.shape
    labels = np.arange(outcomes) if design.label_of is None else design.label_of
    known = np.arange(labels.max() + 1)
    joint = np.zeros((queries + len(known), evidences, outcomes))
    joint[:queries] = share * design.joint
    # One further query state for each label, which names it. Evidence and outcome stay distributed as they were.
    joint[queries + labels, :, np.arange(outcomes)] = (1 - share) * design.joint.sum(axis=0).T
    rule = np.vstack([design.rule, np.repeat(known[:, None], evidences, axis=1)])
    return replace(design, name=name or f"{design.name}, rare", joint=joint, rule=rule)


def stratified(design: Design, given_label: FloatArray) -> Design:
    """The design whose evidence is exchanged inside strata, drawn given the label alone by a table [C, M]."""
    queries, evidences, classes = design.joint.shape
    strata = given_label.shape[1]
    return replace(
        design,
        joint=(design.joint[:, :, :, None] * given_label).reshape(queries, evidences, classes * strata),
        label_of=np.repeat(np.arange(classes), strata),
        stratum_of=np.tile(np.arange(strata), classes),
    )


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
    stratum = np.zeros(n, dtype=np.int64) if design.stratum_of is None else design.stratum_of[label]
    near = nearest_texts(rng.random(len(sizes)), group) if design.shuffle == "near-miss" else None
    return Sample(query, evidence, label, group, stratum, near)


def nearest_texts(topic: FloatArray, group: IntArray, neighbours: int = 5) -> IntArray:
    """[n, 5] for each item an item of each of the texts whose topic, a number, is nearest to that of its own."""
    order = np.argsort(topic)
    rank = np.argsort(order)
    window = rank[:, None] + np.array([*range(-neighbours, 0), *range(1, neighbours + 1)])
    there = (window >= 0) & (window < len(topic))
    other = order[np.clip(window, 0, len(topic) - 1)]
    distance = np.where(there, np.abs(topic[other] - topic[:, None]), np.inf)
    nearest = np.take_along_axis(other, np.argsort(distance, axis=1)[:, :neighbours], axis=1)
    first = np.unique(group, return_index=True)[1]
    return first[nearest][group]


def pair_sums(hits: BoolArray, sample: Sample) -> PairSums:
    """Exact sums over all pairs, by counting states instead of visiting pairs. Groups are the equal texts."""
    right = hits[sample.query, sample.evidence, sample.label]
    if sample.near is not None:
        shown = hits[sample.query[:, None], sample.evidence[sample.near], sample.label[:, None]]
        return donor_set_sums(shown, sample.near, right)
    stratum, n_strata = sample.stratum, int(sample.stratum.max()) + 1
    weights = hits.astype(np.float64)
    cell = np.unique(sample.group * n_strata + stratum, return_inverse=True)[1]
    size, pool = np.bincount(cell)[cell], np.bincount(stratum)[stratum]
    inverse = np.where(size < pool, 1.0 / np.maximum(pool - size, 1), 0.0)
    of_evidence = np.zeros((n_strata, hits.shape[1]))
    np.add.at(of_evidence, (stratum, sample.evidence), 1.0)
    counts, weighted = np.zeros((2, n_strata, hits.shape[0], hits.shape[2]))
    np.add.at(counts, (stratum, sample.query, sample.label), 1.0)
    np.add.at(weighted, (stratum, sample.query, sample.label), inverse)
    rows = np.einsum("qey,se->sqy", weights, of_evidence)[stratum, sample.query, sample.label]
    columns = np.einsum("qey,sqy->se", weights, counts)[stratum, sample.evidence]
    same_columns = np.bincount(cell, weights=right)[cell]
    weighted_columns = np.einsum("qey,sqy->se", weights, weighted)[stratum, sample.evidence]
    return from_sums(
        right,
        np.rint(rows).astype(np.int64),
        np.rint(columns).astype(np.int64),
        size * right,
        same_columns.astype(np.int64),
        weighted_columns - same_columns * inverse,
        cell,
        stratum,
    )


def shuffled_answers(
    hits: BoolArray, sample: Sample, k: int, seed: int
) -> tuple[IntArray, BoolArray, BoolArray | None, BoolArray]:
    """Donors [k, n], right or wrong under them and under the uniform permutations (near-miss: None), and who moves."""
    n = len(sample.label)
    donors = np.empty((k, n), dtype=np.int64)
    shuffled, uniform = np.empty((2, k, n), dtype=bool)
    movable = np.ones(n, dtype=bool)
    strata = sample.stratum if sample.stratum.any() else None
    for number in range(k):
        draws = Draws(seed, "global", number)
        if sample.near is not None:
            permutation = donors[number] = draw_neighbours(sample.near, sample.group, draws)
        else:
            permutation, donors[number], movable = permute(sample.group, strata, draws)
        shuffled[number] = hits[sample.query, sample.evidence[donors[number]], sample.label]
        uniform[number] = hits[sample.query, sample.evidence[permutation], sample.label]
    return donors, shuffled, None if sample.near is not None else uniform, movable


def measure(
    design: Design, sample: Sample, seed: int, *, k: int = 20, alpha: float = 0.05, margin: float = 0.02
) -> dict[str, DeltaEvi]:
    """ΔEvi of one sample: "exact" from all pairs, "shuffles" from the K shuffles alone."""
    right = design.hits[sample.query, sample.evidence, sample.label]
    donors, shuffled, uniform, movable = shuffled_answers(design.hits, sample, k, seed)
    found = {}
    for way, sums in (("exact", pair_sums(design.hits, sample)), ("shuffles", None)):
        found[way] = delta_evi(
            right,
            shuffled,
            donors,
            movable=movable,
            groups=sample.group,
            correct_uniform=uniform,
            sums=sums,
            strata=None if sample.near is not None else sample.stratum,
            unchanged_rate=0.0,
            alpha=alpha,
            margin=margin,
        )
    return found
