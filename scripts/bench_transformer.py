"""Speed of the transformer and embedding readers against stock transformers, on real SNLI pairs and packaged weights.

One thread; times are CPU seconds of this process, so that busy neighbours count less; methods are interleaved and
medians compared. Run: python scripts/bench_transformer.py [--quick] [--saved FOLDER] [--accuracy]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
ROLES = {"query": "query", "evidence": "evidence", "label": "label"}


class Row(NamedTuple):
    """One measurement; `ok` is None where there is no limit."""

    name: str
    value: float
    unit: str
    limit: str
    ok: bool | None


def interleaved(methods: dict[str, Callable[[], int | tuple[int, float]]], rounds: int) -> dict[str, float]:
    """Median items per CPU second of each method; a method returns items done [, seconds taken]."""
    rates: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(rounds):
        for name, work in methods.items():
            started = time.process_time()
            result = work()
            done, seconds = result if isinstance(result, tuple) else (result, time.process_time() - started)
            rates[name].append(done / seconds)
    return {name: statistics.median(values) for name, values in rates.items()}


def half_units() -> bool:
    """Whether this CPU multiplies bfloat16."""
    from evidep.readers.batching import resolve_precision

    return resolve_precision("auto", "cpu") == "bf16"


def snli(folder: Path, n_train: int, n_test: int) -> tuple[Any, Any]:
    """Train and evaluation tables of real pairs."""
    import gzip
    import itertools
    import json

    from evidep.data.loading import load_audit_data

    def rows(name: str, split: str, n: int) -> list[dict[str, Any]]:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            kept = (row for row in map(json.loads, lines) if row["split"] == split)
            return [{key: row[key] for key in ROLES} for row in itertools.islice(kept, n)]

    data = load_audit_data(rows("snli", "validation", n_test), train=rows("snli_train", "train", n_train), roles=ROLES)
    return data.train, data.evaluation


def fitted(train: Any, saved: Path | None) -> Any:
    """A reader fine-tuned just long enough that its answers are no coin flips, or the one in `saved`."""
    from evidep.readers.transformer import TransformerReader

    if saved is not None:
        return TransformerReader.load(saved)
    return TransformerReader(model=MODEL, epochs=2, learning_rate=1e-4).fit(train, seed=0)


def scoring(reader: Any, table: Any, *, rounds: int = 3, slow_pairs: int = 48, timed: int = 2000) -> list[Row]:
    """Pairs per second of a shuffled condition against `pipeline`, and agreement of half precision with fp32.

    All items are compared; the first `timed` of them are timed.
    """
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

    rates = interleaved(
        {
            "pipeline, defaults": lambda: len(stock(texts[:few])),
            "pipeline, batch 32": lambda: len(stock(texts[: 2 * few], batch_size=32)),
            "fp32": ours(exact),
            "auto": ours(own),
        },
        rounds,
    )
    half = half_units()
    first, batched = rates["auto"] / rates["pipeline, defaults"], rates["auto"] / rates["pipeline, batch 32"]
    plain = rates["fp32"] / rates["pipeline, defaults"]
    agreement = float((answers["own"] == answers["exact"]).mean())
    found = [Row(f"scoring, {name}", rate, "pairs/s", "", None) for name, rate in rates.items()]
    for precision, name in (("fp32", "fp32"), (own.precision, "auto")):
        most = ceiling(own, encoded, rows, donors, precision)
        found.append(Row(f"{precision} products alone would allow", most, "pairs/s", "", None))
        found.append(Row(f"reached of that, {precision}", rates[name] / most, "share", "", None))
    found += [
        Row("scoring fp32 / pipeline defaults", plain, "x", ">= 3", plain >= 3),
        Row("agreement of fp32 with pipeline", agree_stock, "share", "= 1", agree_stock == 1),
        Row(f"agreement of {own.precision} with fp32", agreement, "share", ">= 0.995", agreement >= 0.995),
    ]
    if half:
        found += [
            Row("scoring bf16 / pipeline defaults", first, "x", ">= 8", first >= 8),
            Row("scoring bf16 / pipeline batch 32", batched, "x", ">= 6", batched >= 6),
        ]
    return found


def ceiling(reader: Any, encoded: Any, rows: Any, donors: Any, precision: str) -> float:
    """Pairs per second if a pair cost nothing but its matrix products, at the rate this CPU reaches in them.

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


