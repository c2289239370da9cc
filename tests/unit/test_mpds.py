import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy import stats

from evidep.errors import DataError, SettingError
from evidep.stats.metadata_cells import STRENGTHS
from evidep.stats.mpds import (
    metadata_predictions,
    metadata_predictions_out_of_fold,
    mpds,
    n_cells,
)


class SlowPredictor:
    """The declared rule in plain loops: nothing is shared with the vectorised code."""

    def __init__(self, columns, labels, n_classes):
        self.rows = list(zip(*[column.tolist() for column in columns], strict=True))
        self.labels, self.n_classes = labels.tolist(), n_classes
        order = self.order()
        chain = [tuple(order[: depth + 1]) for depth in range(len(order))]
        losses = {(d, s): self.loss(chain[:d], s) for d in range(len(order) + 1) for s in STRENGTHS}
        tied = [choice for choice, loss in losses.items() if loss <= min(losses.values()) + 1e-12]
        depth, self.strength = min(tied, key=lambda choice: (-choice[0], choice[1]))
        self.chain = chain[:depth]

    def order(self):
        columns = range(len(self.rows[0]))

        def first_best(subsets):
            losses = [self.loss([subset], 1.0) for subset in subsets]
            return next(s for s, loss in zip(subsets, losses, strict=True) if loss <= min(losses) + 1e-12), min(losses)

        (best,), least = first_best([(k,) for k in columns])
        order = [best]
        pairs = list(itertools.combinations(columns, 2))
        if pairs:
            pair, loss = first_best(pairs)
            if loss < least - 1e-12:
                order = sorted(pair, key=lambda k: (self.loss([(k,)], 1.0), k))
        while len(order) < len(self.rows[0]):
            longer, _ = first_best([(*order, k) for k in columns if k not in order])
            order.append(longer[-1])
        return order

    def shares(self, row, chain, strength, without=None):
        """P(label | row) from all training items but one; the chain runs from coarse to fine."""
        counts = Counter(label for at, label in enumerate(self.labels) if at != without)
        total = sum(counts.values())
        shares = [(counts[c] + 1 / self.n_classes) / (total + 1) for c in range(self.n_classes)]
        for subset in chain:
            cell = Counter()
            for at, (other, label) in enumerate(zip(self.rows, self.labels, strict=True)):
                if at != without and all(other[k] == row[k] for k in subset):
                    cell[label] += 1
            size = sum(cell.values())
            shares = [(cell[c] + strength * shares[c]) / (size + strength) for c in range(self.n_classes)]
        return shares

    def loss(self, chain, strength):
        return -sum(
            math.log(self.shares(row, chain, strength, without=at)[label])
            for at, (row, label) in enumerate(zip(self.rows, self.labels, strict=True))
        ) / len(self.rows)

    def predict(self, columns):
        rows = zip(*[column.tolist() for column in columns], strict=True)
        answers = []
        for row in rows:
            shares = self.shares(row, self.chain, self.strength)
            answers.append(shares.index(max(shares)))
        return answers


class LiteralPredictor:
    """Commonest label of the cell; unseen cells drop the finest column; ties go to what the coarser cell prefers."""

    def __init__(self, columns, labels, n_classes, order):
        self.n_classes, self.order = n_classes, order
        self.rows = list(zip(*[column.tolist() for column in columns], strict=True))
        self.labels = labels.tolist()

    def votes(self, row, depth):
        key = [row[k] for k in self.order[:depth]]
        same = [
            label for r, label in zip(self.rows, self.labels, strict=True) if [r[k] for k in self.order[:depth]] == key
        ]
        return [same.count(c) for c in range(self.n_classes)]

    def predict(self, columns):
        answers = []
        for row in zip(*[column.tolist() for column in columns], strict=True):
            left = list(range(self.n_classes))
            for depth in range(len(self.order), -1, -1):
                votes = self.votes(row, depth)
                left = [c for c in left if votes[c] == max(votes[c] for c in left)]
            answers.append(left[0])
        return answers


