"""The evaluate modules: every way to load them, what they return, and what they refuse before evaluate coerces it."""

from __future__ import annotations

import doctest
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import evaluate
import numpy as np
import pytest
import yaml

import evidep
from evidep.errors import CacheError, DataError, SettingError
from evidep.modules import module_names, modules_cache, register_modules

MANY = [0, 1] * 200
ALWAYS, NEVER = [MANY] * 20, [[1, 0] * 200] * 20


def load(name, config=None, **more):
    return evaluate.load(evidep.metric_path(name), config, keep_in_memory=True, **more)


def test_the_default_configuration_returns_the_documented_values():
    half = [[0, 1] * 100 + [1, 0] * 100] * 20
    result = load("delta_evi").compute(predictions=MANY, references=MANY, shuffled_predictions=half)
    # full 400/400; each shuffle 200/400 right; the permutation p-value with no shuffle as good is 1/(20+1).
    assert result["accuracy_full"] == 1.0
    assert result["accuracy_shuffled"] == [0.5] * 20
    assert result["delta_evi"] == 0.5
    assert result["sd_population"] == 0.0
    assert result["p_value"] == pytest.approx(1 / 21)
    assert result["verdict"] == "sensitive"
    # D_i is 1 for 200 items and 0 for 200: SE = 0.5 / sqrt(399), so the interval is 0.5 ± 1.966 × 0.02503.
    assert result["ci"] == pytest.approx([0.5 - 1.96593 * 0.5 / 399**0.5, 0.5 + 1.96593 * 0.5 / 399**0.5], abs=1e-4)


def test_sd_is_the_population_sd_over_shuffles():
    shuffled = [MANY] * 10 + [[1, 0] * 200] * 10
    result = load("delta_evi").compute(predictions=MANY, references=MANY, shuffled_predictions=shuffled)
    # Ten shuffles at 1 and ten at 0: mean 0.5, population SD 0.5 (the sample SD would be 0.513).
    assert result["sd_population"] == 0.5
    # ten of twenty shuffles are as good as full: p = (1 + 10) / 21
    assert result["p_value"] == pytest.approx(11 / 21)


def test_three_verdicts():
    def verdict(predictions, shuffled):
        references = MANY[: len(predictions)]
        module = load("delta_evi")
        return module.compute(predictions=predictions, references=references, shuffled_predictions=shuffled)["verdict"]

    assert verdict(MANY, ALWAYS) == "equivalent"
    assert verdict(MANY, NEVER) == "sensitive"
    assert verdict([0, 1] * 6, [[0, 1] * 5 + [1, 0]] * 20) == "inconclusive"


def test_strings_numpy_and_integers_give_the_same():
    names = np.array(["no", "yes"])
    shuffled = np.array([[0, 1] * 100 + [1, 0] * 100] * 20)
    one = load("delta_evi").compute(predictions=MANY, references=MANY, shuffled_predictions=shuffled)
    two = load("delta_evi").compute(
        predictions=names[MANY].tolist(), references=names[MANY].tolist(), shuffled_predictions=names[shuffled]
    )
    assert one == two


def test_groups_widen_the_interval():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 10)
    kept = np.repeat(rng.random(40) < 0.5, 10)  # whole groups lose their answer together
    shuffled = [np.where(kept, MANY, 1 - np.array(MANY))] * 20

    def width(**more):
        module = load("delta_evi")
        low, high = module.compute(predictions=MANY, references=MANY, shuffled_predictions=shuffled, **more)["ci"]
        return high - low

    # ten perfectly correlated items a group: the design effect is 10, so the interval is about sqrt(10) wider
    assert width(groups=group) / width() == pytest.approx(10**0.5, rel=0.1)


def test_mpds_by_hand_with_train_data():
    result = load("mpds").compute(
        predictions=[0, 0, 1, 1],
        references=[0, 0, 1, 0],
        metadata={"source": ["a", "a", "b", "b"]},
        train_references=[0, 0, 0, 1, 1],
        train_metadata={"source": ["a", "a", "a", "b", "b"]},
    )
    # metadata answers a -> 0, b -> 1: right on items 0, 1, 2, as the system is; the majority label 0 on 3 of 4
    assert (result["accuracy_metadata"], result["accuracy_full"], result["majority_rate"]) == (0.75, 0.75, 0.75)
    assert result["mpds"] == 1.0
    assert result["n_cells"] == 2
    assert np.isnan(result["mpds_chance_corrected"])
    assert "too few groups: 4" in result["reasons"]["mpds_chance_corrected"]


