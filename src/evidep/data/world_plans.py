"""How each planted world is made: hidden states, what they say about the label, and how they become text.

A world is a joint distribution of a hidden query state q, a hidden evidence state e and a label z, one table for each
split. Texts show the states in words; names, places, years and fillers are noise. Everything that is said about a
world follows from its tables (see `world_truth.truth_of`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from evidep.data import world_texts as texts
from evidep.types import FloatArray, IntArray

DEFAULT_MARGIN: Final = 0.02
"""The audit's default margin, for which regions and flags are stated."""
TRIVIA_SHARE: Final = (0.4 + 0.1216**0.5) / 2.4
"""Share of the commonest answer in `triviaqa`."""
Person = dict[str, str]
Writer = Callable[[Person, int, int], str]


@dataclass(frozen=True, slots=True, eq=False)
class MetadataColumn:
    """A metadata column: its values and [C, values] the distribution of the value given the label."""

    name: str
    values: tuple[str, ...]
    given_label: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The recipe of one world.

    Attributes:
        labels: Names of the C labels.
        train: [Q, E, C] joint probabilities of query state, evidence state and label in the train split.
        evaluation: [Q, E, C] the same for the evaluation split.
        rule: [Q, E] what an ideal reader of both texts answers.
        additive_rule: [Q, E] what additive logistic regression of the two states converges to.
        metadata: The columns; those after the first are independent of the label.
        write_query: Text from a person, a query state and a number that picks the wording.
        write_evidence: Text from a person, an evidence state and a number that picks the wording.
        region_light: Where an audit with additive readers alone ends (default settings, enough items).
        region_strong: Where it ends with a strong reader that learns `rule`.
        flags: What the audit with both should flag, beyond the region.
    """

    labels: tuple[str, ...]
    train: FloatArray
    evaluation: FloatArray
    rule: IntArray
    additive_rule: IntArray
    metadata: tuple[MetadataColumn, ...]
    write_query: Writer
    write_evidence: Writer
    region_light: str
    region_strong: str
    flags: tuple[str, ...] = ()


def direct_coupling(shares: FloatArray) -> Plan:
    """The question word gives the label away, to the reader and to the metadata.

    The label is the type of the answer, the query state is the label, the column question_word too; the evidence says
    nothing of it. accuracy_full = accuracy_metadata = query-only = 1, so MPDS = 1 and ΔEvi = 0 for every reader.
    """
    size = len(shares)
    words = MetadataColumn("question_word", ("who", "where", "when", "how many", "what")[:size], np.eye(size))
    return _question_types(shares, (words, source_column(size)), "direct_coupling", "direct_coupling")


def question_dominant(shares: FloatArray) -> Plan:
    """As direct_coupling, but the metadata do not know the label.

    accuracy_full = query-only = 1, accuracy_metadata = largest share p, so MPDS = p and ΔEvi = 0. Even an additive
    reader settles it: its query-only accuracy leaves nothing to gain.
    """
    size = len(shares)
    return _question_types(shares, (source_column(size), length_column(size)), "question_dominant", "question_dominant")


def question_dominant_skewed(shares: FloatArray) -> Plan:
    """Nearly all items have one label, and the query gives away a third of the rest.

    With share s of "full", "conflict" items are recognised by their query with probability 7/22 (7 of 22 conflicts in
    600 items at s = 578/600): accuracy_full = query-only = s + (1 - s) 7/22 = 0.975, majority 0.963, ΔEvi = 0, and
    MPDS = 0.963 / 0.975 = 0.988 from the base rate alone.
    """
    joint = np.zeros((2, 1, 2))
    known = 7 / 22
    joint[0, 0] = [shares[0], shares[1] * (1 - known)]
    joint[1, 0, 1] = shares[1] * known
    rule = np.array([[0], [1]])

    def query(person: Person, state: int, number: int) -> str:
        plain = texts.QUESTIONS_BY_TYPE[number % 5]
        return texts.query_of((plain, texts.CONFLICT_QUESTIONS)[state], number // 5, **person)

    return Plan(
        ("full", "conflict"),
        joint,
        joint,
        rule,
        rule,
        (source_column(2), length_column(2)),
        query,
        _neutral,
        "reader_limited",
        "question_dominant",
        ("label_skew",) if shares[1] * known <= DEFAULT_MARGIN else ("residual_query_signal",),
    )


def latent_coupling(shares: FloatArray) -> Plan:
    """Weak train labels that follow corrections in the evidence; a clean evaluation set without corrections."""
    return _latent(shares, ("supported", "refuted"), 0.7, ("annotator", ("desk", "field")), "{claim}.")


def hotpotqa(shares: FloatArray) -> Plan:
    """The end point of the synthetic HotpotQA: MPDS 0.643 and ΔEvi 0."""
    return _latent(shares, ("yes", "no"), 0.643, ("type", ("bridge", "comparison")), "is it true that {claim}?")


def evidence_only_shortcut(shares: FloatArray) -> Plan:
    """The style of the evidence gives the label away, whatever the query.

    accuracy_full = evidence-only = 1. A donor's label is independent of the item's: accuracy_shuffled = sum of p^2
    (1/C for equal shares), ΔEvi = 1 - sum of p^2. Within a label all evidence has one style, so there ΔEvi = 0.
    """

    def evidence(person: Person, state: int, number: int) -> str:
        core, rest = texts.choose(texts.EVIDENCE_STYLE[state], number)
        return texts.passage_of(person, rest, core)

    return _evidence_decides(shares, ("supported", "refuted", "unproven"), _plain_claim, evidence)


def triviaqa(shares: FloatArray) -> Plan:
    """The end point of the synthetic TriviaQA: ΔEvi 0.808 for an additive reader.

    The evidence names the answer among C = 6 occupations; accuracy_full = 1 and ΔEvi = 1 - sum of p^2. One share p
    and five of (1 - p)/5 give sum of p^2 = 0.192 where 1.2 p^2 - 0.4 p + 0.008 = 0, p = (0.4 + sqrt(0.1216))/2.4
    = 0.31196.
    """

    def query(person: Person, state: int, number: int) -> str:
        return texts.query_of(texts.OCCUPATION_QUESTIONS, number, **person)

    def evidence(person: Person, state: int, number: int) -> str:
        return texts.passage_of(person, number, *(text.format(**person) for text in texts.OCCUPATION_TEXTS[state]))

    return _evidence_decides(shares, texts.OCCUPATIONS, query, evidence)


def no_signal(shares: FloatArray) -> Plan:
    """Neither text nor metadata know the label.

    Every predictor has the largest share p, MPDS = 1 and ΔEvi = 0 from nothing at all. No reader works, so the audit
    must not call this coupling.
    """
    size = len(shares)
    joint = shares.reshape(1, 1, size)
    rule = np.full((1, 1), int(np.argmax(shares)))
    names = ("supported", "refuted", "unproven")[:size]
    flags = ("reader_failed", "label_skew") if shares.max() > 1 / size + DEFAULT_MARGIN else ("reader_failed",)
    return Plan(
        names,
        joint,
        joint,
        rule,
        rule,
        (source_column(size), length_column(size)),
        _plain_claim,
        _neutral,
        "reader_limited",
        "reader_limited",
        flags,
    )


def _question_types(shares: FloatArray, metadata: tuple[MetadataColumn, ...], light: str, strong: str) -> Plan:
    size = len(shares)
    joint = np.diag(shares).reshape(size, 1, size)
    rule = np.arange(size).reshape(size, 1)

    def query(person: Person, state: int, number: int) -> str:
        return texts.query_of(texts.QUESTIONS_BY_TYPE[state], number, **person)

    flags = ("residual_query_signal", *(("metadata_predicts_labels",) if light == "direct_coupling" else ()))
    return Plan(texts.ANSWER_TYPES[:size], joint, joint, rule, rule, metadata, query, _neutral, light, strong, flags)


def _latent(
    shares: FloatArray, labels: tuple[str, ...], agreement: float, column: tuple[str, tuple[str, ...]], frame: str
) -> Plan:
    """A query whose topic decides, weak labels in training, and a metadata column that agrees with the label.

    Why it is made this way: with donors drawn independently, accuracy_shuffled is an average over fixed evidence
    texts of the accuracy of a query-only predictor (the reader with that text). So where ΔEvi = 0 some query-only
    predictor is as good as the reader, and a *retrained* query-only reader can only be worse because of its training.
    Here it is: 0.4 of the claims are on disputed topics, and in training 0.65 of these carry a correction
    in their evidence that overturns the label. With the evidence, corrections explain these labels away and the
    topic keeps its meaning; without it, a disputed topic means the opposite in 0.65 of its training items. The
    evaluation set has no corrections.

    Evaluation: accuracy_full = 1 and no evidence matters, ΔEvi = 0; query-only = 0.6; the column agrees with the label
    with probability a in both splits, so accuracy_metadata = a and MPDS = a (a = 0.7; hotpotqa 0.643).
    """
    disputed, corrected = 0.4, 0.65
    train, evaluation = np.zeros((2, 2, 3, 2)), np.zeros((2, 2, 3, 2))  # disputed, topic, evidence state, label
    for label in range(2):
        other = 1 - label
        for joint in (train, evaluation):
            joint[0, label, 0, label] = (1 - disputed) * shares[label]
        evaluation[1, label, 0, label] = disputed * shares[label]
        train[1, label, 0, label] = disputed * (1 - corrected) * shares[label]
        train[1, other, 1 + label, label] = disputed * corrected * shares[label]
    rule = np.tile([[0, 0, 1], [1, 0, 1]], (2, 1))

    def query(person: Person, state: int, number: int) -> str:
        claims = tuple(frame.replace("{claim}", claim) for claim in texts.TOPIC_CLAIMS[state])
        return texts.query_of(claims, number, **person)

    def evidence(person: Person, state: int, number: int) -> str:
        return texts.passage_of(person, number, *([] if state == 0 else [texts.CORRECTIONS[state - 1]]))

    name, values = column
    agrees = np.array([[agreement, 1 - agreement], [1 - agreement, agreement]])
    return Plan(
        labels,
        train.reshape(4, 3, 2),
        evaluation.reshape(4, 3, 2),
        rule,
        rule,
        (MetadataColumn(name, values, agrees), source_column(2)),
        query,
        evidence,
        "reader_limited",
        "latent_coupling",
        ("residual_query_signal",),
    )


def _evidence_decides(shares: FloatArray, labels: tuple[str, ...], query: Writer, evidence: Writer) -> Plan:
    size = len(shares)
    joint = np.diag(shares).reshape(1, size, size)
    rule = np.arange(size).reshape(1, size)
    return Plan(
        labels[:size],
        joint,
        joint,
        rule,
        rule,
        (source_column(size), length_column(size)),
        query,
        evidence,
        "evidence_sensitive",
        "evidence_sensitive",
        ("evidence_only_shortcut",),
    )


def source_column(n_classes: int) -> MetadataColumn:
    """A metadata column that knows nothing of the label."""
    return _independent("source", ("archive", "gazette", "letters"), n_classes)


def length_column(n_classes: int) -> MetadataColumn:
    """A metadata column that knows nothing of the label."""
    return _independent("length", ("short", "long"), n_classes)


def _independent(name: str, values: tuple[str, ...], n_classes: int) -> MetadataColumn:
    return MetadataColumn(name, values, np.full((n_classes, len(values)), 1 / len(values)))


def _neutral(person: Person, state: int, number: int) -> str:
    return texts.passage_of(person, number)


def _plain_claim(person: Person, state: int, number: int) -> str:
    return texts.query_of(tuple("{name} " + activity + "." for activity in texts.ACTIVITIES), number, **person)