@pytest.mark.parametrize("case", range(25))
def test_predictions_follow_the_declared_rule(case):
    rng = np.random.default_rng(case)
    n, n_classes, m = int(rng.integers(2, 45)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    columns = [rng.integers(-1, int(rng.integers(1, 9)), n) for _ in range(m)]
    labels = np.where(rng.random(n) < 0.5, (columns[0] + 1) % n_classes, rng.integers(0, n_classes, n))
    held_out = [rng.integers(-1, 9, 30) for _ in range(m)]
    slow = SlowPredictor(columns, labels, n_classes)
    assert metadata_predictions(columns, labels, held_out, n_classes, "smoothed").tolist() == slow.predict(held_out)
    literal = LiteralPredictor(columns, labels, n_classes, slow.order())
    assert metadata_predictions(columns, labels, held_out, n_classes).tolist() == literal.predict(held_out)


def test_commonest_label_of_the_cell():
    # cell 0: labels 0 0 0 1, cell 1: labels 1 1 1 0, missing (-1): label 2 2 2, often enough to be believed
    column = np.repeat([0, 1, -1], [40, 40, 30])
    labels = np.concatenate([np.tile([0, 0, 0, 1], 10), np.tile([1, 1, 1, 0], 10), np.full(30, 2)])
    assert metadata_predictions([column], labels, [np.array([0, 1, -1])], 3).tolist() == [0, 1, 2]


def test_unseen_cells_back_off_to_fewer_columns_and_then_to_the_majority():
    # label = column a; column b is noise, so it is dropped first
    rng = np.random.default_rng(0)
    a, b = np.repeat([0, 1, 2], [80, 60, 60]), rng.integers(0, 3, 200)
    a_eval, b_eval = np.array([1, 2, 7, 7]), np.array([9, 9, 0, 9])  # b = 9 and a = 7 were never seen
    assert metadata_predictions([a, b], a, [a_eval, b_eval], 3).tolist() == [1, 2, 0, 0]
    assert metadata_predictions([b, a], a, [b_eval, a_eval], 3).tolist() == [1, 2, 0, 0]


def test_a_cell_seen_once_does_not_outvote_a_decided_coarser_cell():
    # source decides the label but for 10 % noise; the id is different for each item
    rng = np.random.default_rng(1)
    source, identifier = rng.integers(0, 2, 2000), np.arange(2000)
    labels = np.where(rng.random(2000) < 0.9, source, 1 - source)
    held_source = rng.integers(0, 2, 2000)
    held_id = rng.permutation(2000)  # known ids, whose single training label is noise for the new item
    predictions = metadata_predictions([identifier, source], labels, [held_id, held_source], 2, "smoothed")
    assert np.mean(predictions == held_source) > 0.99


def test_pure_noise_columns_predict_the_majority():
    rng = np.random.default_rng(2)
    columns = [rng.integers(0, 300, 3000) for _ in range(3)]
    labels = (rng.random(3000) < 0.3).astype(int)
    held_out = [rng.integers(0, 300, 1000) for _ in range(3)]
    assert np.mean(metadata_predictions(columns, labels, held_out, 2, "smoothed")) < 0.02


def test_metadata_that_decide_the_label_are_found_among_eight_columns():
    rng = np.random.default_rng(3)
    columns = [rng.integers(0, 40, 4000) for _ in range(8)]
    labels = (columns[2] + columns[5]) % 2
    held_out = [rng.integers(0, 40, 1000) for _ in range(8)]
    predictions = metadata_predictions(columns, labels, held_out, 2)
    seen = set(zip(columns[2].tolist(), columns[5].tolist(), strict=True))
    known = np.array([pair in seen for pair in zip(held_out[2].tolist(), held_out[5].tolist(), strict=True)])
    truth = (held_out[2] + held_out[5]) % 2
    assert known.mean() > 0.8
    assert np.mean(predictions[known] == truth[known]) > 0.99


def test_many_huge_columns_do_not_overflow():
    # 8 columns of 5,000 values: 5000^8 = 4e29 cells
    rng = np.random.default_rng(4)
    columns = [rng.permutation(5000) for _ in range(8)]
    assert n_cells(columns) == 5000
    assert n_cells([np.concatenate([c, c]) for c in columns]) == 5000
    labels = rng.integers(0, 2, 5000)
    assert len(metadata_predictions(columns, labels, [c[:7] for c in columns], 2)) == 7


def test_cells_stay_apart_beyond_64_bits():
    # 5 columns of 2^16 values: in 64-bit arithmetic the first column would be multiplied by 2^64 = 0
    first, others = np.append(np.arange(1 << 16), 5), np.append(np.arange(1 << 16), 0)
    assert n_cells([first, others, others, others, others]) == (1 << 16) + 1


def test_n_cells_counts_missing_as_a_value():
    assert n_cells([[0, 0, 1, -1, -1], [0, 1, 1, -1, 0]]) == 5
    assert n_cells([[2, 2, 2]]) == 1
    assert n_cells([[]]) == 0


def test_out_of_fold_never_sees_its_own_fold():
    rng = np.random.default_rng(5)
    columns, labels, folds = [rng.integers(0, 4, 60)], rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    predictions = metadata_predictions_out_of_fold(columns, labels, folds, 3)
    for fold in range(3):
        inside = folds == fold
        changed = labels.copy()
        changed[inside] = 2 - changed[inside]
        again = metadata_predictions_out_of_fold(columns, changed, folds, 3)
        assert again[inside].tolist() == predictions[inside].tolist()
        alone = metadata_predictions([columns[0][~inside]], labels[~inside], [columns[0][inside]], 3)
        assert alone.tolist() == predictions[inside].tolist()


def test_real_metadata(real_data):
    """PubMedQA's publication year tells next to nothing of the label, and must not do worse than the majority."""
    import gzip
    import json

    with gzip.open(real_data / "pubmedqa.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    names = sorted({row["label"] for row in rows})
    year = np.array([int(row["YEAR"]) if row["YEAR"] else -1 for row in rows])
    labels = np.array([names.index(row["label"]) for row in rows])
    train = np.array([row["split"] == "train" for row in rows])
    predictions = metadata_predictions([year[train]], labels[train], [year[~train]], len(names), "smoothed")
    majority = np.bincount(labels[train]).argmax()
    assert np.mean(predictions == labels[~train]) >= np.mean(labels[~train] == majority) - 0.01
    literal = defaultdict(Counter)
    for y, label in zip(year[train].tolist(), labels[train].tolist(), strict=True):
        literal[y][label] += 1
    raw = [literal[y].most_common(1)[0][0] if y in literal else majority for y in year[~train].tolist()]
    assert np.mean(predictions == labels[~train]) > np.mean(np.array(raw) == labels[~train])


def test_score_by_hand():
    # metadata right on 3 of 4, full reader on 4 of 4, majority 2 of 4: .75 / 1; (.75 - .5) / (1 - .5)
    result = mpds([1, 1, 1, 0] * 50, [1] * 200, 0.5, correct_majority=[1, 1, 0, 0] * 50, seed=0, n_cells=7)
    assert result.mpds == 0.75
    assert result.mpds_chance_corrected == 0.5
    assert (result.accuracy_metadata, result.accuracy_full, result.majority_rate) == (0.75, 1.0, 0.5)
    assert result.n_cells == 7
    assert result.reasons == {}


def test_score_above_one_is_not_clipped():
    result = mpds([1, 1, 1, 0] * 20, [1, 1, 0, 0] * 20, 0.25, seed=0)
    assert result.mpds == 1.5
    assert result.ci.low > 1.0


def test_interval_agrees_with_a_plain_bootstrap():
    rng = np.random.default_rng(7)
    sizes = rng.integers(1, 5, 80)
    groups = np.repeat(np.arange(80), sizes)
    metadata, full = rng.random(len(groups)) < 0.6, rng.random(len(groups)) < 0.8
    members = [np.flatnonzero(groups == g) for g in range(80)]
    ratios = []
    for _ in range(4000):
        rows = np.concatenate([members[g] for g in rng.integers(0, 80, 80)])
        ratios.append(metadata[rows].mean() / full[rows].mean())
    plain = np.quantile(ratios, [0.025, 0.975])
    ours = mpds(metadata, full, 0.3, groups=groups, seed=0, n_resamples=4000).ci
    # ours is wider by sqrt(80/79) * t / z, about 2.5 %
    assert (ours.low, ours.high) == pytest.approx(tuple(plain), abs=0.012)
    assert ours.high - ours.low > 0.99 * (plain[1] - plain[0])


def test_interval_is_joint_and_follows_the_seed():
    # both predictors fail on the same items: the ratio is certain though both accuracies are not
    rng = np.random.default_rng(8)
    easy = rng.random(300) < 0.7
    same = mpds(easy, easy, 0.4, seed=0)
    assert (same.ci.low, same.ci.high) == (1.0, 1.0)
    assert "degenerate" in same.reasons["ci"]
    # A rare denominator: the percentiles, which depend on the seed, reach further up than the t interval.
    other = rng.random(300) < 0.05
    assert mpds(easy, other, 0.4, seed=1).ci == mpds(easy, other, 0.4, seed=1).ci
    assert mpds(easy, other, 0.4, seed=1).ci != mpds(easy, other, 0.4, seed=2).ci


@pytest.mark.parametrize("n_groups", [10, 25, 120])
def test_interval_coverage(n_groups):
    rng = np.random.default_rng(9)
    hits, runs = 0, 600
    for run in range(runs):
        hard = np.repeat(rng.beta(3, 1.2, n_groups), 3)  # items of a group are similarly hard
        metadata, full = rng.random(len(hard)) < 0.7 * hard, rng.random(len(hard)) < hard
        ci = mpds(metadata, full, 0.1, groups=np.repeat(np.arange(n_groups), 3), seed=run, n_resamples=400).ci
        hits += ci.low <= 0.7 <= ci.high
    assert hits / runs >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)


def test_few_groups_and_a_large_one_give_no_interval():
    four = mpds([1, 1, 1, 0] * 4, [1] * 16, 0.3, groups=np.repeat(np.arange(4), 4), seed=0)
    assert four.mpds == 0.75
    assert math.isnan(four.ci.low)
    assert four.reasons["ci"] == four.ci.reason == "too few groups: 4, at least 10 are needed"
    large = mpds([1, 1, 1, 0] * 25, [1] * 100, 0.3, groups=np.maximum(np.arange(100), 30), seed=0)
    assert large.reasons["ci"].startswith("one group holds 31% of the items")


def test_rare_failures_get_room():
    # metadata fail on 4 of 100 items: linearised values are -.96 four times and .04 ninety-six times
    ci = mpds(np.arange(100) >= 4, np.ones(100), 0.3, seed=0).ci
    squares = 4 * 0.96**2 + 96 * 0.04**2
    df = squares**2 / (4 * 0.96**4 + 96 * 0.04**4)
    t = stats.t.ppf(0.975, df)
    skewness = (4 * 0.96**3 - 96 * 0.04**3) / 0.99 / squares / 100
    half = t * math.sqrt(squares / 100 / 99)
    assert ci.low == pytest.approx(0.96 - half - skewness * (1 + 2 * min(t, 3) ** 2) / 6)
    assert ci.high == pytest.approx(0.96 + half)
    # Metadata and reader fail on items of their own, one each of 40: 1 - .025^(1/40) of the groups may still be unlike.
    pair = np.arange(40)
    few = mpds(pair != 0, pair != 1, 0.3, seed=0).ci
    assert few.high >= 1 + (1 - 0.025 ** (1 / 40)) / (39 / 40)
    rng = np.random.default_rng(3)
    found = [mpds(rng.random(100) < 0.97, np.ones(100), 0.3, seed=k, n_resamples=200).ci for k in range(400)]
    given = [ci for ci in found if ci.reason is None]
    assert len(given) > 350
    assert np.mean([ci.low <= 0.97 <= ci.high for ci in given]) >= 0.95
    # With 250 groups the floor is too low to help: 7.5 failing groups are expected, and few of them look precise.
    groups = np.repeat(np.arange(250), 4)
    found = [
        mpds((rng.random(250) < 0.97)[groups], np.ones(1000), 0.3, groups=groups, seed=k, n_resamples=200).ci
        for k in range(400)
    ]
    assert np.mean([ci.low <= 0.97 <= ci.high for ci in found]) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 400)


