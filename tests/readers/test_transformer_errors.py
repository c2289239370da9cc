"""Models, weights, lengths and settings that cannot be used: one clear line each, and a model's own code never runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tiny_models import NAMES, bert_model, byte_tokenizer, classifier, spoken_world, table
from tiny_readers import pairs_table, ready

from evidep.errors import MissingExtraError, ReaderError, SettingError
from evidep.readers.weights import require_transformers

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from evidep.readers.transformer import TransformerReader  # noqa: E402


def test_unknown_model_offline():
    with pytest.raises(ReaderError, match="model 'no-such/model' is neither a folder nor in the local Hub cache"):
        TransformerReader(model="no-such/model")


def test_folder_without_a_model(tmp_path):
    with pytest.raises(ReaderError, match=r"holds no config\.json"):
        TransformerReader(model=str(tmp_path))


def test_weights_that_are_no_safetensors_are_refused(tmp_path):
    folder = bert_model(tmp_path)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(ReaderError, match=r"the weights of .* cannot be loaded"):
        TransformerReader(model=str(folder), precision="fp32").fit(spoken_world(40, 0), seed=0)


def test_weights_of_another_architecture_are_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = bert_model(tmp_path)
    renamed = {f"other.{name}": value for name, value in load_file(folder / "model.safetensors").items()}
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ReaderError, match=r"cannot be loaded as BertForSequenceClassification: \d+ of \d+ tensors"):
        TransformerReader(model=str(folder), precision="fp32").fit(spoken_world(40, 0), seed=0)


@pytest.mark.parametrize("known", [True, False])
def test_code_that_comes_with_a_model_never_runs(tmp_path, known):
    """A folder whose configuration names classes of its own: known types load without them, unknown ones do not."""
    folder = bert_model(tmp_path / "model")
    marker = tmp_path / "ran"
    (folder / "own.py").write_text(
        f"import pathlib\npathlib.Path({str(marker)!r}).write_text('ran')\n"
        "from transformers import BertConfig as C, BertForSequenceClassification as M, BertTokenizerFast as T\n"
    )
    for name, mapping in (
        ("config.json", {"AutoConfig": "own.C", "AutoModelForSequenceClassification": "own.M"}),
        ("tokenizer_config.json", {"AutoTokenizer": [None, "own.T"]}),
    ):
        values = json.loads((folder / name).read_text())
        values["auto_map"] = mapping
        if not known and name == "config.json":
            values["model_type"] = "never-heard-of"
        (folder / name).write_text(json.dumps(values))
    reader = TransformerReader(model=str(folder), epochs=1, precision="fp32")
    if known:
        reader.fit(spoken_world(40, 0), seed=0)
    else:
        with pytest.raises(ReaderError, match="cannot be loaded"):
            reader.fit(spoken_world(40, 0), seed=0)
    assert not marker.exists()


@pytest.mark.parametrize("epochs", [0, 1])
def test_a_finished_classifier_without_its_head_is_refused(tmp_path, epochs):
    from safetensors.torch import load_file, save_file

    folder = classifier(tmp_path, "bert")
    tensors = load_file(folder / "model.safetensors")
    headless = {name: value for name, value in tensors.items() if not name.startswith("classifier")}
    assert len(headless) == len(tensors) - 2
    save_file(headless, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ReaderError, match=r"2 of \d+ tensors are missing and would be random.*classifier"):
        TransformerReader(model=str(folder), epochs=epochs, precision="fp32").fit(pairs_table(), seed=0)
    fresh = TransformerReader(model=str(folder), epochs=1, new_head=True, precision="fp32").fit(pairs_table(), seed=0)
    assert fresh.report.steps > 0


def test_tokenizer_without_pad_token(tmp_path):
    classifier(tmp_path, "gpt2")
    byte_tokenizer(tmp_path, roberta=False, pad=False)
    with pytest.raises(ReaderError, match="has no pad token"):
        ready(tmp_path).fit(pairs_table(), seed=0)


def test_epochs_zero_needs_a_classifier(tmp_path):
    with pytest.raises(ReaderError, match="epochs=0 needs a checkpoint that is already a classifier"):
        ready(bert_model(tmp_path)).fit(spoken_world(20, 0), seed=0)


def test_max_length_beyond_the_model(tmp_path):
    with pytest.raises(ReaderError, match="max_length: the model holds at most 64 tokens, got 65"):
        ready(classifier(tmp_path, "bert"), max_length=65).fit(pairs_table(), seed=0)


def test_roberta_positions_leave_two_free(tmp_path):
    folder = classifier(tmp_path, "roberta")
    byte_tokenizer(folder)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = 10**30
    tokenizer.save_pretrained(folder)
    data = table(["red"], ["cat dog " * 60], [0], NAMES)
    reader = ready(folder).fit(pairs_table(), seed=0)
    encoded = reader.encode(data)
    assert encoded.max_length == 64  # 66 positions, numbered from pad_token_id + 1 = 2
    assert np.isfinite(reader.scores(encoded, np.array([0]), np.array([0]))).all()


def test_not_fitted(tmp_path):
    reader = ready(classifier(tmp_path, "bert"))
    for call in (lambda: reader.encode(pairs_table()), lambda: reader.scores(None, [0], [0]), lambda: reader.save("x")):
        with pytest.raises(ReaderError, match="is not fitted"):
            call()


def test_unknown_settings_and_precision(tmp_path):
    folder = str(classifier(tmp_path, "bert"))
    with pytest.raises(SettingError, match="unknown setting 'epoch': did you mean 'epochs'"):
        TransformerReader(model=folder, epoch=3)
    with pytest.raises(SettingError, match="precision: expected one of auto, fp32, bf16, fp16, got 'int8'"):
        TransformerReader(model=folder, precision="int8").fit(pairs_table(), seed=0)


def test_missing_extra(monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    with pytest.raises(
        MissingExtraError, match=r"the reader 'bert' needs the package 'torch'.*pip install 'evidep\[transformers\]'"
    ):
        TransformerReader(name="bert")
    with pytest.raises(MissingExtraError, match="torch"):
        require_transformers("x")


def test_shuffles_that_truncation_undoes(tmp_path):
    beginning = "cat dog bird runs sleeps sits"
    data = table(["red"] * 12, [f"{beginning} {i}" for i in range(12)], [i % 3 for i in range(12)], NAMES)
    reader = ready(classifier(tmp_path, "bert"), max_length=10).fit(data, seed=0)
    encoded = reader.encode(data)
    rows = np.arange(12)
    assert reader.scores(encoded, rows, rows).shape == (12, 3)
    with pytest.raises(ReaderError, match="after truncation to max_length=10 all 12 swapped pairs equal"):
        reader.scores(encoded, rows, np.roll(rows, 1))
    assert "evidence is cut in 100.0% of the items" in reader.notes
