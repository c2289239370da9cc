"""Two processes (torchrun, gloo) give the predictions of one, and really are two."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_models import bert_model, spoken_world

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

SCRIPT = Path(__file__).with_name("distributed_in_process.py")


def launch(processes: int, *arguments: Path) -> dict[str, np.ndarray]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    run = subprocess.Popen(
        [*command, str(SCRIPT), *map(str, arguments)], env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        _, errors = run.communicate(timeout=200)
    finally:
        run.terminate()  # torchrun takes its processes with it
    assert run.returncode == 0, errors[-3000:]
    return dict(np.load(arguments[-1]))


def test_two_processes_predict_and_fit_as_one(tmp_path):
    from evidep.readers.embedding import EmbeddingReader
    from evidep.readers.transformer import TransformerReader

    # Without dropout the gradient of a batch does not depend on how it is shared out, but for rounding.
    base = bert_model(tmp_path / "base", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    recipe = {"epochs": 2, "batch_size": 7, "learning_rate": 1e-3, "precision": "fp32", "holdout_share": 0.3}
    data = spoken_world(61, 5)
    one = TransformerReader(model=str(base), token_budget=64, **recipe).fit(data, seed=0)
    one.save(tmp_path / "saved")
    rows = np.arange(61)
    expected = one.scores(one.encode(data), rows, np.roll(rows, 3))

    two = launch(2, tmp_path / "saved", base, tmp_path / "work", tmp_path / "out.npz")

    assert two["num_processes"] == 2
    np.testing.assert_array_equal(two["scores"].argmax(axis=1), expected.argmax(axis=1))
    np.testing.assert_allclose(two["scores"], expected, atol=1e-6)
    assert two["world_size"] == 2
    assert two["ranks_agree"]
    np.testing.assert_allclose(two["after_fit"], expected, atol=0.02)
    assert len(two["held_out"]) == len(one.report.evaluations)
    assert len(list((tmp_path / "work").glob("*/finished/model.safetensors"))) == 1
    embedding = EmbeddingReader(model=str(base), precision="fp32", token_budget=64).fit(data, seed=0)
    alone = embedding.scores(embedding.encode(data), rows, np.roll(rows, 3))
    np.testing.assert_allclose(two["embedding"], alone, atol=1e-4)
