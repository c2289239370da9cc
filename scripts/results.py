"""Audit the real benchmarks and write docs/results.md: one documented command each, its numbers, time and environment.

    python scripts/results.py --work FOLDER [--group light] [--only snli,fever]

The data folder is EVIDEP_DATA, else ../shared/data beside the checkout. Finished audits in FOLDER are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results.md"
LADDER = "tfidf_lr,minilm_lr,minilm"


@dataclass(frozen=True)
class Audit:
    """One audit: its title, the group that it belongs to, and the arguments of `evidep audit`.

    In the arguments, DATA stands for the data folder and WORK for the folder of derived files.
    """

    name: str
    group: str
    title: str
    arguments: str


AUDITS = (
    Audit("snli", "light", "SNLI", "DATA/snli.jsonl.gz --split test --train DATA/snli_train.jsonl.gz"),
    Audit("fever", "light", "FEVER (gold evidence)", "DATA/fever.jsonl.gz --split test --train-split validation"),
    Audit(
        "liar_plus",
        "light",
        "LIAR-PLUS",
        "DATA/liar_plus.jsonl.gz --split test --train-split validation --metadata speaker,party,state,job,subject",
    ),
    Audit("hotpotqa_yes_no", "light", "HotpotQA, yes/no questions", "WORK/hotpotqa_yes_no.jsonl --metadata type,level"),
    Audit(
        "hotpotqa_weak",
        "light",
        "HotpotQA, weak label",
        "WORK/hotpotqa_weak.jsonl --metadata type,level",
    ),
    Audit("pubmedqa", "light", "PubMedQA", "DATA/pubmedqa.jsonl.gz --split test --train-split train --metadata YEAR"),
    Audit("boolq", "light", "BoolQ (out of fold)", "DATA/boolq.jsonl.gz"),
    Audit("farstail", "light", "FarsTail (Persian)", "DATA/farstail.jsonl.gz --split test --train-split train"),
    Audit(
        "snli_ladder",
        "ladder",
        "SNLI",
        "DATA/snli.jsonl.gz --split test --train DATA/snli_train.jsonl.gz "
        f"--readers {LADDER} --shuffles global --max-items 1000 --max-train-items 8000 --ablations query-only",
    ),
    Audit(
        "fever_ladder",
        "ladder",
        "FEVER (gold evidence)",
        "DATA/fever.jsonl.gz --split test --train-split validation "
        f"--readers {LADDER} --shuffles global --max-items 600 --max-train-items 2000 --ablations query-only",
    ),
    Audit(
        "fever_symmetric_ladder",
        "ladder",
        "FEVER symmetric, v0.2",
        "WORK/fever_symmetric.jsonl --train DATA/fever.jsonl.gz --train-split validation "
        f"--readers {LADDER} --shuffles global --max-items 600 --max-train-items 2000 --ablations query-only",
    ),
    Audit(
        "pubmedqa_ladder",
        "ladder",
        "PubMedQA",
        "DATA/pubmedqa.jsonl.gz --split test --train-split train "
        "--readers tfidf_lr,minilm_lr,minilm:max_length=128 --shuffles global --max-items 300 --ablations query-only",
    ),
    Audit(
        "boolq_ladder",
        "ladder",
        "BoolQ (out of fold)",
        "DATA/boolq.jsonl.gz --readers tfidf_lr,minilm_lr,minilm:max_length=128 --shuffles global "
        "--ablations query-only",
    ),
    Audit(
        "farstail_ladder",
        "ladder",
        "FarsTail (Persian; MiniLM was trained on English)",
        "DATA/farstail.jsonl.gz --split test --train-split train "
        f"--readers {LADDER} --shuffles global --max-items 600 --max-train-items 2000 --ablations query-only",
    ),
)


def data_folder() -> Path:
    """Where the real benchmark text is."""
    folder = Path(os.environ.get("EVIDEP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        sys.exit(f"no benchmark data at {folder}: set EVIDEP_DATA")
    return folder


def derive(data: Path, work: Path) -> None:
    """Write the derived files (a subset, a reconstructed weak label) that some audits read."""
    from weak_labels import write_derived

    write_derived(data, work)


def run(audit: Audit, data: Path, work: Path) -> dict[str, Any]:
    """Run one audit unless its packet is there, and return packet and run."""
    out = work / audit.name
    if not (out / "packet.json").is_file():
        arguments = audit.arguments.replace("DATA/", f"{data}/").replace("WORK/", f"{work}/")
        command = [sys.executable, "-m", "evidep", "audit", *shlex.split(arguments), "--name", audit.name]
        sys.stderr.write(f"{audit.name}: {' '.join(command[1:])}\n")
        subprocess.run([*command, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
    packet = json.loads((out / "packet.json").read_text(encoding="utf-8"))
    return {"packet": packet, "run": json.loads((out / "run.json").read_text(encoding="utf-8"))}


def table(audit: Audit, result: dict[str, Any]) -> list[str]:
    """The numbers of one audit as Markdown lines."""
    packet, reused = result["packet"], result["run"]["cells_reused"]
    seconds = f"{result['run']['seconds']:.0f} s" + (f" ({reused} cells reused from an earlier run)" if reused else "")
    data = packet["data"]
    train = "out of fold" if data["train_rows"] is None else f"{data['train_rows']:,} train items"
    command = audit.arguments.replace("DATA/", "$EVIDEP_DATA/").replace("WORK/", "work/")
    mpds = "no metadata declared"
    if packet["metadata"]["mpds"] is not None:
        mpds = f"MPDS {number(packet['metadata']['mpds'])} {interval(packet['metadata']['ci'])}"
    lines = [
        f"### {audit.title}",
        "",
        f"`evidep audit {command}`",
        "",
        f"{data['rows']:,} items in {data['groups']:,} groups, {train}; "
        f"majority rate {number(packet['majority_rate'])}; {mpds}; {seconds}.",
        "",
        "| reader | shuffle | accuracy | shuffled | ΔEvi | 95 % interval | p | verdict | query-only, retrained |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    failed = {(reader["reader"], reader["seed"]) for reader in packet["readers"] if not reader["works"]}
    for row in packet["delta_evi"]:
        effect = row["exact"] if row["exact"] is not None else row["mean"]
        alone = [
            a["accuracy"]
            for a in packet["ablations"]
            if (a["reader"], a["seed"], a["arm"], a["how"]) == (row["reader"], row["seed"], "query-only", "retrained")
        ]
        verdict = row["verdict"].replace("_", " ") + (" (negligible)" if row["negligible"] else "")
        if (row["reader"], row["seed"]) in failed:
            verdict = "reader failed"
        shuffled = None if effect is None else row["accuracy_full"] - effect
        lines.append(
            f"| {row['reader']} | {row['shuffle']} | {number(row['accuracy_full'])} | {number(shuffled)} | "
            f"{number(effect)} | {interval(row['ci'])} | {number(row['p_value'])} | {verdict} | "
            f"{number(alone[0]) if alone else '–'} |"
        )
    diagnosis = packet["diagnosis"]
    flags = ", ".join(flag.replace("_", " ") for flag in diagnosis["flags"]) or "none"
    lines += ["", f"**{diagnosis['region'].replace('_', ' ')}**; flags: {flags}.", ""]
    return lines


def number(value: float | None) -> str:
    """Three digits, or a dash."""
    return "–" if value is None else f"{value:.3f}"


def interval(ci: list[float] | None) -> str:
    """[low, high], or a dash."""
    return "–" if ci is None else f"[{ci[0]:.3f}, {ci[1]:.3f}]"


HEADER = """# Results on real benchmarks

