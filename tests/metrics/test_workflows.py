"""The code of docs/workflows.md, run as it stands on a small benchmark and a small model."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from data.test_logs import harness_choice, inspect_eval, inspect_json, inspect_samples
from tiny_models import bert_tokenizer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "workflows.md"


def blocks():
    """(heading, file name or None, code) of every python block."""
    found, heading = [], ""
    for part in PAGE.read_text(encoding="utf-8").split("\n## "):
        heading = part.splitlines()[0].lstrip("# ")
        for block in part.split("```python\n")[1:]:
            code = block.split("```")[0]
            first = code.splitlines()[0]
            name = first.removeprefix("# file: ") if first.startswith("# file: ") else None
            found.append((heading, name, code))
    return found


def write_rows(path, n, seed):
    """The evidence says whether the claim holds; the source says nothing."""
    rng = np.random.default_rng(seed)
    words = ["cat", "dog", "bird", "house", "tree"]
    with path.open("w", encoding="utf-8") as file:
        for _ in range(n):
            label = int(rng.integers(2))
            row = {
                "claim": f"the {rng.choice(words)} is in the {rng.choice(words)}",
                "evidence": f"{rng.choice(words)} {['blue', 'red'][label]} {rng.choice(words)} {rng.integers(1000)}",
                "label": label,
                "source": ["north", "south"][int(rng.integers(2))],
            }
            file.write(json.dumps(row) + "\n")


def write_model(folder):
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    bert_tokenizer(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(AutoTokenizer.from_pretrained(folder)), hidden_size=32, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=64, num_labels=2,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)


def write_logs(folder, n=60):
    """A model that needs its evidence: right with it, right on half of the items without."""
    folder.mkdir()
    gold = [0, 1] * (n // 2)
    half = [label if at % 4 < 2 else 1 - label for at, label in enumerate(gold)]
    stamp = "2026-01-01T00-00-00.jsonl"
    for name, answers in (("claims", gold), ("claims_shuffled_0", half), ("claims_shuffled_1", half)):
        likelihoods = [(-1.0, -2.0) if answer == 0 else (-2.0, -1.0) for answer in answers]
        harness_choice(folder / f"samples_{name}_{stamp}", likelihoods, gold)
    letters = "".join("AB"[label] for label in gold)
    inspect_eval(folder / "claims.eval", inspect_samples(letters, letters))
    samples = inspect_samples("".join("AB"[label] for label in half), letters)
    samples[0] |= {"error": {"message": "out of time"}, "scores": None}
    inspect_json(folder / "claims_shuffled.json", samples)


RUNNER = """
import json, sys
namespace = {}
for name in sys.argv[1:]:
    exec(compile(open(name).read(), name, "exec"), namespace)
plain = lambda values: {k: v for k, v in values.items() if isinstance(v, (int, float, str, list))}
result = lambda delta: [delta.mean, delta.verdict, delta.n_items]
shown = {
    "trainer": [entry for entry in namespace["trainer"].state.log_history if "eval_loss" in entry][-1],
    "by_evaluator": namespace["by_evaluator"],
    "by_suite": [plain(task) for task in namespace["by_suite"]],
    "from_harness": result(namespace["from_harness"]),
    "from_inspect": result(namespace["from_inspect"]),
}
json.dump(shown, open("shown.json", "w"), default=float)
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Every block in order, in one process of its own whose working directory holds what the page speaks of."""
    folder = tmp_path_factory.mktemp("workflows")
    write_rows(folder / "train.jsonl", 200, seed=0)
    write_rows(folder / "test.jsonl", 40, seed=1)
    write_model(folder / "my-model")
    write_logs(folder / "logs")
    scripts = []
    for number, (_, name, code) in enumerate(blocks()):
        if name is None:
            scripts.append(f"block_{number}.py")
            (folder / scripts[-1]).write_text(code, encoding="utf-8")
        else:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(code, encoding="utf-8")
    (folder / "run.py").write_text(RUNNER, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "run.py", *scripts], cwd=folder, capture_output=True, text=True, timeout=550,
        env=os.environ | {"PYTHONPATH": str(folder), "HF_HOME": str(folder / "home")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "shown.json").read_text())


def test_the_page_speaks_of_every_workflow():
    headings = [heading for heading, _, _ in blocks()]
    for expected in (
        "transformers.Trainer",
        "evaluate.evaluator",
        "EvaluationSuite",
        "lm-evaluation-harness",
        "Inspect",
    ):
        assert expected in headings


def test_trainer_reports_delta_evi_beside_the_loss(shown):
    result = shown["trainer"]
    assert math.isfinite(result["eval_loss"])
    # the evidence alone tells the label: learnt, accuracy is far above one half and falls to about one half
    assert result["eval_accuracy_full"] > 0.8
    assert result["eval_delta_evi"] > 0.2
    assert result["eval_p_value"] == pytest.approx(1 / 21)


def test_evaluator_and_suite_agree_with_the_trainer(shown):
    expected = shown["trainer"]["eval_delta_evi"]
    assert shown["by_evaluator"]["delta_evi"] == pytest.approx(expected)
    assert shown["by_evaluator"]["verdict"] == "sensitive"
    delta_evi, mpds = shown["by_suite"]
    assert delta_evi["delta_evi"] == pytest.approx(expected)
    # the source tells nothing: metadata alone is right about half of the time
    assert mpds["accuracy_full"] == pytest.approx(shown["trainer"]["eval_accuracy_full"])
    assert 0.3 < mpds["accuracy_metadata"] < 0.7


def test_logs_of_the_harness_and_of_inspect(shown):
    # right on all items with evidence, on half of them without
    assert shown["from_harness"] == [0.5, "sensitive", 60]
    # the first sample of the shuffled run ended in an error: 59 left, 30 of them wrong
    assert shown["from_inspect"] == [pytest.approx(30 / 59), "sensitive", 59]