def test_mpds_is_not_clipped_and_is_chance_corrected():
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 2, 400)
    system = np.where(rng.random(400) < 0.75, gold, 1 - gold)
    result = load("mpds").compute(
        predictions=system,
        references=gold,
        metadata={"m": gold},
        train_references=[0, 0, 1],
        train_metadata={"m": [0, 0, 1]},
    )
    full, majority = result["accuracy_full"], result["majority_rate"]
    assert result["accuracy_metadata"] == 1.0
    assert result["mpds"] == pytest.approx(1 / full)
    assert result["mpds"] > 1
    assert result["mpds_chance_corrected"] == pytest.approx((1 - majority) / (full - majority))


def test_mpds_out_of_fold_is_not_fitted_on_its_own_rows():
    rng = np.random.default_rng(2)
    gold = rng.integers(0, 2, 300)
    result = load("mpds").compute(predictions=gold, references=gold, metadata={"id": np.arange(300)})
    # A column that identifies every row predicts nothing on rows it has not seen: near the majority, far from 1.
    assert result["accuracy_metadata"] < 0.6


def test_the_reader_configuration_does_the_whole_job():
    rng = np.random.default_rng(0)
    animals = ["cat", "dog", "owl", "hen"]
    labels = rng.integers(0, 2, 240)
    evidence = [f"The {animals[n % 4]} number {n} was {'seen' if y else 'missed'}." for n, y in enumerate(labels)]
    queries = [f"Was animal {n} in place {rng.integers(9)} seen?" for n in range(240)]
    module = load("delta_evi", "reader")
    result = module.compute(
        queries=queries[120:],
        evidence=evidence[120:],
        references=labels[120:],
        train={"queries": queries[:120], "evidence": evidence[:120], "references": labels[:120]},
        k=19,
    )
    # The evidence's verb is the label, so with foreign evidence the answer is right about half of the time.
    assert result["accuracy_full"] > 0.95
    assert 0.35 < result["delta_evi"] < 0.6
    assert result["verdict"] == "sensitive"
    assert result["region"] == "evidence_sensitive"
    assert result["packet"]["schema_version"].startswith("1.")


def test_reader_configuration_takes_missing_and_listed_evidence():
    queries = [f"question {n} about {'rain' if n % 2 else 'sun'}" for n in range(60)]
    evidence = [None if n % 5 == 0 else [f"first part {n}", "second part"] for n in range(60)]
    result = load("delta_evi", "reader").compute(
        queries=queries, evidence=evidence, references=["wet" if n % 2 else "dry" for n in range(60)]
    )
    assert result["packet"]["data"]["report"]["evaluation"]["evidence_states"]["missing"] == 12


@pytest.mark.parametrize(
    ("predictions", "references", "words"),
    [
        ([0, 1.7], [0, 1], r"predictions\[1\]: expected an int or str label, got 1.7"),
        ([0, None], [0, 1], r"predictions\[1\].*got None"),
        ([0, 1], [0, float("nan")], r"references\[1\].*got nan"),
        ([0, "1"], [0, 1], r"predictions\[1\].*both int and str"),
        ([0, 1], ["0", "1"], "different kinds"),
        ([[0.1, 0.9]], [1], r"predictions\[0\].*argmax"),
        ("01", [0, 1], "predictions: expected a list of labels"),
    ],
)
@pytest.mark.parametrize("name", ["delta_evi", "mpds"])
def test_labels_are_refused_before_they_are_coerced(name, predictions, references, words):
    with pytest.raises(DataError, match=words):
        load(name).compute(predictions=predictions, references=references)