def fine_tuning(train: Any, *, rounds: int = 3, n: int = 640) -> list[Row]:
    """Examples per second at batch 32, against the stock Trainer with dynamic padding in fp32; loading excluded."""
    from evidep.readers import transformer

    part = train.select(np.arange(min(n, len(train))))
    inner = transformer.fine_tune

    def ours(precision: str) -> Callable[[], tuple[int, float]]:
        def work() -> tuple[int, float]:
            spent = []

            def timed(*arguments: Any, **options: Any) -> Any:
                started = time.process_time()
                report = inner(*arguments, **options)
                spent.append(time.process_time() - started)
                return report

            transformer.fine_tune = timed
            try:
                transformer.TransformerReader(model=MODEL, epochs=1, holdout_share=0, precision=precision).fit(
                    part, seed=0
                )
            finally:
                transformer.fine_tune = inner
            return len(part), spent[0]

        return work

    methods = {"Trainer fp32": lambda: stock_trainer(part, epochs=1)[:2], "fp32": ours("fp32")}
    if half_units():
        methods["bf16"] = ours("bf16")
    rates = interleaved(methods, rounds)
    equal = rates["fp32"] / rates["Trainer fp32"]
    found = [Row(f"fine-tuning, {name}", rate, "examples/s", "", None) for name, rate in rates.items()]
    found.append(Row("fine-tuning fp32 / Trainer fp32", equal, "x", ">= 1.5", equal >= 1.5))
    if "bf16" in rates:
        gain = rates["bf16"] / rates["Trainer fp32"]
        found.append(Row("fine-tuning bf16 / Trainer fp32", gain, "x", ">= 3", gain >= 3))
    return found