Made by `python scripts/results.py --work work` from the packets that the commands below write; `EVIDEP_DATA` is the
folder of benchmark files. ΔEvi is the exact expectation over all donors where the reader allows it, else the mean over
20 shuffles; intervals are for items like these; p (add-one permutation test, at least 1/21 = 0.048) speaks of these
items. A reader that does not beat the commonest label has failed: its ΔEvi says nothing. Times are wall time on two
shared CPU cores and vary with the neighbours.

The texts are not part of evidep. all-MiniLM-L6-v2 (readers minilm_lr and minilm) saw SNLI, MNLI, SQuAD, NQ and TriviaQA
in pre-training: its SNLI rows are contaminated.
"""

GROUPS = {
    "light": "## Light reader\n\nOnly `tfidf_lr`, which adds and cannot match: near zero here asks for calibration.\n",
    "ladder": "## Calibration ladder\n\n`minilm_lr` reads frozen embeddings, `minilm` is fine-tuned. Sizes are reduced "
    "where `--max-items` or `--max-train-items` says so. Statistics are of this release; where cells are reused, "
    "fits and scores are those of an earlier run. From nothing, on two cores shared with other work, the audits with "
    "`minilm` took 517 s (FEVER), 435 s (FEVER symmetric) and 384 s (PubMedQA); SNLI, BoolQ and FarsTail were "
    "interrupted and resumed, so their times are not known (BoolQ about an hour).\n",
}


def main() -> int:
    """Run the audits and write the page from all packets that are there."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--work", type=Path, required=True, help="folder for packets and derived files")
    options.add_argument("--group", choices=tuple(GROUPS), help="light or ladder (default: both)")
    options.add_argument("--only", help="names, comma-separated")
    options.add_argument("--page-only", action="store_true", help="write the page from the packets that are there")
    arguments = options.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    data = data_folder()
    wanted = set(arguments.only.split(",")) if arguments.only else {audit.name for audit in AUDITS}
    if not arguments.page_only:
        derive(data, arguments.work)
        for audit in AUDITS:
            if audit.name in wanted and arguments.group in (None, audit.group):
                run(audit, data, arguments.work)
    lines = [HEADER]
    environment = None
    for group, title in GROUPS.items():
        found = [a for a in AUDITS if a.group == group and (arguments.work / a.name / "packet.json").is_file()]
        if found:
            lines.append(title)
        for audit in found:
            result = run(audit, data, arguments.work)
            environment = result["packet"]["environment"]
            lines += table(audit, result)
    if environment is not None:
        packages = ", ".join(f"{name} {version}" for name, version in environment["packages"].items())
        lines += ["## Environment", "", f"Python {environment['python']}, {environment['platform']}; {packages}."]
    PAGE.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