def test_a_large_group_does_not_narrow_the_interval():
    # 5 of 105 items are one group in which metadata never fail; they fail in every third of the other 100 groups
    groups = np.concatenate([np.zeros(5), np.arange(1, 101)]).astype(int)
    metadata = np.concatenate([np.ones(5), np.arange(100) % 3 > 0])
    whole = mpds(metadata, np.ones(105), 0.3, groups=groups, seed=0)
    others = mpds(metadata[5:], np.ones(100), 0.3, seed=0)
    assert whole.ci.low == others.ci.low
    assert whole.ci.high >= others.ci.high
    assert "outside the largest group" in whole.ci.reason
    assert whole.reasons == {}


def test_chance_correction_needs_a_reader_above_chance():
    rng = np.random.default_rng(10)
    majority, full = rng.random(400) < 0.5, rng.random(400) < 0.52
    result = mpds(majority, full, majority.mean(), correct_majority=majority, seed=0)
    assert math.isnan(result.mpds_chance_corrected)
    assert "not above noise" in result.reasons["mpds_chance_corrected"]
    assert not math.isnan(result.mpds)


def test_a_reader_that_is_never_right_has_no_score():
    result = mpds([1, 0, 1], [0, 0, 0], 0.4, seed=0)
    assert math.isnan(result.mpds)
    assert "never right" in result.reasons["mpds"]
    assert math.isnan(result.ci.low)
    assert math.isnan(result.mpds_chance_corrected)


