"""The labels of a checkpoint and of a table are matched by name; what does not match is one clear line."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_models import classifier, table
from tiny_readers import pairs_table, plain_logits, ready

from evidep.errors import ReaderError

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from evidep.readers.saved import match_labels  # noqa: E402
from evidep.readers.transformer import TransformerReader  # noqa: E402


def test_checkpoint_labels_are_matched_by_name(tmp_path):
    folder = classifier(tmp_path, "bert", ("ENTAILMENT", "neutral ", "Contradiction"))
    data = pairs_table()
    reader = ready(folder).fit(data, seed=0)
    rows = np.arange(len(data))
    scores = reader.scores(reader.encode(data), rows, rows)
    own = plain_logits(folder, data, rows, rows)
    np.testing.assert_allclose(scores, own[:, [2, 0, 1]], rtol=1e-3, atol=2e-5)


def test_label_map():
    names = {0: "LABEL_0", 1: "LABEL_1"}
    assert match_labels(names, ("no", "yes"), {"LABEL_0": "yes", "LABEL_1": "no"}, "m").tolist() == [1, 0]
    with pytest.raises(
        ReaderError, match=r"labels of the checkpoint 'm' \(LABEL_0, LABEL_1\) do not match the data's \(no, yes\)"
    ):
        match_labels(names, ("no", "yes"), {}, "m")
    with pytest.raises(ReaderError, match="do not match"):
        match_labels({0: "yes", 1: "Yes"}, ("no", "yes"), {}, "m")


def test_labels_that_do_not_match_are_one_clear_error(tmp_path):
    folder = classifier(tmp_path, "bert", ("SUPPORTS", "REFUTES"))
    with pytest.raises(ReaderError, match=r"\(SUPPORTS, REFUTES\) do not match the data's .*new_head=True"):
        ready(folder).fit(pairs_table(), seed=0)
    fresh = TransformerReader(model=str(folder), new_head=True, epochs=1, precision="fp32").fit(pairs_table(), seed=0)
    assert fresh._model.config.num_labels == 3


def test_table_with_other_labels(tmp_path):
    reader = ready(classifier(tmp_path, "bert")).fit(pairs_table(), seed=0)
    with pytest.raises(ReaderError, match=r"was fitted for labels \['contradiction', .* the table has \['no', 'yes'\]"):
        reader.encode(table(["a"], ["b"], [0]))
