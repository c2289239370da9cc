"""What truncation hides of the shuffles is in the packet, and decides what may be said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tiny_models import audit_rows, bert_model, table

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

import evidep  # noqa: E402
from evidep.audit.cache import CellStore  # noqa: E402
from evidep.audit.scoring import ReaderRun  # noqa: E402
from evidep.errors import ReaderError  # noqa: E402
from evidep.readers.embedding import EmbeddingReader  # noqa: E402
from evidep.readers.transformer import TransformerReader  # noqa: E402
from evidep.types import Condition, ReaderInfo  # noqa: E402

PREFIX = "the big house is on a small tree"  # 8 tokens


def rows(n: int, seed: int, hidden_share: float) -> list[dict[str, str]]:
    """The query says the label too; evidence begins alike in so many of the items."""
    found = audit_rows(n, seed)
    for at, row in enumerate(found):
        word = "red" if row["label"] == "yes" else "blue"
        row["query"] = f"{word} {chr(97 + at // 26)} {chr(97 + at % 26)}"  # 3 tokens
        if at < hidden_share * n:
            row["evidence"] = f"{PREFIX} {row['evidence']}"
        else:
            row["evidence"] = f"{chr(97 + at // 26)} {chr(97 + at % 26)} {row['evidence']}"
    return found


def strong(model, max_length):
    return TransformerReader(
        model=str(model), epochs=4, batch_size=8, learning_rate=2e-3, precision="fp32", max_length=max_length
    )


def audited(reader, share, **more):
    return evidep.audit(
        rows(100, 1, share), train=rows(200, 0, share), readers=[reader], k=19, shuffles=["global"],
        ablations=(), margin=0.1, **more,
    )  # fmt: skip


def test_a_swap_that_truncation_hides_is_no_evidence_of_no_dependence(tmp_path):
    model = bert_model(tmp_path / "model")
    # 3 special tokens, 3 of the query, 8 of the evidence: of two items that both begin with PREFIX nothing else shows.
    packet = audited(strong(model, 14), 0.9, out=tmp_path / "out")
    row = packet["delta_evi"][0]
    assert packet["readers"][0]["works"]
    # An item of the 90 meets another of them in 89 of 99 draws: 0.9 · 89/99 = 0.809.
    assert row["unchanged_after_truncation"] == pytest.approx(0.809, abs=0.02)
    assert row["truncated_share"] == 0.9
    assert row["unchanged_rate"] == 0.0
    assert row["verdict"] == "inconclusive"
    assert packet.region == "reader_limited"
    assert "evidence_cut_off" in packet["diagnosis"]["flags"]
    assert "Truncation hides most swaps" in str(packet)
    assert "minilm, global: a text is cut in 90 % of the pairs; 8" in " ".join(str(packet).split())
    again = audited(strong(model, 14), 0.9, out=tmp_path / "out")
    assert again["delta_evi"] == packet["delta_evi"]

    roomy = audited(strong(model, 40), 0.9)
    row = roomy["delta_evi"][0]
    assert (row["truncated_share"], row["unchanged_after_truncation"]) == (0.0, 0.0)
    assert "evidence_cut_off" not in roomy["diagnosis"]["flags"]


def test_out_of_fold_and_a_shuffle_that_tests_nothing(tmp_path):
    model = bert_model(tmp_path / "model")
    with pytest.raises(ReaderError, match=r"every swapped pair of the global shuffle reads like .* raise max_length"):
        audited(strong(model, 14), 1.0)
    embedding = EmbeddingReader(model=str(model), precision="fp32", max_length=10)  # 2 special tokens and PREFIX
    packet = evidep.audit(rows(100, 1, 0.9), readers=[embedding], k=19, shuffles=["global"], ablations=())
    row = packet["delta_evi"][0]
    # Swaps stay inside folds of 20 items, about 18 of them with PREFIX: 0.9 · 17/19 = 0.805.
    assert row["unchanged_after_truncation"] == pytest.approx(0.805, abs=0.04)
    assert row["truncated_share"] == 0.9


def test_readers_without_truncation_say_null():
    packet = evidep.audit(rows(60, 1, 0.5), train=rows(60, 0, 0.5), readers="tfidf_lr", k=19, ablations=())
    assert {(r["truncated_share"], r["unchanged_after_truncation"]) for r in packet["delta_evi"]} == {(None, None)}


class Cutting:
    """Cuts the evidence of item 2, which then reads like that of item 0; texts 0 and 1 are one text."""

    info = ReaderInfo("cutting", "light", False)
    fingerprint = "cutting/1"
    trainable = False

    def __init__(self, knows: bool = True) -> None:
        self.knows = knows

    def fit(self, train, *, seed):
        return self

    def encode(self, table):
        return table.evidence_codes

    def scores(self, encoded, rows, donors):
        raise AssertionError("truncation is told without scoring")

    def truncation(self, encoded, rows, donors):
        if not self.knows:
            return None
        reads_as = np.where(encoded == encoded[2], encoded[0], encoded)
        return donors == 2, reads_as[donors] == reads_as[rows]


def told(reader):
    data = table(["a", "b", "c", "d"], ["cat", "cat", "dog", "bird"], [0, 1, 0, 1])
    rows, everyone = np.arange(4), np.ones(4, dtype=bool)
    drawn = [
        Condition("global", 0, rows, np.array([1, 2, 3, 0]), everyone),
        Condition("global", 1, rows, np.array([2, 3, 0, 1]), np.array([True, True, False, True])),
    ]
    run = ReaderRun(lambda: reader, data, data, seed=0, store=CellStore())
    return run.truncation(iter(drawn), {"arm": "global"}, None, None)


def test_shares_of_cut_and_unchanged_pairs_by_hand():
    # Cut: (1, 2) in the first shuffle and (0, 2) in the second, of 8 pairs.
    # Another text and movable: (1, 2), (2, 3), (3, 0), and (0, 2), (1, 3), (3, 1): (1, 2) and (0, 2) read like the own.
    assert told(Cutting()) == (2 / 8, 2 / 6)
    assert all(math.isnan(share) for share in told(Cutting(knows=False)))