@pytest.mark.parametrize(
    ("shuffled", "words"),
    [
        (None, "expected K lists of n predictions"),
        ([], "expected K lists"),
        ([[0, 1]] * 19 + [[0]], r"shuffled_predictions\[19\]: expected 2 predictions, got 1"),
        ([[0, 1]] * 19 + [[0, None]], r"shuffled_predictions\[19\]\[1\]: .*got None"),
        ([0, 1], r"shuffled_predictions\[0\]: expected 2 predictions, got 0"),
        ([["a", "b"]] * 19, "different kinds"),
    ],
)
def test_shuffled_predictions_of_a_wrong_shape_or_kind(shuffled, words):
    with pytest.raises(DataError, match=words):
        load("delta_evi").compute(predictions=[0, 1], references=[0, 1], shuffled_predictions=shuffled)


def test_too_few_shuffles_name_the_smallest_number():
    with pytest.raises(SettingError, match="K = 19"):
        load("delta_evi").compute(predictions=MANY, references=MANY, shuffled_predictions=ALWAYS[:8])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"groups": [1]}, "groups: expected 400"),
        ({"groups": [None] * 400}, r"groups\[0\]: is missing"),
        ({"donors": [[0]]}, "donors: expected whole numbers of shape"),
        ({"donors": [[400] * 400] * 20}, "item positions from 0 to 399"),
    ],
)
def test_bad_groups_and_donors(more, words):
    with pytest.raises(DataError, match=words):
        load("delta_evi").compute(predictions=MANY, references=MANY, shuffled_predictions=ALWAYS, **more)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "metadata: expected a dict"),
        ({"metadata": {}}, "metadata: expected a dict"),
        ({"metadata": {"a": [1]}}, r"metadata\['a'\]: expected 400 values, got 1"),
        ({"metadata": {"a": MANY}, "train_references": [0]}, "belong together"),
        (
            {"metadata": {"a": MANY}, "train_references": [0], "train_metadata": {"b": [1]}},
            "train_metadata: expected the columns of metadata",
        ),
    ],
)
def test_bad_metadata(more, words):
    with pytest.raises(DataError, match=words):
        load("mpds").compute(predictions=MANY, references=MANY, **more)


def test_combine_serves_both_modules_with_one_set_of_arguments():
    both = evaluate.combine([evidep.metric_path("delta_evi"), evidep.metric_path("mpds")])
    both.add_batch(predictions=MANY, references=MANY)
    result = both.compute(shuffled_predictions=NEVER, metadata={"m": MANY})
    assert result["delta_evi"] == 1.0
    assert result["mpds"] == 1.0


def test_add_and_add_batch_collect_like_compute():
    one, two = load("mpds"), load("mpds")
    for label in MANY:
        one.add(prediction=label, reference=label)
    two.add_batch(predictions=MANY[:100], references=MANY[:100])
    two.add_batch(predictions=MANY[100:], references=MANY[100:])
    assert one.compute(metadata={"m": MANY}) == two.compute(metadata={"m": MANY})


BARE_NAME = """
import os, sys, tempfile
os.chdir(tempfile.mkdtemp())
import evaluate
many = [0, 1] * 200
rank = int(sys.argv[1])
module = evaluate.load("delta_evi", num_process=2, process_id=rank, experiment_id="pair", cache_dir=sys.argv[2])
mine = many[:200] if sys.argv[1] == "0" else many[200:]
result = module.compute(predictions=mine, references=mine, shuffled_predictions=[[1, 0] * 200] * 20)
print("RESULT", None if result is None else result["delta_evi"], "metrics" in str(type(module).__module__))
"""


def test_bare_name_from_any_directory_offline_and_in_two_processes(tmp_path):
    environment = os.environ | {"HF_HOME": str(tmp_path / "home"), "HF_EVALUATE_OFFLINE": "1"}
    for _ in range(2):  # registering twice changes nothing
        subprocess.run(
            [sys.executable, "-m", "evidep", "modules", "register"], check=True, env=environment, capture_output=True
        )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", BARE_NAME, str(rank), str(tmp_path / "cache")],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    answers = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], answers
    assert "RESULT 1.0" in answers[0][0]
    assert "RESULT None" in answers[1][0]


def test_registration_is_safe_when_many_processes_race(tmp_path):
    environment = os.environ | {"HF_HOME": str(tmp_path)}
    command = [sys.executable, "-c", "import evidep; evidep.register_modules()"]
    racers = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(6)]
    assert [racer.wait() for racer in racers] == [0] * 6
    folders = [path for path in tmp_path.rglob("evaluate-metric--delta_evi/*") if path.is_dir()]
    assert len(folders) == 1
    assert (folders[0] / "delta_evi.py").is_file()


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "file"))
    with pytest.raises(CacheError, match="set HF_MODULES_CACHE to a folder you can write"):
        register_modules("mpds")


