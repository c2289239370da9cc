from __future__ import annotations

import numpy as np
import pytest

from evidep.data.augment import MARK, PROTECTED, augment_training, refuse_augmented
from evidep.data.multitask import multitask_drift, multitask_folds, pool_tasks
from evidep.data.roles import ColumnRoles
from evidep.data.table import build_audit_data
from evidep.errors import DataError, SettingError


def pairs(n, *, name, labels=("no", "yes"), share=0.5, rare=0, per_evidence=1):
    rows = []
    for i in range(n):
        label = labels[0] if i < share * n else labels[1]
        if i < rare:
            label = "odd"
        rows.append(
            {
                "query": f"{name} is not about number {i} of {n} at all",
                "evidence": f"{name} text {i // per_evidence}",
                "label": label,
                "source": "web" if i % 2 else "book",
            }
        )
    return build_audit_data(rows, None, ColumnRoles("query", "evidence", "label", ("source",))).evaluation


@pytest.fixture(scope="module")
def tables():
    return {"nli": pairs(200, name="nli", share=0.3), "qa": pairs(60, name="qa", share=0.8, rare=2, per_evidence=3)}


def test_folds_cover_everything_and_keep_task_and_label_shares(tables):
    folds = multitask_folds(tables, 5, seed=0)
    pool = folds.pool
    assert len(pool) == 260
    seen = np.concatenate([folds.evaluation(k) for k in range(5)])
    assert sorted(seen.tolist()) == list(range(260))
    for k in range(5):
        train, evaluation = folds.train(k), folds.evaluation(k)
        assert len(np.intersect1d(train, evaluation)) == 0
        assert len(np.intersect1d(pool.components[train], pool.components[evaluation])) == 0
        nli = pool.local(evaluation)["nli"]
        assert len(nli) == 40
        assert (tables["nli"].labels[nli] == 0).sum() == 12


def test_global_indices_map_back_to_the_tables(tables):
    pool = pool_tasks(tables)
    rows = np.array([5, 199, 200, 259])
    assert {name: at.tolist() for name, at in pool.local(rows).items()} == {"nli": [5, 199], "qa": [0, 59]}
    parts = pool.tables_of(rows)
    assert parts["qa"].ids.to_pylist() == tables["qa"].select(np.array([0, 59])).ids.to_pylist()
    assert "qa" not in pool.local(np.array([1]))


def test_rare_classes_are_kept_and_warned_about_by_name(tables):
    folds = multitask_folds(tables, 5, seed=0)
    assert any("Task 'qa', label 'odd': 2 item(s) in 1 component(s)" in text for text in folds.warnings)
    assert not any(text.startswith("Label ") for text in folds.warnings)
    odd = tables["qa"].label_names.index("odd")
    kept = sum(
        (folds.pool.labels[folds.evaluation(k)][folds.pool.task[folds.evaluation(k)] == 1] == odd).sum()
        for k in range(5)
    )
    assert kept == 2


def test_texts_shared_across_tasks_stay_in_one_fold():
    one, two = pairs(40, name="same"), pairs(40, name="same")
    folds = multitask_folds({"a": one, "b": two}, 4, seed=1)
    assert np.array_equal(folds.fold[:40], folds.fold[40:])


def test_no_drift_by_construction_and_a_planted_one_is_found(tables):
    # Labels are balanced by construction; metadata is left to chance, which is what the check is for.
    for seed in range(5):
        labels = multitask_drift(multitask_folds({"nli": tables["nli"]}, 5, seed=seed), columns=[])
        assert all(drift.drift.jensen_shannon < 1e-9 for drift in labels)
    folds = multitask_folds({"nli": tables["nli"]}, 5, seed=1)
    assert not any(drift.drifted for drift in multitask_drift(folds))
    assert {drift.column for drift in multitask_drift(folds)} == {"label", "source"}
    from dataclasses import replace

    # All "no" items in fold 0: every other fold lacks them.
    planted = replace(folds, fold=np.where(folds.pool.labels == 0, 0, 1), n_folds=2)
    found = multitask_drift(planted, columns=[])
    assert [drift.drifted for drift in found] == [True, True]
    assert found[0].drift.jensen_shannon == pytest.approx(1.0)
    with pytest.raises(SettingError, match="no task has a metadata column 'colour'"):
        multitask_drift(folds, columns=["colour"])


