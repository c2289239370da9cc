from __future__ import annotations

import math

import evaluate
import numpy as np
import pytest

import evidep
from evidep.errors import DataError, SettingError

ROWS = {"systems": ["A", "A", "B", "B"], "tasks": ["x", "y"] * 2, "scores": [0.9, 0.5, 0.6, 0.6]}


def load():
    return evaluate.load(evidep.metric_path("fair_aggregate"), keep_in_memory=True)


def test_values_are_the_packages():
    from evidep.data.score_columns import scores_from_columns
    from evidep.stats.aggregate import Settings, analyse, summary

    got = load().compute(**ROWS, declared={"*": "accuracy"}, n_draws=300)
    table = scores_from_columns(*ROWS.values(), declared={"*": "accuracy"})
    expected = summary(analyse(table, Settings(n_draws=300)))
    assert got["aggregates"] == expected["aggregates"]
    assert got["aggregates"]["macro"]["A"]["value"] == pytest.approx(0.7)
    assert "number of items" in got["undefined"]["micro"]
    assert math.isnan(got["friedman_p"])


def test_batches_items_and_the_full_result():
    module = load()
    rng = np.random.default_rng(0)
    items = np.tile(np.arange(40), 4)
    right = (rng.uniform(size=160) < 0.7).astype(float)
    systems, tasks = np.repeat(["A", "B"], 80), np.tile(np.repeat(["x", "y"], 40), 2)
    for start in range(0, 160, 64):
        part = slice(start, start + 64)
        module.add_batch(systems=systems[part].tolist(), tasks=tasks[part].tolist(), scores=right[part].tolist())
    got = module.compute(declared={"*": "accuracy"}, items=items, n_draws=300, full=True)
    assert "evaluation items" in got["covers"]
    assert got["result"]["tasks"][0]["n_items"] == 40
    assert got["aggregates"]["macro"]["A"]["value"] == pytest.approx(right[:80].mean())


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"scores": [0.9, None, 0.6, 0.6]}, DataError, r"scores\[1\]: expected a number"),
        ({"scores": ["0.9", 0.5, 0.6, 0.6]}, DataError, r"scores\[0\]: expected a number"),
        ({"systems": ["A", 1, "B", "B"]}, DataError, r"systems\[1\]: expected a name"),
        ({"tasks": "xyxy"}, DataError, "tasks: expected a list"),
        ({"declared": None}, SettingError, "unknown whether a higher"),
        ({"seeds": [1, 2]}, DataError, "seed: expected 4 values"),
        ({"scores": [0.9, math.nan, 0.6, 0.6]}, DataError, "cells have no score"),
        ({"tasks": ["x", "x", "x", "y"]}, DataError, "there twice"),
        ({"n_draws": 1}, SettingError, "at least 100"),
    ],
)
def test_bad_input_is_refused_before_it_is_coerced(change, error, words):
    arguments = {**ROWS, "declared": {"*": "accuracy"}, "n_draws": 100, **change}
    with pytest.raises(error, match=words):
        load().compute(**arguments)


@pytest.mark.slow
def test_the_space_reads_a_table(tmp_path):
    gradio = pytest.importorskip("gradio")
    import importlib.util

    spec = importlib.util.spec_from_file_location("fair_app", f"{evidep.metric_path('fair_aggregate')}/app.py")
    app = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(app)
    path = tmp_path / "t.csv"
    path.write_text("system,task,score\nA,x,0.9\nA,y,0.5\nB,x,0.6\nB,y,0.6\n", encoding="utf-8")
    assert "macro mean" in app.report(str(path), "accuracy", "refuse")
    with pytest.raises(gradio.Error, match="unknown whether"):
        app.report(str(path), "homemade", "refuse")
    with pytest.raises(gradio.Error, match="Upload"):
        app.report(None, "accuracy", "refuse")
