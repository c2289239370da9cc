"""Shift, flip and filtering on data where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

import evidep
from evidep.audit.packet import check_document
from evidep.errors import DataError
from evidep.readers.callable import from_callable
from evidep.report.card import audit_card
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


class Spy:
    """A reader that answers by `rule` and keeps every table that it is fitted on."""

    def __init__(self, rule):
        self.fits = []
        self.reader = from_callable(rule, name="spy", fingerprint="1", fit=lambda train, seed: self.fits.append(train))

    def audit(self, evaluation, train, roles=ROLES):
        return evidep.audit(
            evaluation, train=train, roles=roles, diagnostics=True, readers=[self.reader], ablations=(), seed=0
        )["diagnostics"]


def ids(table):
    return set(table.ids.to_pylist())


def by_style(queries, evidence):
    return ["no" if "red" in query or "round" in query else "yes" for query in queries]


@pytest.fixture(scope="module")
def spied():
    spy, train = Spy(by_style), [row | {"id": f"t{number}"} for number, row in enumerate(rows(900, 0))]
    found = spy.audit([row | {"id": f"e{number}"} for number, row in enumerate(rows(300, 1))], train)
    # The audit itself, the flip, two of the kind (filtered by it, one label is left) and four of the noise.
    assert len(spy.fits) == 1 + 1 + 2 + 4
    return found, train, spy.fits


def test_what_each_reader_of_a_shift_is_fitted_on(spied):
    found, train, fits = spied
    row = next(row for row in found["shift"] if row["column"] == "noise")
    kept = {item["id"] for item in train if item["noise"] != row["value"]}
    held_out, same_size, filtered, few = (ids(table) for table in fits[4:])
    assert held_out == kept
    assert len(same_size) == len(fits[5]) == row["train_rows"] == len(kept)
    # Drawn at random from all 900 items, so it holds the value about as often as they do: in a third.
    inside = [item["id"] in same_size for item in train if item["noise"] == row["value"]]
    assert np.mean(inside) == pytest.approx(len(kept) / 900, abs=0.1)
    # Each kind names its label in 0.8 of the items, in every fold and cell: what it gets right is dropped.
    told = {"old": "no", "new": "yes"}
    assert filtered == {item["id"] for item in train if item["id"] in kept and told[item["kind"]] != item["label"]}
    assert len(few) == len(fits[7]) == len(filtered)
    assert few < kept
    assert len(few & filtered) < 0.5 * len(filtered)


def test_the_flip_reader_is_fitted_with_the_metadata_in_the_query(spied):
    _, train, fits = spied
    assert fits[1].queries.to_list() == [f"kind: {r['kind']} | noise: {r['noise']} | {r['query']}" for r in train]
    assert ids(fits[1]) == {item["id"] for item in train}


def test_flips_are_what_a_reader_of_one_field_answers():
    spy = Spy(lambda queries, evidence: ["no" if "kind: old" in query else "yes" for query in queries])
    found = spy.audit(rows(120, 1), rows(200, 0))
    shares = {row["column"]: row["changed_share"] for row in found["flip"] if row["reader"] == "spy"}
    assert shares == {"kind": 1.0, "noise": 0.0}


def test_filtering_is_out_of_fold():
    # 300 shelves of three items say nothing of the label. In the sample a shelf's commonest label is right in 3/4 of
    # its items (E max(X, 3 - X) / 3 for X ~ B(3, 1/2) is (3 + 3 + 2 * 3 * 2) / 8 / 3 = 0.75), out of fold in half.
    rng = np.random.default_rng(0)
    made = [
        row | {"kind": "ab"[rng.integers(2)], "shelf": f"s{number % 300}"} for number, row in enumerate(rows(900, 0))
    ]
    roles = ColumnRoles("query", "evidence", "label", ("shelf", "kind"))
    found = Spy(by_style).audit(rows_with_shelf(made), made, roles)
    row = next(row for row in found["filtering"] if row["column"] == "kind")
    assert row["dropped_share"] == pytest.approx(0.5, abs=0.08)


def rows_with_shelf(made):
    return [row | {"query": f"{row['query']} too"} for row in made[:300]]


def test_an_accuracy_gap_is_at_most_one():
    # Right on all 120 items but one, wrong on all 30 shifted ones but one: 119/120 - 1/30 = 0.958.
    made = [
        {
            "query": f"{number} {'yes' if right else 'no'}",
            "evidence": f"note {number}",
            "label": "yes" if number % 2 else "no",
            "kind": "new" if number < 30 else "old",
        }
        for number, right in ((n, (n % 2 == 1) == ((n >= 30 and n != 77) or n == 7)) for n in range(150))
    ]
    spy = Spy(lambda queries, evidence: [query.split()[-1] if query else "no" for query in queries])
    train = [row | {"evidence": f"page {number}"} for number, row in enumerate(made)]
    row = spy.audit(made, train, ColumnRoles("query", "evidence", "label", ("kind",)))["shift"][0]
    assert (row["value"], row["items_shifted"]) == ("new", 30)
    assert row["gap"] == pytest.approx(119 / 120 - 1 / 30)
    assert row["gap_ci"][1] == 1.0
    assert 0.4 < row["gap_ci"][0] < row["gap"]


def test_few_shifted_items_give_no_interval_but_the_reason():
    train = [row for number, row in enumerate(rows(400, 0)) if row["kind"] == "old" or number % 2]
    few = [row for row in rows(60, 1) if row["kind"] == "old"][:20] + [
        row for row in rows(60, 2) if row["kind"] == "new"
    ][:4]
    packet = evidep.audit(
        few, train=train, roles=ColumnRoles("query", "evidence", "label", ("kind",)), diagnostics=True
    )
    check_document(packet.to_dict())
    row = packet["diagnostics"]["shift"][0]
    assert row["items_shifted"] == 4
    assert row["gap_ci"] is row["loss_ci"] is None
    assert "gap: shifted items: too few groups: 4, at least 10 are needed" in row["reason"]
    assert "loss: too few groups: 4" in row["reason"]
    for text in (" ".join(str(packet).split()), audit_card(packet)):
        assert "they lose" in text
        assert "(no interval: gap: shifted items: too few groups: 4, at least 10 are needed; loss: too few" in text


def test_a_degenerate_interval_says_so():
    # The reader always answers "yes": right on all items but those of one noise, where it is always wrong.
    spy, roles = (
        Spy(lambda queries, evidence: ["yes"] * len(queries)),
        ColumnRoles("query", "evidence", "label", ("noise",)),
    )
    value = Spy(by_style).audit(rows(200, 1), rows(300, 0), roles)["shift"][0]["value"]
    made = [row | {"label": "no" if row["noise"] == value else "yes"} for row in rows(200, 1)]
    packet = evidep.audit(made, train=rows(300, 0), roles=roles, diagnostics=True, readers=[spy.reader])
    row = packet["diagnostics"]["shift"][0]
    assert (row["value"], row["gap"], row["gap_ci"], row["loss_ci"]) == (value, 1.0, [1.0, 1.0], [0.0, 0.0])
    text = " ".join(str(packet).split())
    assert "(gap: degenerate: no variance between groups on either side; loss: degenerate" in text


def test_what_is_not_done_has_its_reason():
    # The kind tells the label of every item, so filtering leaves nothing; "same" has one value.
    told = [row | {"same": "s"} for row in rows(300, 0, told=1.0)]
    roles = ColumnRoles("query", "evidence", "label", ("kind", "noise", "same"))
    fixed = from_callable(lambda queries, evidence: ["yes"] * len(queries), name="fixed", fingerprint="1")
    packet = evidep.audit(
        told[:150], train=told[150:], roles=roles, diagnostics=True, readers=["majority", fixed, "tfidf_lr"]
    )
    found = packet["diagnostics"]
    assert [(row["column"], row["gap_after"]) for row in found["filtering"] if row["column"] == "noise"] == [
        ("noise", None)
    ]
    assert found["filtering"][-1]["reason"] == "after filtering 0 training items are left, at least 20 are needed"
    assert "majority: no diagnostics, it is a baseline that does not read the texts" in found["reasons"]
    assert "fixed: no diagnostics, it cannot be fitted on other items or labels" in found["reasons"]
    assert "same: no flip, all training items have one value" in found["reasons"]
    assert any(reason.startswith("same: no shift, no value is held by 5 to 50 %") for reason in found["reasons"])
    without = next(reason for reason in found["reasons"] if reason.startswith("kind: no shift"))
    assert "one label is left: all" in without
    text = " ".join(str(packet).split())
    assert "not done, after filtering 0 training items are left" in text


def test_filtering_says_that_one_label_is_left():
    # "old" items are always "no"; half of the "new" ones are "yes". Filtered by kind and mark, "no" alone remains.
    made = [
        {
            "query": f"item {number} {word}",
            "evidence": f"note {number}",
            "label": label,
            "mark": mark,
            "side": "ab"[number % 2],
        }
        for number, (word, label, mark) in enumerate(
            [("red", "yes", "m")] * 200 + [("blue", "no", "m")] * 60 + [("blue", "no", "n")] * 200
        )
    ]
    roles = ColumnRoles("query", "evidence", "label", ("mark", "side"))
    found = evidep.audit(made[::2] + made[1::4], train=made, roles=roles, diagnostics=True)["diagnostics"]
    row = next(row for row in found["filtering"] if row["column"] == "side")
    # Half of the items have the other side; of these, "m" says "yes" and is wrong on 30.
    assert row["train_rows"] == 30
    assert row["reason"] == "after filtering one label is left: all 30 training items are no"
    assert row["gap_after"] is None


def test_connected_training_items_cannot_be_filtered():
    train = [row | {"evidence": "one page"} for row in rows(200, 0)]
    train[-1] |= {"evidence": "another page", "query": train[0]["query"]}
    found = evidep.audit(rows(100, 1), train=train, roles=ROLES, diagnostics=True)["diagnostics"]
    assert {row["reason"] for row in found["filtering"]} == {
        "all training items are connected, so that metadata cannot be tried out of fold"
    }
