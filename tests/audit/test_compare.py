"""Two audits compared: the interval of a difference, matched items, and what counts as beyond noise."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from report.report_rows import delta_row, packet, reader_row

from evidep.audit.compare import compare, mover_difference
from evidep.audit.packet import AuditPacket
from evidep.errors import PacketError
from evidep.stats.mpds import mpds
from evidep.stats.paired import cluster_mean, paired_difference


def audit_of(drops, *, ids=None, fingerprint="a", labels=None, groups=None, full=None, guesses=None, alpha=0.05):
    """A packet of one reader whose items lose `drops` when the evidence is swapped, with per-item results."""
    drops = np.asarray(drops, dtype=float)
    n = len(drops)
    groups = np.arange(n) if groups is None else np.asarray(groups)
    full = np.ones(n, dtype=bool) if full is None else np.asarray(full)
    labels = np.zeros(n, dtype=int) if labels is None else np.asarray(labels)
    mean = cluster_mean(drops, groups, alpha, bound=math.inf)
    effect = delta_row("tfidf_lr", full=float(full.mean()), drop=mean.estimate, n=n)
    ends = [0.0, 1.0] if math.isnan(mean.ci.low) else [mean.ci.low, mean.ci.high]  # hand cases have few items
    effect |= {"ci": ends, "exact": mean.estimate, "mean": mean.estimate}
    accuracy = cluster_mean(full.astype(float), groups, alpha)
    few = math.isnan(accuracy.ci.low)
    reader = reader_row(
        "tfidf_lr", full=accuracy.estimate, ci=[0.0, 1.0] if few else [accuracy.ci.low, accuracy.ci.high]
    )
    made = packet([reader], [effect], region="evidence_sensitive", alpha=alpha)
    document = made.to_dict()
    document["data"] |= {"rows": n, "fingerprint": fingerprint}
    columns = {
        "id": pa.array([f"item-{i}" for i in range(n)] if ids is None else list(ids), type=pa.large_string()),
        "reader": pa.array(["tfidf_lr"] * n).dictionary_encode(),
        "seed": pa.array(np.zeros(n, dtype=np.int64)),
        "group": pa.array(groups),
        "label": pa.array(labels.astype(str)).dictionary_encode(),
        "prediction": pa.array(np.where(full, labels, labels + 1).astype(str)).dictionary_encode(),
        "right_share_global": pa.array(full - drops),
    }
    if guesses is not None:
        right = np.asarray(guesses)
        columns["metadata_prediction"] = pa.array(np.where(right, labels, labels + 1).astype(str))
        value = mpds(right, full, 0.4, groups=groups, alpha=alpha, seed=0)
        document["metadata"]["by_reader"][0] |= {"mpds": value.mpds, "ci": [value.ci.low, value.ci.high]}
    return AuditPacket(document, pa.table(columns))


def test_interval_of_a_difference_by_hand():
    # l_n = 0.05, u_o = 0.1, u_n = 0.1, l_o = 0.1, d = -0.2
    low, high = mover_difference(0.5, (0.4, 0.6), 0.3, (0.25, 0.4), 0.0)
    assert low == pytest.approx(-0.2 - math.sqrt(0.05**2 + 0.1**2))
    assert high == pytest.approx(-0.2 + math.sqrt(0.1**2 + 0.1**2))
    # wholly correlated: the distances cancel as far as they are equal
    low, high = mover_difference(0.5, (0.4, 0.6), 0.3, (0.25, 0.4), 1.0)
    assert low == pytest.approx(-0.2 - 0.05)
    assert high == pytest.approx(-0.2)


def test_an_audit_does_not_differ_from_itself():
    rng = np.random.default_rng(0)
    one = audit_of(rng.random(80), guesses=rng.random(80) < 0.6, full=rng.random(80) < 0.8)
    result = compare(one, one)
    assert {change.quantity for change in result.changes} == {"delta_evi", "mpds", "accuracy"}
    for change in result.changes:
        assert change.difference == 0.0
        assert change.outcome == "no difference shown"
        assert change.correlation == pytest.approx(1.0)
    assert (result.items.matched, result.items.relabelled, result.items.reason) == (80, 0, None)


def test_matched_items_give_the_paired_interval():
    rng = np.random.default_rng(1)
    before = rng.random(300)
    after = np.clip(before - 0.03 + rng.normal(0, 0.05, 300), 0, 1)
    change = compare(audit_of(before), audit_of(after, fingerprint="b")).find("delta_evi", "tfidf_lr", 0, "global")
    paired = paired_difference(after, before, bound=math.inf)
    assert change.ci == pytest.approx((paired.ci.low, paired.ci.high), abs=2e-4)
    assert change.outcome == "lower"
    # without the matching the same difference drowns: SE is sqrt(2 × 0.083 / 300) = 0.024
    others = [f"other-{i}" for i in range(300)]
    unmatched = compare(audit_of(before), audit_of(after, ids=others, fingerprint="b")).find(
        "delta_evi", "tfidf_lr", 0, "global"
    )
    assert unmatched.correlation == 0.0
    assert unmatched.outcome == "no difference shown"
    assert unmatched.difference == pytest.approx(change.difference)


@pytest.mark.parametrize(("shared", "grouped"), [(200, False), (100, False), (0, False), (200, True)])
def test_equal_benchmarks_are_told_apart_at_the_declared_rate(shared, grouped):
    """Two samples of one population, `shared` of 200 items in both: about 1 in 20 intervals may miss 0."""
    rng = np.random.default_rng(shared + grouped)
    missed = {"delta_evi": 0, "mpds": 0, "accuracy": 0}
    rounds = 80
    for _ in range(rounds):
        size = 400 - shared
        group = np.repeat(np.arange(size // 4), 4) if grouped else np.arange(size)
        skill = rng.normal(0, 1, group.max() + 1)[group] if grouped else np.zeros(size)
        common = rng.normal(0, 1, size) + skill
        sides = []
        for rows in (np.arange(200), np.arange(200 - shared, 400 - shared)):
            own = common[rows] + rng.normal(0, 0.5, 200)
            right = own > -0.5
            kept = np.clip(rng.normal(0.4, 0.2, 200), 0, 1)
            guesses = common[rows] + rng.normal(0, 0.5, 200) > 0
            sides.append(
                audit_of(
                    right - kept * right, ids=[f"i{r}" for r in rows], groups=group[rows], full=right,
                    guesses=guesses, fingerprint=str(rows[0]),
                )
            )  # fmt: skip
        result = compare(*sides)
        assert result.items.matched == shared
        for change in result.changes:
            missed[change.quantity] += change.outcome != "no difference shown"
    # binomial(80, 0.05): more than 10 happens with probability 0.003
    assert max(missed.values()) <= 10, missed


def test_correlation_by_hand():
    # Influences (drop minus mean) of a b c: -.5 0 .5, of b c d: -.5 .5 0. Shared: 0 × -.5 + .5 × .5 = .25,
    # over sqrt(.5 × .5).
    old = audit_of([0.0, 0.5, 1.0], ids="abc")
    new = audit_of([0.0, 1.0, 0.5], ids="bcd", fingerprint="b")
    assert compare(old, new).find("delta_evi", "tfidf_lr", 0, "global").correlation == pytest.approx(0.5)
    # c and d one group in the new audit: its sums are b -.5 and (c d) .5, the old ones b 0 and c .5: the same product.
    new = audit_of([0.0, 1.0, 0.5], ids="bcd", fingerprint="b", groups=[0, 1, 1])
    assert compare(old, new).find("delta_evi", "tfidf_lr", 0, "global").correlation == pytest.approx(0.5)
    # With b and c one group in the old audit both clusters join: old sums -.5 and .5 (a; b c), new 0 (b c) and 0 (d).
    old = audit_of([0.0, 0.5, 1.0], ids="abc", groups=[0, 1, 1])
    new = audit_of([0.0, 1.0, 0.5], ids="bcd", fingerprint="b")
    assert compare(old, new).find("delta_evi", "tfidf_lr", 0, "global").correlation == 0.0


def test_a_rounding_error_is_no_difference():
    drops = np.full(50, 0.25)
    drops[:25] = 0.5
    one, two = audit_of(drops), audit_of(drops)
    document = two.to_dict()
    document["delta_evi"][0]["exact"] += 1e-15
    change = compare(one, AuditPacket(document, two.items)).find("delta_evi", "tfidf_lr", 0, "global")
    assert change.difference != 0.0
    assert change.outcome == "no difference shown"


def test_row_numbers_are_matched_only_on_the_same_data():
    drops = np.random.default_rng(2).random(40)
    rows = [f"test:{i}" for i in range(40)]
    same = compare(audit_of(drops, ids=rows), audit_of(drops, ids=rows))
    assert same.items.matched == 40
    moved = compare(audit_of(drops, ids=rows), audit_of(drops, ids=rows, fingerprint="b"))
    assert moved.items.matched == 0
    assert "row numbers may have moved" in moved.items.reason


def test_relabelled_and_missing_items_are_counted():
    drops = np.linspace(0, 1, 30)
    labels = np.zeros(20, dtype=int)
    labels[:3] = 1
    old = audit_of(drops)
    new = audit_of(drops[:20], labels=labels, fingerprint="b")
    items = compare(old, new).items
    assert (items.old, items.new, items.matched, items.relabelled) == (30, 20, 20, 3)


def test_intervals_of_different_levels_are_not_compared():
    drops = np.linspace(0, 1, 30)
    changes = compare(audit_of(drops), audit_of(drops, alpha=0.1)).changes
    assert {change.outcome for change in changes} == {"undefined"}
    assert "different levels (alpha 0.05 and 0.1)" in changes[0].reason
    assert all(math.isnan(end) for change in changes for end in change.ci)


def test_undefined_values_stay_undefined_with_the_packets_reason():
    drops = np.linspace(0, 1, 30)
    lost = packet([reader_row("tfidf_lr")], [delta_row("tfidf_lr", drop=None)], region="not_applicable")
    change = compare(audit_of(drops), lost).find("delta_evi", "tfidf_lr", 0, "global")
    assert change.outcome == "undefined"
    assert "the new packet has no value: every item has the same evidence" in change.reason
    assert compare(audit_of(drops), lost).to_dict()["changes"][0]["new"] is None


def test_what_else_differs_is_told():
    old, new = audit_of(np.linspace(0, 1, 30)), audit_of(np.linspace(0, 1, 30))
    document = new.to_dict()
    document["settings"]["k"] = 50
    document["readers"].append(document["readers"][0] | {"reader": "minilm"})
    document["readers"][0]["fingerprint"] = "g" * 16
    notes = " ".join(compare(old, AuditPacket(document, new.items)).notes)
    assert "k differs: 20 in the old packet, 50 in the new one." in notes
    assert "tfidf_lr has other settings" in notes
    assert "Only in the new packet: minilm." in notes


def test_fits_are_matched_by_number_not_by_seed():
    drops = np.linspace(0, 1, 30)
    document = audit_of(drops).to_dict()
    document["settings"]["seed"] = 7
    for part in ("readers", "delta_evi"):
        document[part][0]["seed"] = 7
    assert compare(audit_of(drops), AuditPacket(document)).find("delta_evi", "tfidf_lr", 0, "global") is not None


def test_foreign_items_are_one_line():
    one = audit_of(np.linspace(0, 1, 30))
    with pytest.raises(PacketError, match=r"items.parquet of snli_cad has no column 'id'"):
        compare(one, AuditPacket(one.document, one.items.drop_columns(["id"])))
