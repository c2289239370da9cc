"""Model cards: parsed by huggingface_hub, true to the packet, and unbroken by hostile names."""

from __future__ import annotations

import json

import numpy as np
import pytest
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt
from tiny_models import audit_rows, bert_model, spoken_world

from evidep.report.model_card import model_card

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from evidep.readers.transformer import TransformerReader  # noqa: E402

HOSTILE = "a|b `c` <script>alert(1)</script>\n---\nx: - {y} [l](http://evil.example) \x1b[31m"


def packet(reader, data_name: str = "snli") -> dict:
    """The keys that a card reads, as an audit of this fit writes them."""
    name = reader.info.name
    row = {"reader": name, "seed": 0}
    fit = {**row, "fingerprint": reader.fitted.reader}
    return {
        "schema_version": "1.0",
        "signature": "evidep:0.1.0|data:snli@abc|reader:tiny|K:20|seed:0",
        "data": {"name": data_name, "rows": 1000, "dropped": {}, "labels": ["no", "yes"], "groups": 400,
                 "fingerprint": "abc", "train_fingerprint": reader.fitted.train},
        "majority_rate": 0.5,
        "metadata": {},
        "readers": [
            {**fit, "accuracy_full": 0.8125, "ci": [0.78, 0.84], "works": True},
            {**fit, "seed": 1, "accuracy_full": 0.9251, "ci": [0.78, 0.84], "works": False},
            {"reader": "other", "seed": 0, "fingerprint": "o", "accuracy_full": 0.1, "ci": [0.0, 0.2], "works": False},
        ],
        "delta_evi": [
            {**row, "shuffle": "global", "k": 20, "mean": 0.3125, "sd_population": 0.0123, "exact": None,
             "standard_error": 0.01, "ci": [0.29, 0.33], "p_value": 0.0004, "verdict": "sensitive",
             "unchanged_rate": 0.0, "minimum_detectable_effect": 0.03},
            {**row, "shuffle": "within-label", "k": 20, "mean": None, "sd_population": None, "exact": None,
             "standard_error": None, "ci": None, "p_value": None, "verdict": "not_applicable", "unchanged_rate": 1.0,
             "minimum_detectable_effect": None},
            {**row, "seed": 1, "shuffle": "global", "k": 20, "mean": 0.0666, "sd_population": 0.1, "exact": None,
             "standard_error": 0.01, "ci": [0, 1], "p_value": 1.0, "verdict": "inconclusive",
             "unchanged_rate": 0.0, "minimum_detectable_effect": 0.5},
            {**row, "reader": "other", "shuffle": "global", "k": 20, "mean": 0.0777, "sd_population": 0.1,
             "exact": None, "standard_error": 0.01, "ci": [0, 1], "p_value": 1.0, "verdict": "inconclusive",
             "unchanged_rate": 0.0, "minimum_detectable_effect": 0.5},
        ],
        "ablations": [{**row, "arm": "query-only", "how": "retrained", "accuracy": 0.59, "ci": [0.56, 0.62]},
                      {**row, "seed": 1, "arm": "query-only", "how": "retrained", "accuracy": 0.7777, "ci": None}],
        "diagnosis": {"region": "evidence_sensitive", "flags": [], "reasons": ["tiny falls by 0.312"]},
        "environment": {"python": "3.11.7", "packages": {"torch": "2.13.0"}},
    }  # fmt: skip


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    folder = bert_model(tmp_path_factory.mktemp("card"))
    made = TransformerReader(
        name="tiny", model=str(folder), epochs=1, precision="fp32", licence="mit", contamination="saw | everything"
    )
    return made.fit(spoken_world(250, 0), seed=0)


def test_card_is_parsed_and_true_to_the_packet(reader):
    text = model_card(
        reader,
        packet(reader),
        train_name="snli-train",
        train_licence="cc-by-sa-4.0",
        datasets=["stanfordnlp/snli"],
        language="en",
    )
    card = ModelCard(text)
    assert card.data.license == "mit"
    assert card.data.language == "en"
    assert card.data.pipeline_tag == "text-classification"
    results = {r.metric_name: (r.metric_value, r.dataset_name) for r in card.data.eval_results}
    assert results == {
        "Accuracy, seed 0": (0.8125, "snli"),
        "ΔEvi, global shuffle, seed 0": (0.3125, "snli"),
    }
    assert "| 0 | 0.812 | [0.780, 0.840] | yes |" in text
    effect = "| 0 | `global` | 20 | 0.312 | 0.0123 | – | [0.290, 0.330] | <0.001 | 0.030 |"
    assert f"{effect} 0 % | – | – | sensitive |" in text
    assert "| 0 | `within-label` | 20 | – | – | – | – | – | – | 100 % | – | – | not applicable |" in text
    assert "| `query-only` | `retrained` | 0.590 | [0.560, 0.620] |" in text
    assert "Licence of the data: cc-by-sa-4.0" in text
    assert "saw \\| everything" in text
    assert packet(reader)["signature"] in text
    assert "evidence sensitive" in text
    assert "torch 2.13.0" in text
    assert f"Items: 250, {reader.report.held_out} of them held out" in text
    assert "| `learning_rate` | `5e-05` |" in text
    assert "0.0777" not in text  # another reader's row
    for number in ("0.925", "0.0666", "0.067", "0.778"):  # another seed's rows
        assert number not in text, number
    # what it was trained on is not what it was evaluated on
    assert card.data.datasets == ["stanfordnlp/snli"]
    assert "Data: `snli-train`" in text
    assert "Trained on `snli-train` alone" in text
    assert "Evaluated on `snli`: 1,000 items in 400 groups (fingerprint `abc`)." in text
    assert "Fingerprint of the training items: `spoken-250-0-0.5`; seed of the fit: 0" in text
    assert str(reader.weights.folder) not in text
    assert f"| `model` | `{reader.weights.folder.name}` |" in text
    assert "other" not in text.replace("other items", "").replace("another", "")