def test_cache_location_follows_the_environment(monkeypatch):
    monkeypatch.setenv("HF_HOME", "/somewhere")
    monkeypatch.delenv("HF_MODULES_CACHE", raising=False)
    assert modules_cache() == Path("/somewhere/modules")
    monkeypatch.setenv("HF_MODULES_CACHE", "/elsewhere")
    assert modules_cache() == Path("/elsewhere")


def test_unknown_module_names_the_bundled_ones():
    with pytest.raises(SettingError, match="the bundled ones are delta_evi"):
        evidep.metric_path("accuracy")


@pytest.mark.parametrize("name", module_names())
class TestEveryModule:
    def test_its_script_is_thin(self, name):
        lines = (Path(evidep.metric_path(name)) / f"{name}.py").read_text().splitlines()
        assert len(lines) < 120

    def test_its_doctest_passes(self, name):
        module = load(name)
        script = sys.modules[type(module).__module__]
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        tests = doctest.DocTestParser().get_doctest(script._KWARGS_DESCRIPTION, {}, name, None, 0)
        assert tests.examples
        assert runner.run(tests).failed == 0

    def test_its_card_has_front_matter_and_sections(self, name):
        text = (Path(evidep.metric_path(name)) / "README.md").read_text()
        _, front, body = text.split("---\n", 2)
        front = yaml.safe_load(front)
        assert front["sdk"] == "gradio"
        assert front["app_file"] == "app.py"
        assert {"title", "emoji", "colorFrom", "colorTo", "sdk_version", "description"} <= set(front)
        assert {"evaluate", "metric"} <= set(front["tags"])
        for section in (
            "Description",
            "How to Use",
            "Inputs",
            "Output Values",
            "Values from Popular Papers",
            "Examples",
        ):
            assert f" {section}\n" in body, section
        for section in ("Limitations and Bias", "Citation", "Further References"):
            assert f"## {section}\n" in body, section

    def test_the_code_of_its_card_runs(self, name):
        body = (Path(evidep.metric_path(name)) / "README.md").read_text()
        blocks = [block.split("```")[0] for block in body.split("```python\n")[1:]]
        assert blocks
        exec("\n".join(blocks), {})

    def test_its_requirements_pin_evidep(self, name):
        text = (Path(evidep.metric_path(name)) / "requirements.txt").read_text()
        assert f"=={evidep.__version__}" in text

    def test_its_space_builds(self, name):
        pytest.importorskip("gradio")
        spec = importlib.util.spec_from_file_location(f"{name}_app", Path(evidep.metric_path(name)) / "app.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert type(module.demo).__name__ in ("Interface", "Blocks")


def test_the_delta_evi_space_measures_a_csv(tmp_path):
    app = _app("delta_evi")
    rows = ["prediction,reference," + ",".join(f"shuffled_{k}" for k in range(20))]
    rows += [f"{label},{label}," + ",".join([str(1 - label)] * 20) for label in MANY]
    (tmp_path / "answers.csv").write_text("\n".join(rows))
    values = dict(app.measure(str(tmp_path / "answers.csv")))
    assert values["delta_evi"] == "1.0"
    assert values["verdict"] == "sensitive"
    (tmp_path / "bad.csv").write_text("prediction,gold\n1,1\n")
    with pytest.raises(Exception, match="Missing column: reference"):
        app.measure(str(tmp_path / "bad.csv"))


def test_the_mpds_space_measures_a_csv(tmp_path):
    app = _app("mpds")
    rows = ["prediction,reference,source"] + [f"{label},{label},{'ab'[label]}" for label in MANY]
    (tmp_path / "answers.csv").write_text("\n".join(rows))
    assert dict(app.measure(str(tmp_path / "answers.csv")))["mpds"] == "1.0"


def _app(name):
    pytest.importorskip("gradio")
    spec = importlib.util.spec_from_file_location(f"{name}_app", Path(evidep.metric_path(name)) / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
