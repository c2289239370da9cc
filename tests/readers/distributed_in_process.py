"""One rank of a distributed run: SAVED_READER BASE_MODEL WORKDIR OUT. Rank 0 writes what it saw."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tiny_models import spoken_world

from evidep.readers.embedding import EmbeddingReader
from evidep.readers.transformer import TransformerReader

if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    saved, base, workdir, out = sys.argv[1:]
    data = spoken_world(61, 5)
    rows = np.arange(61)
    donors = np.roll(rows, 3)

    reader = TransformerReader.load(saved)
    scores = reader.scores(reader.encode(data), rows, donors)
    accelerator = reader._scorer.accelerator

    fitted = TransformerReader(
        model=base, epochs=2, batch_size=7, learning_rate=1e-3, precision="fp32", holdout_share=0.3, token_budget=64
    )
    fitted.workdir = Path(workdir)
    fitted.fit(data, seed=0)
    after_fit = fitted.scores(fitted.encode(data), rows, donors)
    everywhere = accelerator.gather(torch.from_numpy(after_fit)[None]).numpy()

    embedding = EmbeddingReader(model=base, precision="fp32", token_budget=64).fit(data, seed=0)
    vectors = embedding.scores(embedding.encode(data), rows, donors)
    if accelerator.is_main_process:
        np.savez(
            out,
            num_processes=accelerator.num_processes,
            scores=scores,
            after_fit=after_fit,
            ranks_agree=(everywhere == everywhere[0]).all(),
            world_size=fitted.report.world_size,
            held_out=[e.accuracy for e in fitted.report.evaluations],
            embedding=vectors,
        )
    accelerator.end_training()