@pytest.mark.parametrize("other", ["fingerprint", "seed", "train", "folds"])
def test_numbers_of_another_fit_are_left_out(reader, other):
    audit = packet(reader)
    if other == "train":
        audit["data"]["train_fingerprint"] = "other"
    elif other == "folds":
        audit["data"]["train_fingerprint"] = None
    elif other == "seed":
        audit["readers"] = [row for row in audit["readers"] if row["seed"] != 0]
    else:
        for row in audit["readers"]:
            row["fingerprint"] = "other"
    text = model_card(reader, audit)
    assert ModelCard(text).data.eval_results is None
    assert "The audit that was given is of another fit (reader, training data or seed differ)" in text
    assert "Not measured: this model has not been audited" in text
    for left_out in ("0.812", "0.312", "0.925", "evidence sensitive", "0.590", audit["signature"]):
        assert left_out not in text, left_out


def test_card_without_an_audit_says_so(reader):
    text = model_card(reader, None, train_name="my data")
    card = ModelCard(text)
    assert card.data.eval_results is None
    assert "Not measured: this model has not been audited" in text
    assert "`my data`" in text
    assert "## Signature" not in text


def test_failed_reader_is_called_failed(reader):
    failed = packet(reader)
    failed["readers"][0]["works"] = False
    assert "does not beat the commonest label by more than noise: its ΔEvi says nothing" in model_card(reader, failed)


def test_hostile_names_break_nothing(reader):
    hostile = packet(reader, HOSTILE)
    hostile["diagnosis"]["reasons"] = [HOSTILE]
    text = model_card(reader, hostile, train_name=HOSTILE, train_licence=HOSTILE, datasets=[HOSTILE])
    card = ModelCard(text)
    assert card.data.model_name == "tiny"
    assert {r.metric_value for r in card.data.eval_results} == {0.8125, 0.3125}
    html = MarkdownIt("commonmark").enable("table").render(card.text)
    assert "<script" not in html
    assert 'href="http://evil' not in html
    assert html.count("<h1>") == 1
    assert "<hr" not in html
    assert "\x1b" not in text


def test_saved_with_its_card_and_read_again(reader, tmp_path):
    reader.save(tmp_path / "saved", card=model_card(reader, packet(reader)))
    assert ModelCard.load(tmp_path / "saved" / "README.md").data.model_name == "tiny"
    loaded = TransformerReader.load(tmp_path / "saved")
    again = model_card(loaded, packet(reader))
    assert "0.812" in again  # it is still that fit
    as_it_is = packet(reader)
    as_it_is["data"]["train_fingerprint"] = None
    as_it_is["readers"][0]["fingerprint"] = loaded.fingerprint  # the saved weights were audited
    assert "0.812" in model_card(loaded, as_it_is)
    assert "0.812" not in model_card(reader, as_it_is)
    assert "| `epochs` | `1` |" in again  # the recipe of the fit, not that of the loaded reader
    assert loaded.base_model == reader.base_model
    assert np.isfinite(loaded.report.held_out_accuracy)


def test_an_audit_writes_cards_and_an_index(tmp_path):
    """Each fit has a card; the one behind the packet's numbers has them, and the index says which folder it is."""
    import evidep

    base = bert_model(tmp_path / "base")
    reader = TransformerReader(name="tiny", model=str(base), epochs=1, batch_size=16, precision="fp32")

    def audit(ablations):
        return evidep.audit(
            audit_rows(60, 1), train=audit_rows(120, 0), readers=[reader], k=19, shuffles=["global"],
            ablations=ablations, out=tmp_path / "out", name="spoken", reader_seeds=2,
        )  # fmt: skip

    document = audit(["query-only"])
    index = json.loads((tmp_path / "out" / "readers" / "index.json").read_text())
    train = document["data"]["train_fingerprint"]
    assert [(row["reader"], row["seed"], row["train"], row["audited"]) for row in index] == [
        ("tiny", 0, train, True),
        ("tiny", 1, train, True),
        ("tiny", 0, f"{train}|query-only", False),
        ("tiny", 1, f"{train}|query-only", False),
    ]
    found = {row["folder"] for row in index}
    assert found == {
        str(p.parent.relative_to(tmp_path / "out/readers")) for p in tmp_path.rglob("finished/config.json")
    }
    for row in index:
        folder = tmp_path / "out" / "readers" / row["folder"]
        card = ModelCard.load(folder / "README.md")
        assert TransformerReader.load(folder).fitted.seed == row["seed"]
        results = {r.metric_name: r.metric_value for r in card.data.eval_results or ()}
        own = next(r for r in document["readers"] if r["seed"] == row["seed"])
        if row["audited"]:
            assert results[f"Accuracy, seed {row['seed']}"] == round(own["accuracy_full"], 6)
            assert set(results) == {f"Accuracy, seed {row['seed']}", f"ΔEvi, global shuffle, seed {row['seed']}"}
        else:
            assert results == {}
            assert f"Fingerprint of the training items: `{row['train']}`" in card.text.replace("\\", "")
    # another audit in the same folder leaves the cards of the fits that it does not use as they are
    marked = tmp_path / "out" / "readers" / index[2]["folder"] / "README.md"
    marked.write_text("edited")
    audit([])
    assert marked.read_text() == "edited"