def test_bad_pools(tables):
    with pytest.raises(DataError, match="at least one task"):
        pool_tasks({})
    with pytest.raises(DataError, match="task 'x' has no items"):
        pool_tasks({"x": tables["nli"].select(np.empty(0, dtype=np.int64))})
    with pytest.raises(SettingError, match="from 0 to 4"):
        multitask_folds(tables, 5, seed=0).train(5)


HELD = np.arange(0, 60, 3)
TRAIN = np.setdiff1d(np.arange(60), HELD)


@pytest.mark.parametrize("operation", ["copy", "swap", "delete"])
def test_augmentation_is_reversible_and_keeps_label_shares(operation):
    table = pairs(60, name="few", share=0.25)
    grown = augment_training(table, TRAIN, HELD, operation=operation, target=100, seed=3)
    assert len(grown.table) == 100
    assert np.isin(grown.source, TRAIN).all()
    back = grown.original()
    assert back.queries.to_list() == table.select(TRAIN).queries.to_list()
    assert back.ids.to_pylist() == table.select(TRAIN).ids.to_pylist()
    shares = [np.mean(t.labels == 0) for t in (table.select(TRAIN), grown.table)]
    assert shares[0] == pytest.approx(shares[1], abs=0.01)
    assert grown.table.evidence.to_list() == table.select(grown.source).evidence.to_list()
    assert np.array_equal(grown.table.labels, table.labels[grown.source])
    assert (grown.record.before, grown.record.after) == (40, 100)
    assert "evaluation items untouched" in grown.record.sentence
    again = augment_training(table, TRAIN, HELD, operation=operation, target=100, seed=3)
    assert again.table.queries.to_list() == grown.table.queries.to_list()
    assert again.table.fingerprint == grown.table.fingerprint != table.select(TRAIN).fingerprint


def test_operations_do_what_they_say():
    table = pairs(60, name="few")
    swapped = augment_training(table, TRAIN, HELD, operation="swap", target=80, seed=0)
    deleted = augment_training(table, TRAIN, HELD, operation="delete", target=400, seed=0, most=10)
    changed = 0
    for grown in (swapped, deleted):
        for at in np.flatnonzero(grown.added).tolist():
            old, new = table.queries[grown.source[at]].split(), grown.table.queries[at].split()
            if grown is swapped:
                assert sorted(old) == sorted(new)
                assert old != new
            else:
                assert set(new) <= set(old)
                assert [word for word in old if word in PROTECTED] == [word for word in new if word in PROTECTED]
                changed += len(new) < len(old)
    # Seven of nine words may go with probability 0.1 each: about half of the items change.
    assert 100 < changed < 300


def test_enough_items_stay_as_they_are_and_factors_are_bounded():
    table = pairs(60, name="few")
    same = augment_training(table, TRAIN, HELD, target=40, seed=0)
    assert not same.added.any()
    assert len(augment_training(table, TRAIN, HELD, target=10_000, seed=0, most=3).table) == 120


def test_evaluation_items_never_enter_and_leaks_are_refused():
    table = pairs(60, name="few", per_evidence=3)
    with pytest.raises(DataError, match="share component"):
        augment_training(table, np.arange(40), np.arange(40, 60), seed=0)
    with pytest.raises(DataError, match="is in train and in evaluation"):
        augment_training(table, np.arange(40), np.arange(39, 60), seed=0)
    grown = augment_training(table, np.arange(39), np.arange(39, 60), seed=0)
    refuse_augmented(grown.original())
    with pytest.raises(DataError, match="for training only"):
        refuse_augmented(grown.table)
    assert sum(MARK in name for name in grown.table.ids.to_pylist()) == grown.added.sum()


@pytest.mark.parametrize(
    ("more", "error"),
    [({"operation": "translate"}, SettingError), ({"target": 0}, SettingError), ({"most": 0}, SettingError)],
)
def test_bad_settings(more, error):
    with pytest.raises(error):
        augment_training(pairs(60, name="few"), TRAIN, HELD, seed=0, **more)


def test_positions_outside_the_table():
    with pytest.raises(DataError, match="positions from 0 to 59"):
        augment_training(pairs(60, name="few"), np.array([70]), HELD, seed=0)
    with pytest.raises(DataError, match="at least one item"):
        augment_training(pairs(60, name="few"), np.empty(0, dtype=np.int64), HELD, seed=0)
