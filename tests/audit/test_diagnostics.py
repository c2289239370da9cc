"""Shift, flip and filtering on data where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

import evidep
from evidep.audit.packet import check_document
from evidep.errors import DataError
from evidep.report.text import summary
from evidep.stats.diagnostics import flipped, shift_value
from evidep.types import ColumnRoles

ROLES = ColumnRoles("query", "evidence", "label", ("kind", "noise"))


def rows(n, seed, told=0.8):
    """The kind names the label in a share `told` of the items; the query always gives it away, in words of the kind."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n):
        label, known = int(rng.integers(2)), rng.random() < told
        kind = int(label if known else 1 - label)
        style = ["red", "blue"][label] if kind == 0 else ["round", "square"][label]
        made.append(
            {
                "query": f"item {number} is {style}",
                "evidence": f"note {number} of {rng.integers(50)}",
                "label": ["no", "yes"][label],
                "kind": ["old", "new"][kind],
                "noise": "abc"[rng.integers(3)],
            }
        )
    return made


@pytest.fixture(scope="module")
def packet():
    return evidep.audit(rows(600, 1), train=rows(900, 0), roles=ROLES, diagnostics=True)


def test_a_value_that_training_never_saw_costs_accuracy(packet):
    check_document(packet.to_dict())
    row = next(row for row in packet["diagnostics"]["shift"] if row["column"] == "kind")
    # Words of one kind teach nothing about the other's: right on the kind seen, the commoner answer on the other.
    assert row["accuracy_in_distribution"] > 0.97
    assert row["accuracy_shifted"] < 0.5
    assert row["gap"] == pytest.approx(row["accuracy_in_distribution"] - row["accuracy_shifted"])
    assert row["loss"] == pytest.approx(row["accuracy_shifted_same_size"] - row["accuracy_shifted"])
    assert row["loss_ci"][0] > 0.3
    harmless = next(row for row in packet["diagnostics"]["shift"] if row["column"] == "noise")
    assert harmless["loss_ci"][0] <= 0.01
    assert harmless["value"] in "abc"


def test_flip_of_the_metadata_predictor_by_hand(packet):
    flips = {(row["reader"], row["column"]): row for row in packet["diagnostics"]["flip"]}
    # Two kinds that name different labels, whatever the noise column says: every answer turns.
    assert flips["metadata", "kind"]["changed_share"] == 1.0
    assert flips["metadata", "noise"]["changed_share"] == 0.0
    assert 0 <= flips["tfidf_lr", "noise"]["changed_share"] < 0.05
    assert flips["tfidf_lr", "kind"]["changed_share"] < 0.5


def test_filtering_drops_what_metadata_predict(packet):
    row = next(row for row in packet["diagnostics"]["filtering"] if row["column"] == "noise")
    # The kind names the label in 0.8 of the items; the rest is left to fit on.
    assert row["dropped_share"] == pytest.approx(0.8, abs=0.05)
    assert row["train_rows"] == pytest.approx(600 * 0.2, abs=40)
    assert row["gap_before"] is not None
    assert row["change"] == pytest.approx(row["gap_after"] - row["gap_same_size"])


def test_out_of_fold_uses_the_first_fold():
    packet = evidep.audit(rows(400, 2), roles=ROLES, diagnostics=True)
    assert "80 items of the first fold" in packet["diagnostics"]["split"]
    assert packet["diagnostics"]["shift"]


def test_without_metadata_there_is_a_reason():
    packet = evidep.audit(rows(60, 0), roles=ColumnRoles("query", "evidence", "label"), diagnostics=True)
    assert "--metadata" in packet["diagnostics"]["reasons"][0]
    assert packet["diagnostics"]["shift"] == []


def test_sections_stand_in_the_terminal(packet):
    text = summary(packet)
    assert "Metadata shift, flip and filtering" in text
    assert "100 % of the answers of the metadata-majority predictor" in " ".join(text.split())


def test_flipped_never_keeps_a_value_and_follows_the_shares():
    own = np.array([0] * 3000 + [1] * 10 + [-1] * 10)
    choices = np.array([0] * 50 + [1] * 30 + [2] * 10)
    new = flipped(own, choices, seed=0)
    assert (new != own).all()
    # Of those that may not keep 0, three quarters become 1: 30 of 30 + 10.
    assert np.mean(new[:3000] == 1) == pytest.approx(0.75, abs=4 * np.sqrt(0.75 * 0.25 / 3000))
    with pytest.raises(DataError, match="at least two values"):
        flipped(own, np.zeros(5, int), seed=0)


def test_shift_value_by_hand():
    # 0 is in 6 of 10 train items (too many), 1 in 3, 2 in 1.
    train = np.array([0] * 6 + [1] * 3 + [2])
    assert shift_value(train, np.array([0, 1, 2])) == 1
    assert shift_value(train, np.array([0, 2, 2])) == 2
    assert shift_value(train, np.array([0, 0])) is None
