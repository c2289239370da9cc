"""The paper's numbers beside ours, on the data at hand. No number is tuned to match.

    python scripts/reproduce_paper.py --data FOLDER [--readers tfidf_lr,minilm_lr] [--strong minilm]

writes docs/reproduction.md (Shao, arXiv 2605.23701). FOLDER holds the normalised benchmark files. `--strong` adds a
fine-tuned reader at a reduced size (`--strong-train`, `--strong-items`), which the page states.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from weak_labels import write_derived

from evidep.data.synthetic import planted_world

ROOT = Path(__file__).resolve().parents[1]
SYNTHETIC = (("hotpotqa", "ΔEvi 0, MPDS 0.643: latent coupling"), ("nq", "ΔEvi 0, MPDS 1.0: direct coupling"),
             ("triviaqa", "ΔEvi 0.808: evidence-sensitive"))  # fmt: skip
PAPER = {
    "SNLI": "LR ΔEvi 0; transformers 0.26 to 0.37 (BERT 0.3671 ± 0.0036); hypothesis-only 0.5975: calibration reversal",
    "FEVER": "LR ΔEvi 0.13; transformers 0.63 to 0.68 (BERT 0.6813 ± 0.0022): evidence-sensitive",
    "HotpotQA": "ΔEvi <= 0.002, question-only 0.975, 578 full against 22 conflict: question-dominant with label skew",
}


class Run:
    """Audits one benchmark after the other and keeps a row for each reader."""

    def __init__(self, readers: tuple[str, ...], max_items: int, max_train: int) -> None:
        self.readers, self.max_items, self.max_train = readers, max_items, max_train
        self.rows: list[dict[str, Any]] = []
        self.diagnostics: list[dict[str, Any]] = []

    def audit(self, name: str, paper: str, data: Any, **settings: Any) -> None:
        """Audit, and note what every reader found."""
        import evidep

        started = time.monotonic()
        packet = evidep.audit(
            data, **({"readers": self.readers, "max_items": self.max_items, "max_train_items": self.max_train,
                      "name": name} | settings)
        )  # fmt: skip
        for reader in packet["readers"]:
            delta = next(
                row for row in packet["delta_evi"] if (row["reader"], row["shuffle"]) == (reader["reader"], "global")
            )
            query = next(
                (a["accuracy"] for a in packet["ablations"]
                 if (a["reader"], a["arm"], a["how"]) == (reader["reader"], "query-only", "retrained")), None
            )  # fmt: skip
            self.rows.append(
                {"name": name, "paper": paper, "reader": reader["reader"], "items": packet["data"]["rows"],
                 "train": packet["data"]["train_rows"], "accuracy": reader["accuracy_full"], "works": reader["works"],
                 "delta": delta["mean"] if delta["exact"] is None else delta["exact"], "ci": delta["ci"],
                 "sd": delta["sd_population"], "verdict": delta["verdict"], "query": query,
                 "majority": packet["majority_rate"], "mpds": packet["metadata"]["mpds"], "region": packet.region,
                 "flags": packet["diagnosis"]["flags"], "counts": packet["data"]["label_counts"]}
            )  # fmt: skip
        if "diagnostics" in packet.document:
            self.diagnostics.append({"name": name, **packet["diagnostics"]})
        sys.stderr.write(f"{name}: {packet.region}, {time.monotonic() - started:.0f} s\n")


def reproduce(folder: Path, run: Run, strong: tuple[str, int, int] | None) -> None:
    """All audits."""
    for world, paper in SYNTHETIC:
        made = planted_world(world, n_train=1500, n_eval=1000, seed=0)
        run.audit(f"synthetic {world}", paper, made.evaluation, train=made.train, roles=made.roles, diagnostics=True)
    snli = {"train": folder / "snli_train.jsonl.gz", "split": "test", "train_split": "train"}
    fever = {"split": "test", "train_split": "validation", "roles": {"metadata": ["n_evidence"]}}
    run.audit("SNLI", PAPER["SNLI"], folder / "snli.jsonl.gz", **snli)
    run.audit("FEVER", PAPER["FEVER"], folder / "fever.jsonl.gz", diagnostics=True, **fever)
    with tempfile.TemporaryDirectory() as scratch:
        write_derived(folder, Path(scratch))
        weak = {"metadata": ["type", "answer_type", "level"]}
        run.audit("HotpotQA, weak labels", PAPER["HotpotQA"], Path(scratch) / "hotpotqa_weak.jsonl", roles=weak)
        answers = {"metadata": ["type", "level"]}
        name = "HotpotQA, yes/no questions"
        run.audit(name, "not in the summary", Path(scratch) / "hotpotqa_yes_no.jsonl", roles=answers)
    if strong is not None:
        reader, train, items = strong
        size = {"readers": (reader,), "max_items": items, "max_train_items": train, "shuffles": ("global",),
                "ablations": ("query-only",)}  # fmt: skip
        run.audit("SNLI", PAPER["SNLI"], folder / "snli.jsonl.gz", **(snli | size))
        run.audit("FEVER", PAPER["FEVER"], folder / "fever.jsonl.gz", **(fever | size))


def page(run: Run, command: str) -> str:
    """docs/reproduction.md."""
    lines = [HEAD.strip().replace("COMMAND", command), ""]
    lines += _head("benchmark", "paper", "reader (train, items)", "accuracy", "query-only", "majority", "MPDS", "ΔEvi",
                   "95 %", "verdict", "region of the audit")  # fmt: skip
    for row in run.rows:
        train = "out of fold" if row["train"] is None else f"{row['train']:,}"
        works = "" if row["works"] else " (fails)"
        ends = "–" if row["ci"] is None else f"[{row['ci'][0]:.3f}, {row['ci'][1]:.3f}]"
        flags = f" ({', '.join(row['flags'])})" if row["flags"] else ""
        cells = [row["name"], row["paper"], f"{row['reader']}{works} ({train}, {row['items']:,})",
                 _number(row["accuracy"]), _number(row["query"]), _number(row["majority"]), _number(row["mpds"]),
                 f"{_number(row['delta'])} ± {_number(row['sd'], 4)}", ends, row["verdict"].replace("_", " "),
                 f"{row['region']}{flags}"]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "Labels of the reconstructed HotpotQA:", ""]
    for name in dict.fromkeys(row["name"] for row in run.rows if "weak" in row["name"]):
        counts = next(row["counts"] for row in run.rows if row["name"] == name)
        lines.append(f"- {name}: {', '.join(f'{number} {label}' for label, number in counts.items())}")
    lines += ["", "## Diagnostics", "", *_diagnostics(run), "", DIFFERENCES.strip(), ""]
    return "\n".join(lines)


def _diagnostics(run: Run) -> list[str]:
    lines = _head("benchmark", "reader", "column", "in distribution", "shifted", "gap", "gap after filtering",
                  "with equally few items", "change")  # fmt: skip
    for found in run.diagnostics:
        after = {(row["reader"], row["column"]): row for row in found["filtering"]}
        for row in found["shift"]:
            other = after[row["reader"], row["column"]]
            ends = "" if other["change_ci"] is None else f" [{other['change_ci'][0]:.3f}, {other['change_ci'][1]:.3f}]"
            cells = [found["name"], row["reader"], f"{row['column']} = {row['value']}",
                     _number(row["accuracy_in_distribution"]), _number(row["accuracy_shifted"]), _number(row["gap"]),
                     _number(other["gap_after"]), _number(other.get("gap_same_size")),
                     f"{_number(other['change'])}{ends}"]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *_head("benchmark", "reader", "flipped column", "answers changed")]
    for found in run.diagnostics:
        for row in found["flip"]:
            lines.append(f"| {found['name']} | {row['reader']} | {row['column']} | {row['changed_share']:.3f} |")
    return lines


def _head(*columns: str) -> list[str]:
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


HEAD = """
# The paper's numbers beside ours

