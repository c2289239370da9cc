"""Speed and accuracy of fine-tuning against the stock Trainer, for bench_transformer.py."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from bench_common import Row, Setting, at_least, at_most, rates

from evidep.readers.batching import resolve_precision

MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def fine_tuning(train: Any, asked: list[Setting], *, rounds: int = 3, n: int = 640) -> list[Row]:
    """Examples per second at batch 32, against the stock Trainer with dynamic padding in fp32.

    Loading is excluded on both sides, and on ours the answers that a fit without held-out items is checked on.
    """
    import torch

    from evidep.readers import transformer

    part = train.select(np.arange(min(n, len(train))))
    inner = transformer.fine_tune

    def ours(precision: str, clock: Callable[[], float]) -> Callable[[], tuple[int, float]]:
        def work() -> tuple[int, float]:
            spent, checking = [], []

            def timed(*arguments: Any, score: Any, **options: Any) -> Any:
                def timed_score(*what: Any) -> Any:
                    began = clock()
                    answers = score(*what)
                    checking.append(clock() - began)
                    return answers

                started = clock()
                report = inner(*arguments, score=timed_score, **options)
                spent.append(clock() - started)
                return report

            transformer.fine_tune = timed
            try:
                transformer.TransformerReader(model=MODEL, epochs=1, holdout_share=0, precision=precision).fit(
                    part, seed=0
                )
            finally:
                transformer.fine_tune = inner
            return len(part), spent[0] - sum(checking)

        return work

    found: list[Row] = []
    for setting in asked:
        torch.set_num_threads(setting.threads)
        methods: dict[str, Callable[[], int | tuple[int, float]]] = {
            "Trainer fp32": lambda clock=setting.clock: stock_trainer(part, clock, epochs=1)[:2],
            "fp32": ours("fp32", setting.clock),
        }
        if resolve_precision("auto", "cpu") == "bf16":
            methods["bf16"] = ours("bf16", setting.clock)
        rate = rates(methods, rounds, setting.clock)
        found += [Row(f"{setting.name}: fine-tuning, {name}", value, "examples/s") for name, value in rate.items()]
        for name, least in (("fp32", 1.5), ("bf16", 3)):
            if name in rate:
                gain = rate[name] / rate["Trainer fp32"]
                found.append(at_least(f"{setting.name}: fine-tuning {name} / Trainer fp32", gain, "x", least))
    torch.set_num_threads(asked[0].threads)
    return found


def stock_trainer(
    table: Any, clock: Callable[[], float], *, epochs: int, learning_rate: float = 5e-5
) -> tuple[int, float, Any]:
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
        started = clock()
        trainer.train()
        seconds = clock() - started
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
    model, tokenizer = stock_trainer(train, time.process_time, epochs=epochs, learning_rate=1e-4)[2]
    right = 0
    with torch.inference_mode():
        for i in range(len(test)):
            inputs = tokenizer([test.queries[i]], [test.evidence[i]], return_tensors="pt")
            right += int(model(**inputs).logits.argmax()) == int(test.labels[i])
    found["Trainer"] = right / len(test)
    noise = 3 * (2 * 0.25 / len(test)) ** 0.5  # three standard errors of a difference of two accuracies, at most
    apart = abs(found["Trainer"] - (found["own, seed 0"] + found["own, seed 1"]) / 2)
    measured = [Row(f"accuracy, {name}", value, "share") for name, value in found.items()]
    return [*measured, at_most("accuracy apart from Trainer", apart, "share", round(noise, 3))]
