"""Fit a tiny reader in a process of its own and write its scores: MODEL WORKDIR OUT."""

import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tiny_models import spoken_world

from evidep.readers.transformer import TransformerReader

if __name__ == "__main__":
    model, workdir, out = sys.argv[1:]
    reader = TransformerReader(
        model=model, epochs=6, batch_size=4, learning_rate=2e-3, precision="fp32", patience=9, checkpoint_seconds=0
    )
    reader.workdir = Path(workdir)
    reader.fit(spoken_world(200, 0), seed=0)
    test = spoken_world(50, 1)
    rows = np.arange(len(test))
    scores = reader.scores(reader.encode(test), rows, rows[::-1].copy())
    if os.environ.get("RANK", "0") == "0":
        np.savez(out, scores=scores, world_size=reader.report.world_size)