Shao, *Metadata Predictability Is Not Evidence Dependence*, arXiv 2605.23701. Only a summary of the paper is public:
fields and sizes of its synthetic sets, hyper-parameters and most numbers per reader are unknown. This page was made by
`COMMAND` (K = 20, margin 0.02, alpha 0.05, seed 0); nothing was tuned to match. ΔEvi is the exact expectation over all
donors where the reader gives it, else the mean over K shuffles; ± is the population SD over the K shuffled accuracies,
the paper's spread, which is no standard error.
"""
DIFFERENCES = """
## What differs, and why

- **Readers.** The paper's LR is a TF-IDF logistic regression; ours has two fields (query and evidence have their own
  weights) and cannot match them by construction, so its ΔEvi on SNLI is near zero and its FEVER value is what evidence
  alone tells. `minilm_lr` is a frozen sentence encoder (pre-trained on SNLI among others, see the contamination flag)
  with a logistic regression; it is no row of the paper. Fine-tuned readers are run here only with `--strong`, at the
  reduced size that the row states; [results.md](results.md) has a fine-tuned MiniLM on SNLI and FEVER. With a few
  thousand training items they fall short of the paper's accuracies and of its ΔEvi.
- **SNLI.** The paper's sizes are unknown. Ours: a sample of the official test split; readers fitted on a sample of the
  training split.
