"""A saved reader opens everywhere, deletes nothing of others, and is refused in one line where it is damaged."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tiny_models import bert_model, spoken_world
from tiny_readers import plain_logits

from evidep.errors import CacheError, ReaderError

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from evidep.readers.saved import Fitted, public_name  # noqa: E402
from evidep.readers.transformer import TransformerReader  # noqa: E402


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A reader after a short fit."""
    base = bert_model(tmp_path_factory.mktemp("fitted"))
    return TransformerReader(model=str(base), epochs=1, precision="fp32").fit(spoken_world(40, 0), seed=4)


def test_saved_reader_opens_everywhere(tmp_path):
    from transformers import AutoModelForSequenceClassification, pipeline

    data = spoken_world(120, 0)
    reader = TransformerReader(
        name="tiny",
        model=str(bert_model(tmp_path / "base")),
        epochs=2,
        batch_size=8,
        learning_rate=2e-3,
        precision="fp32",
    ).fit(data, seed=0)
    reader.save(tmp_path / "saved", card="---\nlicense: mit\n---\n# Card\n")
    rows = np.arange(len(data))
    expected = reader.scores(reader.encode(data), rows, rows)

    loaded = TransformerReader.load(tmp_path / "saved")
    assert loaded.info.name == "tiny"
    assert loaded.report == reader.report or np.isnan(reader.report.held_out_majority)
    np.testing.assert_allclose(loaded.scores(loaded.encode(data), rows, rows), expected, atol=1e-6)
    assert loaded.fit(data, seed=5) is loaded  # as it is
    np.testing.assert_allclose(loaded.scores(loaded.encode(data), rows, rows), expected, atol=1e-6)

    plain = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert plain.config.id2label == {0: "no", 1: "yes"}
    np.testing.assert_allclose(plain_logits(tmp_path / "saved", data, rows[:5], rows[:5]), expected[:5], atol=1e-5)
    answers = pipeline("text-classification", model=str(tmp_path / "saved"))(
        [{"text": data.queries[i], "text_pair": data.evidence[i]} for i in range(8)]
    )
    assert [a["label"] for a in answers] == [("no", "yes")[i] for i in expected[:8].argmax(axis=1)]
    assert not list((tmp_path / "saved").glob("*.bin")) + list((tmp_path / "saved").glob("*.pt"))
    assert (tmp_path / "saved" / "README.md").read_text().startswith("---")


def test_loading_what_is_no_reader(tmp_path):
    with pytest.raises(ReaderError, match="is no saved reader"):
        TransformerReader.load(tmp_path)
    (tmp_path / "evidep_reader.json").write_text("{}")
    with pytest.raises(ReaderError, match=r"is no saved reader.*'version' is a required property"):
        TransformerReader.load(tmp_path)


def test_saving_never_deletes_what_no_reader_wrote(fitted, tmp_path, monkeypatch):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    with pytest.raises(CacheError, match=r"folder .*precious: holds 'thesis\.txt', which no reader wrote"):
        fitted.save(precious)
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]
    assert (precious / "thesis.txt").read_text() == "years of work"
    (tmp_path / "file").write_text("x")
    with pytest.raises(CacheError, match="file: is a file"):
        fitted.save(tmp_path / "file")
    monkeypatch.chdir(precious)
    for inside in (".", "..", tmp_path):
        with pytest.raises(CacheError, match="a reader replaces its folder, and this one is in use"):
            fitted.save(inside)

    (tmp_path / "empty").mkdir()
    fitted.save(tmp_path / "empty" / ".." / "empty", card="first")
    fitted.save(tmp_path / "empty", card="second")  # its own folder is replaced
    assert (tmp_path / "empty" / "README.md").read_text() == "second"
    (tmp_path / "empty" / ".git").mkdir()
    with pytest.raises(CacheError, match=r"holds '\.git', which no reader wrote"):
        fitted.save(tmp_path / "empty")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "file", "precious"]  # nothing half-written is left


def test_changed_weights_are_refused(fitted, tmp_path):
    fitted.save(tmp_path / "saved")
    file = tmp_path / "saved" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-2000:] = bytes(byte ^ 0x41 for byte in content[-2000:])
    file.write_bytes(content)
    with pytest.raises(ReaderError, match=r"damaged one \(model\.safetensors does not have the content"):
        TransformerReader.load(tmp_path / "saved")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contamination": ...}, "'contamination' is a required property"),
        ({"base_model": ...}, "'base_model' is a required property"),
        ({"report": {"a": 1}}, "at report: "),
        ({"report": 5}, "at report: 5 is not of type"),
        ({"recipe": None}, "at recipe: None is not of type"),
        ({"recipe": {"epoch": 1}}, "unknown setting 'epoch'"),
        ({"label_names": None}, "at label_names: None is not of type"),
        ({"settings": 3}, "at settings: 3 is not of type"),
        ({"settings": {"name": "x"}}, "at settings: 'max_length' is a required property"),
        ({"columns": ["a"]}, "at columns/0: 'a' is not of type"),
        ({"columns": [0, 7]}, r"at columns: expected each output once, got \[0, 7\]"),
        ({"columns": [0]}, r"at columns: expected each output once, got \[0\]"),
        ({"version": 99}, "has version 99, this release of evidep reads 2"),
        ({"digests": {}}, "at digests: 'config.json' is a required property"),
        ({"label_names": ["a", "b", "c"], "columns": [0, 1, 2]}, "has 2 outputs and its notes 3 labels"),
        ([1], "is not of type 'object'"),
    ],
)
def test_damaged_notes_are_one_clear_error(fitted, tmp_path, change, message):
    fitted.save(tmp_path / "saved")
    file = tmp_path / "saved" / "evidep_reader.json"
    values = json.loads(file.read_text())
    if isinstance(change, dict):
        values = {key: value for key, value in {**values, **change}.items() if value is not ...}
    file.write_text(json.dumps(values if isinstance(change, dict) else change))
    with pytest.raises(ReaderError, match=message) as found:
        TransformerReader.load(tmp_path / "saved")
    assert "\n" not in str(found.value)


def test_saved_notes_hold_no_path_and_say_which_fit_it_was(fitted, tmp_path):
    fitted.save(tmp_path / "saved")
    for file in (tmp_path / "saved").glob("*.json"):
        assert str(tmp_path.parent) not in file.read_text(), file.name
    loaded = TransformerReader.load(tmp_path / "saved")
    assert loaded.fitted == fitted.fitted == Fitted(fitted.fingerprint, spoken_world(40, 0).fingerprint, 4)
    assert loaded.base_model == fitted.weights.folder.name
    assert public_name("sentence-transformers/all-MiniLM-L6-v2") == "sentence-transformers/all-MiniLM-L6-v2"