def test_degenerate_inputs_say_so():
    empty = mpds([], [], 0.5, seed=0)
    assert math.isnan(empty.mpds)
    assert set(empty.reasons) == {"mpds", "mpds_chance_corrected", "ci"}
    one_group = mpds([1, 0], [1, 1], 0.5, groups=[3, 3], seed=0)
    assert one_group.mpds == 0.5
    assert one_group.reasons["ci"] == "too few groups: 1, at least 10 are needed"
    assert math.isnan(one_group.mpds_chance_corrected)


ONE = [np.array([0, 1])]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: metadata_predictions([], [0, 1], [], 2), DataError, "at least one metadata column"),
        (lambda: metadata_predictions(ONE, [0, 1], [], 2), DataError, "eval_columns: expected 1 columns"),
        (lambda: metadata_predictions(ONE, [0, 1, 1], ONE, 2), DataError, r"train_columns\[0\]: expected 3 values"),
        (lambda: metadata_predictions(ONE, [0, 2], ONE, 2), DataError, "train_labels: expected labels from 0 to 1"),
        (lambda: metadata_predictions([np.array([])], [], ONE, 2), DataError, "train_labels: expected at least one"),
        (lambda: metadata_predictions([[0.5, 1]], [0, 1], ONE, 2), DataError, "whole numbers"),
        (
            lambda: metadata_predictions([*ONE, *ONE], [0, 1], [*ONE, np.array([1])], 2),
            DataError,
            r"eval_columns\[1\]: expected 2 values",
        ),
        (lambda: metadata_predictions_out_of_fold(ONE, [0, 1], [0, 0], 2), DataError, "at least two folds"),
        (lambda: n_cells([[1, 2], [1]]), DataError, r"columns\[1\]"),
        (lambda: mpds([1, 0], [1], 0.5, seed=0), DataError, "correct_full"),
        (lambda: mpds([1, 0], [1, 1], 1.5, seed=0), SettingError, "majority_rate"),
        (lambda: mpds([1, 0], [1, 1], 0.4, correct_majority=[1, 0], seed=0), DataError, "is not majority_rate"),
        (lambda: mpds([1, 0], [1, 1], 0.5, n_resamples=10, seed=0), SettingError, "n_resamples"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_every_small_table_is_predicted_as_declared():
    """All labelings of 4 items in two cells, against the loops."""
    column = np.array([0, 0, 0, 1])
    for labels in itertools.product(range(2), repeat=4):
        gold = np.array(labels)
        expected = SlowPredictor([column], gold, 2).predict([np.array([0, 1, 5])])
        held_out = [np.array([0, 1, 5])]
        assert metadata_predictions([column], gold, held_out, 2, "smoothed").tolist() == expected
        # By hand: cell 0 votes with items 0 to 2, cell 1 with item 3, an unseen cell takes the commonest of all four.
        first, everything = labels[:3], labels
        majority = int(sum(everything) > 2)
        by_hand = [int(sum(first) >= 2), labels[3], majority]
        assert metadata_predictions([column], gold, held_out, 2).tolist() == by_hand