- **FEVER.** Gold evidence, without "not enough info", fitted on the validation half and audited on the test half. The
  paper's evidence and classes are unknown.
- **HotpotQA, reconstructed.** The paper: fullwiki, 2,000 train and 600 evaluation rows, 578 full against 22 conflict,
  by an unknown rule. Ours: 1,795 rows of both settings, out of fold, by the rule of `scripts/weak_labels.py`. There the
  label depends on whether retrieval missed a paragraph, so evidence alone can tell it.
- **Synthetic sets.** Built to the paper's end points from its summary; they are not its sets.
- **Filtering.** The paper reports that dropping what metadata predict widens the gap under a shift. Ours compares with
  equally few items drawn at random, since a smaller training set alone moves the gap.

## What cannot be reproduced here

Numbers of BERT, DistilBERT, ELECTRA and SciBERT (their weights are not at hand without a network; the readers exist:
`--readers bert`); fullwiki retrieval; the paper's chance-corrected MPDS, whose formula is not public; hyper-parameters
and seeds. The summary gives 0.5975 both as SNLI hypothesis-only accuracy and as SciBERT's full accuracy, so that number
is not aimed at.
"""


def main() -> int:
    """Audit and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--readers", default="tfidf_lr,minilm_lr")
    parser.add_argument("--max-items", type=int, default=2000)
    parser.add_argument("--max-train-items", type=int, default=4000)
    parser.add_argument("--strong", help="a reader that is fine-tuned, for SNLI and FEVER")
    parser.add_argument("--strong-train", type=int, default=1000)
    parser.add_argument("--strong-items", type=int, default=300)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "reproduction.md")
    arguments = parser.parse_args()
    run = Run(tuple(arguments.readers.split(",")), arguments.max_items, arguments.max_train_items)
    strong = None
    if arguments.strong:
        strong = (arguments.strong, arguments.strong_train, arguments.strong_items)
    reproduce(arguments.data, run, strong)
    command = (
        f"python scripts/reproduce_paper.py --data FOLDER --readers {arguments.readers} --max-items "
        f"{arguments.max_items} --max-train-items {arguments.max_train_items}"
    )
    if strong is not None:
        command += f" --strong {strong[0]} --strong-train {strong[1]} --strong-items {strong[2]}"
    arguments.out.write_text(page(run, command), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
