"""Readers of the tiny models, and what transformers alone answers in their place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tiny_models import NAMES, random_texts, table

from evidep.readers.embedding import EmbeddingReader
from evidep.types import EMPTY, NULL, PairTable

if TYPE_CHECKING:
    from evidep.readers.transformer import TransformerReader

QUICK = {"epochs": 3, "batch_size": 8, "learning_rate": 2e-3, "precision": "fp32"}


def ready(folder: Path, **options) -> TransformerReader:
    """The classifier in `folder`, used as it is."""
    from evidep.readers.transformer import TransformerReader

    return TransformerReader(model=str(folder), epochs=0, **{"precision": "fp32", **options})


def embedding_reader(encoder, **settings) -> EmbeddingReader:
    """A reader of frozen embeddings with little to compute."""
    return EmbeddingReader(model=encoder, **{"precision": "fp32", "C": 1.0, **settings})


def pairs_table(n: int = 24) -> PairTable:
    """Random texts with the labels of `NAMES`."""
    return table(random_texts(n, 1, 4), random_texts(n, 2, 30), [i % 3 for i in range(n)], NAMES)


def plain_logits(folder: Path, data, rows, donors, max_length=64):
    """One pair at a time through transformers alone."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    logits = []
    for r, d in zip(rows.tolist(), donors.tolist(), strict=True):
        query = None if r == NULL else data.queries[r]
        evidence = None if d == NULL else "" if d == EMPTY else data.evidence[d]
        options = {"return_tensors": "pt", "max_length": max_length}
        if query is None or evidence is None:
            inputs = tokenizer([query or evidence or ""], truncation=True, **options)
        else:
            inputs = tokenizer([query], [evidence], truncation="only_second", **options)
        with torch.no_grad():
            logits.append(model(**inputs).logits[0].numpy())
    return np.array(logits)


def weights(reader) -> dict[str, np.ndarray]:
    return {name: p.detach().numpy().copy() for name, p in reader._model.named_parameters()}


def assert_same_weights(a, b):
    a, b = weights(a), weights(b)
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
