"""The paper's numbers beside ours, on the data at hand. No number is tuned to match.

    python scripts/reproduce_paper.py --data FOLDER --work FOLDER [--strong minilm]

writes docs/reproduction.md (Shao, arXiv 2605.23701). --data holds the normalised benchmark files; audits are kept in
--work and not run again. --strong adds a fine-tuned reader, at the sizes that the page states.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproduction_page import page
from weak_labels import write_derived

from evidep.data.synthetic import planted_world

ROOT = Path(__file__).resolve().parents[1]
LIGHT = ("tfidf_lr", "tfidf_lr_joined")
"""Two readings of the paper's LR: one vocabulary for each side, and one for the joined text."""


@dataclass(frozen=True)
class Benchmark:
    """One row of the paper's list.

    Attributes:
        name: Of the audit.
        paper: What the summary of the paper reports.
        expected: The region, in our terms, that the paper's numbers amount to; None where it reports none.
        world: A planted world; None: `source` says which files.
        source: Arguments of `evidep.audit` apart from the data; DATA/ and WORK/ stand for the two folders.
        data: The evaluation file.
        strong: Whether the fine-tuned reader runs too.
        diagnostics: Whether metadata shift, flip and filtering run too.
    """

    name: str
    paper: str
    expected: str | None
    world: str | None = None
    data: str = ""
    source: dict[str, Any] = field(default_factory=dict)
    strong: bool = False
    diagnostics: bool = False


BENCHMARKS = (
    Benchmark("synthetic HotpotQA", "LR: ΔEvi 0, MPDS 0.643", "latent_coupling", "hotpotqa", strong=True,
              diagnostics=True),
    Benchmark("synthetic NQ", "LR: ΔEvi 0, MPDS 1.0", "direct_coupling", "nq", diagnostics=True),
    Benchmark("synthetic TriviaQA", "LR: ΔEvi 0.808", "evidence_sensitive", "triviaqa", diagnostics=True),
    Benchmark(
        "SNLI",
        "LR: ΔEvi 0; transformers 0.26 to 0.37 (BERT 0.3671 ± 0.0036); hypothesis-only 0.5975",
        "evidence_sensitive",
        data="DATA/snli.jsonl.gz",
        source={"train": "DATA/snli_train.jsonl.gz", "split": "test", "train_split": "train"},
        strong=True,
    ),
    Benchmark(
        "FEVER",
        "LR: ΔEvi 0.13; transformers 0.63 to 0.68 (BERT 0.6813 ± 0.0022)",
        "evidence_sensitive",
        data="DATA/fever.jsonl.gz",
        source={"split": "test", "train_split": "validation", "roles": {"metadata": ["n_evidence"]}},
        strong=True,
        diagnostics=True,
    ),
    Benchmark(
        "HotpotQA, reconstructed labels",
        "ΔEvi at most 0.002; question-only 0.975; 578 full, 22 conflict",
        "question_dominant",
        data="WORK/hotpotqa_weak.jsonl",
        source={"roles": {"metadata": ["type", "answer_type", "level"]}},
        diagnostics=True,
    ),
    Benchmark(
        "HotpotQA, yes/no questions",
        "not in the summary",
        None,
        data="WORK/hotpotqa_yes_no.jsonl",
        source={"roles": {"metadata": ["type", "level"]}},
    ),
)  # fmt: skip


def audited(benchmark: Benchmark, arguments: argparse.Namespace) -> dict[str, Any]:
    """The packet of one benchmark, run now unless it is there."""
    import evidep

    out = arguments.work / "_".join(benchmark.name.replace(",", "").split())
    readers = [*LIGHT, "minilm_lr"] + ([arguments.strong] if arguments.strong and benchmark.strong else [])
    settings: dict[str, Any] = {
        "readers": readers, "name": benchmark.name, "max_items": arguments.max_items,
        "max_train_items": arguments.max_train_items, "ablations": ("query-only",), "out": out,
    }  # fmt: skip
    if benchmark.world is not None:
        made = planted_world(benchmark.world, n_train=4000, n_eval=1000, seed=0)
        data: Any = made.evaluation
        settings |= {"train": made.train, "roles": made.roles}
    else:
        folders = {"DATA/": f"{arguments.data}/", "WORK/": f"{arguments.work}/"}
        data, settings = _located(benchmark.data, folders), settings | dict(benchmark.source)
        if "train" in settings:
            settings["train"] = _located(settings["train"], folders)
    started = time.monotonic()
    packet = evidep.audit(data, **settings)
    found = {"packet": packet.document, "diagnostics": None}
    if benchmark.diagnostics:
        light = settings | {"readers": LIGHT[:1], "out": out.with_name(out.name + "_diagnostics"), "diagnostics": True}
        found["diagnostics"] = evidep.audit(data, **light).document["diagnostics"]
    sys.stderr.write(f"{benchmark.name}: {packet.region}, {time.monotonic() - started:.0f} s\n")
    return found


def _located(name: str, folders: dict[str, str]) -> Path:
    for short, folder in folders.items():
        name = name.replace(short, folder)
    return Path(name)


def main() -> int:
    """Audit and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the normalised benchmark files")
    parser.add_argument("--work", type=Path, required=True, help="folder for derived files and finished audits")
    parser.add_argument("--max-items", type=int, default=1000)
    parser.add_argument("--max-train-items", type=int, default=4000)
    parser.add_argument("--strong", help="a reader that is fine-tuned, for synthetic HotpotQA, SNLI and FEVER")
    parser.add_argument("--only", help="names of benchmarks, separated by semicolons: audit these and write no page")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "reproduction.md")
    arguments = parser.parse_args()
    needed = [arguments.data / f"{name}.jsonl.gz" for name in ("snli", "snli_train", "fever", "hotpotqa")]
    if missing := [str(path) for path in needed if not path.is_file()]:
        parser.error(f"--data: expected the normalised benchmark files, not found: {', '.join(missing)}")
    write_derived(arguments.data, arguments.work)
    wanted = None if arguments.only is None else arguments.only.split(";")
    found = [
        (benchmark, audited(benchmark, arguments))
        for benchmark in BENCHMARKS
        if wanted is None or benchmark.name in wanted
    ]
    command = (
        f"python scripts/reproduce_paper.py --data FOLDER --work FOLDER --max-items {arguments.max_items} "
        f"--max-train-items {arguments.max_train_items}"
    )
    if arguments.strong:
        command += f" --strong {arguments.strong}"
    if wanted is None:
        rows = [(b.name, b.paper, b.expected, json.loads(json.dumps(f))) for b, f in found]
        arguments.out.write_text(page(rows, command), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
