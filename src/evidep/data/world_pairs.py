"""Planted worlds in which the label depends on query and evidence together."""

from __future__ import annotations

import numpy as np

from evidep.data import world_texts as texts
from evidep.data.world_plans import Person, Plan, length_column, source_column
from evidep.types import FloatArray


def matching(shares: FloatArray) -> Plan:
    """The label says whether query and evidence name the same of L = 12 trades; neither alone says anything.

    Both trades are uniform whatever the label, so query-only, evidence-only and every additive reader have the largest
    share p. An ideal reader has 1. Swapped, the trades agree with probability 1/12: with share s of "supported",
    accuracy_shuffled = s/12 + (1 - s) 11/12 (1/2 at s = 1/2: ΔEvi = 1/2).
    """
    size = len(texts.TRADES)
    same = np.eye(size, dtype=bool)
    joint = np.zeros((size, size, 2))
    joint[same, 0] = shares[0] / size
    joint[~same, 1] = shares[1] / (size * (size - 1))
    rule = np.where(same, 0, 1)

    def query(person: Person, state: int, number: int) -> str:
        return texts.query_of(texts.TRADE_CLAIMS, number, trade=texts.TRADES[state][0], **person)

    return Plan(
        ("supported", "refuted"),
        joint,
        joint,
        rule,
        np.full_like(rule, int(np.argmax(shares))),
        (source_column(2), length_column(2)),
        query,
        _trade_evidence,
        "reader_limited",
        "evidence_sensitive",
        ("reader_failed",),
    )


def mismatch_detector(shares: FloatArray) -> Plan:
    """Evidence matters only by not fitting: the wording of the claim says the rest.

    In a third of the items the evidence is about another trade and the label is "not_enough_info"; else the claim's
    style decides between the other two. accuracy_full = 1; query-only and additive readers follow the style: 2/3,
    ΔEvi 0. Swapped, the trades agree with probability 1/12 and everything else becomes "not_enough_info":
    accuracy_shuffled = 2/3 * 1/12 + 1/3 * 11/12 = 13/36, far below 2/3. So ΔEvi = 23/36, though the
    evidence is worth 1/3.
    """
    size = len(texts.TRADES)
    joint = np.zeros((2 * size, size, 3))
    rule = np.full((2 * size, size), 2)
    for state in range(2 * size):
        style, trade = divmod(state, size)
        joint[state, :, 2] = shares[2] / (2 * size * (size - 1))
        joint[state, trade] = 0.0
        joint[state, trade, style] = shares[style] / size
        rule[state, trade] = style

    def query(person: Person, state: int, number: int) -> str:
        style, trade = divmod(state, size)
        words, rest = texts.choose(texts.CLAIM_STYLE[style], number)
        return texts.query_of(texts.TRADE_STYLE_CLAIMS, rest, style=words, trade=texts.TRADES[trade][0], **person)

    return Plan(
        ("supported", "refuted", "not_enough_info"),
        joint,
        joint,
        rule,
        np.repeat(np.arange(2 * size) // size, size).reshape(rule.shape),
        (source_column(3), length_column(3)),
        query,
        _trade_evidence,
        "reader_limited",
        "evidence_sensitive",
        ("calibration_reversal", "residual_query_signal", "mismatch_detector"),
    )


def reader_limited(shares: FloatArray) -> Plan:
    """Yes exactly where claim and evidence say the same of a place, open or closed: an exclusive or.

    Claims are half and half, the evidence says open with probability 0.7, so a claim of "open" is right with 0.7:
    query-only = 0.7. Additive logistic regression fits the same and nothing more: given the query effect, both evidence
    states have margins P(yes) = 1/2, the score equations hold with no evidence effect, and the likelihood is concave.
    Its accuracy is 0.7 and its ΔEvi 0. An ideal reader has 1; a swapped evidence says the same as the own one with
    probability 0.7^2 + 0.3^2 = 0.58, so ΔEvi = 0.42. As always where a reader uses the evidence and the query alone
    says something, its shuffled accuracy is below query-only (0.58 < 0.7).
    """
    joint = np.zeros((2, 2, 2))
    rule = np.array([[0, 1], [1, 0]])
    for claim in range(2):
        for state in range(2):
            joint[claim, state, rule[claim, state]] = 0.5 * (0.7, 0.3)[state]

    def query(person: Person, state: int, number: int) -> str:
        words = texts.STATE_WORDS[state]
        return texts.query_of(texts.STATE_CLAIMS, number, state=words, place=_place(person), **person)

    def evidence(person: Person, state: int, number: int) -> str:
        core, rest = texts.choose(texts.STATE_EVIDENCE, number)
        detail, rest = texts.choose(texts.STATE_DETAIL[state], rest)
        core = core.format(state=texts.STATE_WORDS[state], place=_place(person), **person)
        return " ".join([core, detail, texts.choose(texts.FILLER, rest)[0]])

    return Plan(
        ("yes", "no"),
        joint,
        joint,
        rule,
        np.array([[0, 0], [1, 1]]),
        (source_column(2), length_column(2)),
        query,
        evidence,
        "reader_limited",
        "evidence_sensitive",
        ("calibration_reversal", "residual_query_signal", "mismatch_detector"),
    )


def _trade_evidence(person: Person, state: int, number: int) -> str:
    trade, detail = texts.TRADES[state]
    core, rest = texts.choose(texts.TRADE_EVIDENCE, number)
    return " ".join([core.format(trade=trade, **person), detail, texts.choose(texts.FILLER, rest)[0]])


def _place(person: Person) -> str:
    return texts.PLACES[(int(person["count"]) + int(person["year"])) % len(texts.PLACES)]