def stock_trainer(table: Any, *, epochs: int, learning_rate: float = 5e-5) -> tuple[int, float, Any]:
    """Fine-tune with transformers.Trainer as its documentation shows: dynamic padding, batch 32, fp32."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments
    from transformers import DataCollatorWithPadding as Collator

    from evidep.readers.weights import resolve

    source = resolve(MODEL).source
    tokenizer = AutoTokenizer.from_pretrained(source)
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=table.n_classes)
    encoded = tokenizer(table.queries.to_list(), table.evidence.to_list(), truncation=True)
    items = [
        {**{key: values[i] for key, values in encoded.items()}, "labels": int(label)}
        for i, label in enumerate(table.labels)
    ]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=epochs, per_device_train_batch_size=32, learning_rate=learning_rate,
            save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, logging_strategy="no",
        )  # fmt: skip
        trainer = Trainer(model, arguments, train_dataset=items, data_collator=Collator(tokenizer))
        started = time.process_time()
        trainer.train()
        seconds = time.process_time() - started
    return len(items) * epochs, seconds, (model.eval(), tokenizer)


def accuracy(train: Any, test: Any, *, epochs: int = 3) -> list[Row]:
    """Accuracy after equal fine-tuning: own loop and Trainer differ by no more than seeds do."""
    import torch

    from evidep.readers.transformer import TransformerReader

    rows = np.arange(len(test))
    found = {}
    for seed in (0, 1):
        reader = TransformerReader(model=MODEL, epochs=epochs, learning_rate=1e-4, holdout_share=0).fit(
            train, seed=seed
        )
        found[f"own, seed {seed}"] = float(
            (reader.scores(reader.encode(test), rows, rows).argmax(axis=1) == test.labels).mean()
        )
    model, tokenizer = stock_trainer(train, epochs=epochs, learning_rate=1e-4)[2]
    right = 0
    with torch.inference_mode():
        for i in range(len(test)):
            inputs = tokenizer([test.queries[i]], [test.evidence[i]], return_tensors="pt")
            right += int(model(**inputs).logits.argmax()) == int(test.labels[i])
    found["Trainer"] = right / len(test)
    noise = 3 * (2 * 0.25 / len(test)) ** 0.5  # three standard errors of a difference of two accuracies, at most
    apart = abs(found["Trainer"] - (found["own, seed 0"] + found["own, seed 1"]) / 2)
    measured = [Row(f"accuracy, {name}", value, "share", "", None) for name, value in found.items()]
    return [*measured, Row("accuracy apart from Trainer", apart, "share", f"<= {noise:.3f}", apart <= noise)]


def all_pairs(*, n_queries: int = 10_000, n_evidence: int = 3_000, rounds: int = 3) -> list[Row]:
    """Seconds for all pairs of a bilinear reader (384 dimensions, 3 labels), in blocks as the audit asks for them."""
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
    return [Row(f"all {n_queries:,} x {n_evidence:,} pairs", seconds, "CPU s", "<= 2", seconds <= 2)]


def memory(reader: Any, table: Any, *, ks: tuple[int, int] = (30, 60)) -> list[Row]:
    """Peak memory after K shuffles, scored call by call as the audit does.

    It rises over the first shuffles, while kernels for new batch sizes are prepared, and does not grow with K.
    """
    import resource

    encoded = reader.encode(table)
    rng = np.random.default_rng(0)
    n = min(200, len(table))
    rows = np.arange(n)
    peaks, done = [], 0
    for k in ks:
        for _ in range(k - done):
            reader.scores(encoded, rows, rng.permutation(n))
        done = k
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    growth = peaks[1] - peaks[0]
    return [
        Row(f"peak memory at K={ks[0]}", peaks[0], "MiB", "", None),
        Row(f"memory growth from K={ks[0]} to K={ks[1]}", growth, "MiB", "<= 64", growth <= 64),
    ]


def main() -> int:
    """Print the table; 1 if a limit is missed."""
    import torch

    torch.set_num_threads(1)
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--quick", action="store_true", help="fewer rounds and pairs")
    options.add_argument("--saved", type=Path, help="a saved reader instead of a fresh fit")
    options.add_argument(
        "--accuracy", action="store_true", help="also compare accuracies after equal fine-tuning (long)"
    )
    options.add_argument("--only", choices=("scoring", "fine_tuning", "all_pairs", "memory", "accuracy"))
    chosen = options.parse_args()
    folder = Path(os.environ.get("EVIDEP_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    rounds, timed = (2, 1000) if chosen.quick else (5, 2000)
    train, test = snli(folder, 2000, 2000)
    wanted = {chosen.only} if chosen.only else {"scoring", "fine_tuning", "all_pairs", "memory"}
    if chosen.accuracy:
        wanted.add("accuracy")
    parts: list[Callable[[], list[Row]]] = []
    if wanted & {"scoring", "memory"}:
        reader = fitted(train, chosen.saved)
        if "scoring" in wanted:
            parts.append(lambda: scoring(reader, test, rounds=rounds, timed=timed))
        if "memory" in wanted:
            parts.append(lambda: memory(reader, test))
    if "fine_tuning" in wanted:
        parts.append(lambda: fine_tuning(train, rounds=min(rounds, 3)))
    if "all_pairs" in wanted:
        parts.append(all_pairs)
    if "accuracy" in wanted:
        parts.append(lambda: accuracy(train, test))
    missed = False
    for part in parts:
        for row in part():
            verdict = "" if row.ok is None else "ok" if row.ok else "MISSED"
            missed = missed or row.ok is False
            print(f"{row.name:45} {row.value:10.3f} {row.unit:10} {row.limit:25} {verdict}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
