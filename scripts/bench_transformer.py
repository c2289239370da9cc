"""Speed of the transformer and embedding readers against stock transformers, on real SNLI pairs and packaged weights.

Each ratio is taken twice: as a user meets it (every core that torch takes, wall time) and on one thread (CPU seconds of
this process, so that busy neighbours count less). Methods are interleaved and medians compared.
Run: python scripts/bench_transformer.py [--quick] [--saved FOLDER] [--only PART]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
from bench_common import Row, Setting, at_least, at_most, pairs, peak_memory, rates, settings, source
from bench_training import MODEL, accuracy, fine_tuning

PARTS = ("scoring", "memory", "fine_tuning", "all_pairs", "accuracy")


def fitted(train: Any, saved: Path | None) -> Any:
    """A reader fine-tuned just long enough that its answers are no coin flips, or the one in `saved`."""
    from evidep.readers.transformer import TransformerReader

    if saved is not None:
        return TransformerReader.load(saved)
    return TransformerReader(model=MODEL, epochs=2, learning_rate=1e-4).fit(train, seed=0)


def scoring(
    reader: Any, table: Any, asked: list[Setting], *, rounds: int = 3, slow_pairs: int = 48, timed: int = 2000
) -> list[Row]:
    """Pairs per second of a shuffled condition against `pipeline`, and agreement of half precision with fp32.

    All items are compared; the first `timed` of them are timed.
    """
    import torch
    from transformers import pipeline

    from evidep.readers.transformer import TransformerReader

    n = len(table)
    rows, donors = np.arange(n), np.random.default_rng(0).permutation(n)
    texts = [
        {"text": table.queries[int(r)], "text_pair": table.evidence[int(d)]} for r, d in zip(rows, donors, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        reader.save(folder)
        own, exact = TransformerReader.load(folder), TransformerReader.load(folder)
        exact._asked_precision = "fp32"
        stock = pipeline("text-classification", model=folder)
    encoded = own.encode(table)
    answers = {name: r.scores(encoded, rows, donors).argmax(axis=1) for name, r in (("own", own), ("exact", exact))}
    few, timed = min(slow_pairs, n), min(timed, n)
    named = [a["label"] for a in stock(texts[:few], batch_size=32)]
    agree_stock = float(
        np.mean([table.label_names[a] == b for a, b in zip(answers["exact"][:few], named, strict=True)])
    )

    def ours(which: Any) -> Callable[[], int]:
        def work() -> int:
            which.scores(encoded, rows[:timed], donors[:timed])
            return timed

        return work

    methods: dict[str, Callable[[], int | tuple[int, float]]] = {
        "pipeline, defaults": lambda: len(stock(texts[:few])),
        "pipeline, batch 32": lambda: len(stock(texts[: 2 * few], batch_size=32)),
        "fp32": ours(exact),
        "auto": ours(own),
    }
    found: list[Row] = []
    for setting in asked:
        torch.set_num_threads(setting.threads)
        rate = rates(methods, rounds, setting.clock)
        found += [Row(f"{setting.name}: scoring, {name}", value, "pairs/s") for name, value in rate.items()]
        found += _ratios(setting.name, rate, own.precision)
    torch.set_num_threads(1)
    for precision, name in (("fp32", "fp32"), (own.precision, "auto")):
        most = ceiling(own, encoded, rows, donors, precision)
        found.append(Row(f"one thread: {precision} products alone would allow", most, "pairs/s"))
        found.append(Row(f"one thread: reached of that, {precision}", rate[name] / most, "share"))
    torch.set_num_threads(asked[0].threads)
    agreement = float((answers["own"] == answers["exact"]).mean())
    return [
        *found,
        at_least("agreement of fp32 with pipeline", agree_stock, "share", 1),
        at_least(f"agreement of {own.precision} with fp32", agreement, "share", 0.995),
    ]


def _ratios(setting: str, rate: dict[str, float], precision: str) -> list[Row]:
    defaults, batched = rate["pipeline, defaults"], rate["pipeline, batch 32"]
    found = [at_least(f"{setting}: scoring fp32 / pipeline defaults", rate["fp32"] / defaults, "x", 3)]
    if precision == "bf16":
        found.append(at_least(f"{setting}: scoring bf16 / pipeline defaults", rate["auto"] / defaults, "x", 8))
        found.append(at_least(f"{setting}: scoring bf16 / pipeline batch 32", rate["auto"] / batched, "x", 6))
    return found


def ceiling(reader: Any, encoded: Any, rows: Any, donors: Any, precision: str) -> float:
    """Pairs per CPU second if a pair cost nothing but its matrix products, at the rate this CPU reaches in them.

    The first token's last layer leaves 62 of a six-layer MiniLM's 72 products of width x width for each token.
    """
    import torch

    from evidep.readers.batching import torch_dtype
    from evidep.readers.packed import pack_linears
    from evidep.readers.pairing import input_lengths

    width, layers = reader._model.config.hidden_size, reader._model.config.num_hidden_layers
    linear = pack_linears(torch.nn.Sequential(torch.nn.Linear(width, 4 * width)).to(torch_dtype(precision)).eval())
    inputs = torch.randn(1024, width).to(torch_dtype(precision))
    times = []
    with torch.inference_mode():
        for _ in range(30):
            started = time.process_time()
            linear(inputs)
            times.append(time.process_time() - started)
    rate = 2 * 1024 * 4 * width**2 / statistics.median(times)
    tokens = float(np.mean(input_lengths(encoded, *encoded.texts(rows, donors))))
    return rate / (2 * tokens * (12 * (layers - 1) + 2) * width**2)


def all_pairs(*, n_queries: int = 10_000, n_evidence: int = 3_000, rounds: int = 3) -> list[Row]:
    """CPU seconds for all pairs of a bilinear reader (384 dimensions, 3 labels), in blocks as the audit asks."""
    from evidep.readers.embedding import BilinearReader, EmbeddingReader, EncodedEmbeddings, _Fit
    from evidep.readers.linear import LinearModel
    from evidep.types import StringColumn

    rng = np.random.default_rng(0)
    reader = EmbeddingReader(model=MODEL)
    assert isinstance(reader, BilinearReader)

    model = LinearModel(rng.normal(size=(3 * 384, 3)), np.zeros(3))
    reader._fit = _Fit(model, np.zeros(3 * 384), np.ones(3 * 384), 384, ("a", "b", "c"))
    encoded = EncodedEmbeddings(
        rng.normal(size=(n_queries, 384)), np.arange(n_queries), rng.normal(size=(n_evidence + 1, 384)),
        np.arange(n_evidence), ("a", "b", "c"), (StringColumn.from_list([]), StringColumn.from_list([])),
    )  # fmt: skip
    times = []
    for _ in range(rounds):
        started = time.process_time()
        for start in range(0, n_queries, 1024):
            block = np.arange(start, min(start + 1024, n_queries))
            for low in range(0, n_evidence, 1024):
                reader.outer_scores(encoded, block, np.arange(low, min(low + 1024, n_evidence)))
        times.append(time.process_time() - started)
    seconds = statistics.median(times)
    return [at_most(f"all {n_queries:,} x {n_evidence:,} pairs", seconds, "CPU s", 2)]


def memory(reader: Any) -> list[Row]:
    """Peak memory after K shuffles in a process of its own, whose peak nothing else has set."""
    with tempfile.TemporaryDirectory() as folder:
        reader.save(folder)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
            return apart.submit(shuffles_in_memory, folder).result()


def shuffles_in_memory(folder: str, *, ks: tuple[int, int] = (30, 60)) -> list[Row]:
    """Peak memory of this process after K shuffles, scored call by call as the audit does.

    It rises over the first shuffles, while kernels for new batch sizes are prepared, and does not grow with K.
    """
    from evidep.readers.transformer import TransformerReader

    reader, table = TransformerReader.load(folder), pairs(2000).evaluation
    encoded = reader.encode(table)
    rng = np.random.default_rng(0)
    n = min(200, len(table))
    rows = np.arange(n)
    peaks, done = [], 0
    for k in ks:
        for _ in range(k - done):
            reader.scores(encoded, rows, rng.permutation(n))
        done = k
        peaks.append(peak_memory() / 2**20)
    growth = peaks[1] - peaks[0]
    return [
        Row(f"peak memory at K={ks[0]}", peaks[0], "MiB"),
        at_most(f"memory growth from K={ks[0]} to K={ks[1]}", growth, "MiB", 64),
    ]


def main() -> int:
    """Print the table as it is measured; 1 if a limit is missed."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--quick", action="store_true", help="fewer rounds and pairs")
    options.add_argument("--saved", type=Path, help="a saved reader instead of a fresh fit")
    options.add_argument("--only", choices=PARTS, help="one part; accuracy (long) runs only when it is named here")
    chosen = options.parse_args()
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    data, asked = pairs(2000), settings()
    train = data.train.select(np.arange(2000))
    rounds, timed = (3, 1000) if chosen.quick else (5, 2000)
    wanted = [chosen.only] if chosen.only else list(PARTS[:-1])
    reader = fitted(train, chosen.saved) if {"scoring", "memory"} & set(wanted) else None
    parts: dict[str, Callable[[], list[Row]]] = {
        "scoring": lambda: scoring(reader, data.evaluation, asked, rounds=rounds, timed=timed),
        "memory": lambda: memory(reader),
        "fine_tuning": lambda: fine_tuning(train, asked, rounds=2 if chosen.quick else 3),
        "all_pairs": all_pairs,
        "accuracy": lambda: accuracy(train, data.evaluation),
    }
    print(f"text: {source()}", flush=True)
    missed = False
    for name in wanted:
        for row in parts[name]():
            verdict = "" if not row.limit else "ok" if row.ok else "MISSED"
            missed = missed or not row.ok
            print(f"{row.name:48} {row.value:10.3f} {row.unit:10} {row.limit:9} {verdict}".rstrip(), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
