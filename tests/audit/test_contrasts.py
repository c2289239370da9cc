"""Readers against each other: which pairs are contrasted, with what numbers, and who is passed over."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import evidep
from evidep.types import ReaderInfo


class TableReader:
    """Reads the number in the query and in the evidence and answers by a rule of the two; it fits nothing."""

    def __init__(self, name, strength, rule):
        self.info = ReaderInfo(name, strength, interaction=True)
        self.fingerprint = f"{name}-{strength}"
        self.rule = rule

    def __deepcopy__(self, memo):
        return copy.copy(self)

    def fit(self, train, *, seed):
        return self

    def encode(self, table):
        return [np.array([int(text.split()[-1]) for text in c.to_list()]) for c in (table.queries, table.evidence)]

    def scores(self, encoded, rows, donors):
        queries, evidence = encoded
        told = self.rule(queries[rows], evidence[donors])
        return np.column_stack([told == 0, told == 1]) * 4.0


def rows():
    """Item i asks i and is told i; the label is the parity of i."""
    return [{"query": f"Item {i}", "evidence": f"Told {i}", "label": "odd" if i % 2 else "even"} for i in range(400)]


def by_query(queries, evidence):
    return queries % 2


def thrown_by_foreign_evidence(queries, evidence):
    """Right unless the texts belong to different items; wrong for one item in ten anyway."""
    return np.where((queries == evidence) & (queries % 10 != 0), queries % 2, 0)


def never(queries, evidence):
    return np.zeros(len(queries), dtype=int)


def audit(*readers):
    return evidep.audit(rows(), train=rows(), readers=readers, shuffles=("global",), ablations=(), seed=0)


EXACT = TableReader("exact", "light", by_query)
LESSER = TableReader("lesser", "middle", lambda q, e: np.where(q % 10 == 1, 0, thrown_by_foreign_evidence(q, e)))
FAILED = TableReader("failed", "strong", never)
STRONG = TableReader("strong", "strong", by_query)


def test_every_working_pair_once_and_by_rung_whatever_the_order():
    packet = audit(STRONG, FAILED, LESSER, EXACT)
    pairs = [(row["reader"], row["against"]) for row in packet["calibration"]["contrasts"]]
    assert pairs == [("lesser", "exact"), ("strong", "exact"), ("strong", "lesser")]


def test_numbers_of_a_pair():
    packet = audit(EXACT, LESSER)
    (row,) = packet["calibration"]["contrasts"]
    # "exact" is right everywhere; "lesser" is wrong on the odd items that end in 1: 40 of 400.
    accuracy = {reader["reader"]: reader["accuracy_full"] for reader in packet["readers"]}
    assert accuracy == {"exact": 1.0, "lesser": 0.9}
    assert row["accuracy_difference"] == pytest.approx(-0.1)
    assert row["accuracy_ci"][0] < -0.1 < row["accuracy_ci"][1] < 0
    delta = {d["reader"]: d["mean"] for d in packet["delta_evi"]}
    assert row["difference"] == pytest.approx(delta["lesser"] - delta["exact"])
    # With foreign evidence it says "even": right on the even half only, so it falls from .9 to .5.
    assert delta["lesser"] == pytest.approx(0.4, abs=0.01)


def test_a_lesser_reader_does_not_make_the_set_evidence_sensitive():
    assert audit(LESSER).region == "evidence_sensitive"
    both = audit(LESSER, STRONG)
    assert both.region != "evidence_sensitive"
    assert "outperformed_reader" in both["diagnosis"]["flags"]
    assert "calibration_reversal" not in both["diagnosis"]["flags"]


class OnceReader(TableReader):
    """Learns under one seed and fails under every other."""

    def fit(self, train, *, seed):
        self.rule = thrown_by_foreign_evidence if seed == 0 else never
        return self


def test_failed_fits_do_not_count_in_the_spread_between_seeds():
    packet = evidep.audit(
        rows(), train=rows(), readers=(OnceReader("once", "strong", never),), shuffles=("global",), ablations=(),
        seed=0, reader_seeds=2,
    )  # fmt: skip
    works = {reader["seed"]: reader["works"] for reader in packet["readers"]}
    assert sorted(works.values()) == [False, True]
    (spread,) = packet["calibration"]["seed_spread"]
    good = next(seed for seed, working in works.items() if working)
    (effect,) = [delta["mean"] for delta in packet["delta_evi"] if delta["seed"] == good]
    assert effect > 0.3
    assert (spread["seeds"], spread["mean"]) == (1, pytest.approx(effect))
    assert packet["calibration"]["contrasts"] == []
