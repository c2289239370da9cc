"""Which part of ΔEvi is what: the four shuffles on FEVER, WiCE and SNLI.

    python scripts/decompose.py --data FOLDER [--readers tfidf_lr,minilm_lr] [--max-items 2000] [--max-train-items 4000]

writes docs/decomposition.md. FOLDER holds the normalised benchmark files (query, evidence, label, split).
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evidep.stats.paired import cluster_mean

ROOT = Path(__file__).resolve().parents[1]
SHUFFLES = ("global", "within-label", "within-metadata", "near-miss")
SETS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("FEVER", {"file": "fever", "split": "test", "train_split": "validation", "metadata": "n_evidence"}),
    ("WiCE", {"file": "wice", "split": "test", "train_split": "validation", "group": "claim_id"}),
    ("SNLI", {"file": "snli", "split": "test", "train": "snli_train", "train_split": "train"}),
)
LENGTHS = ("short", "middle", "long")


def rows_of(path: Path, split: str, length: tuple[float, float] | None) -> tuple[list[dict[str, Any]], Any]:
    """The rows of one split with the column evidence_length (thirds), and the two lengths that divide them."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["split"] == split]
    words = np.array([len(row["evidence"].split()) for row in rows])
    cuts = tuple(np.quantile(words, (1 / 3, 2 / 3))) if length is None else length
    third = np.searchsorted(cuts, words, side="left")
    return [row | {"evidence_length": LENGTHS[at]} for row, at in zip(rows, third, strict=True)], cuts


def decompose(folder: Path, readers: tuple[str, ...], max_items: int, max_train_items: int) -> list[dict[str, Any]]:
    """One row per set, reader and shuffle."""
    import evidep

    rows = []
    for name, source in SETS:
        train, cuts = rows_of(folder / f"{source.get('train', source['file'])}.jsonl.gz", source["train_split"], None)
        items, _ = rows_of(folder / f"{source['file']}.jsonl.gz", source["split"], cuts)
        metadata = source.get("metadata", "evidence_length")
        roles: dict[str, Any] = {"query": "query", "evidence": "evidence", "label": "label", "metadata": [metadata]}
        roles |= {"group": source["group"]} if "group" in source else {}
        with tempfile.TemporaryDirectory() as out:
            packet = evidep.audit(
                items, train=train, roles=roles, readers=readers, shuffles=SHUFFLES, ablations=(),
                max_items=max_items, max_train_items=max_train_items, name=name, out=out,
            )  # fmt: skip
            per_item = pd.read_parquet(Path(out) / "items.parquet")
        works = {reader["reader"]: reader["works"] for reader in packet["readers"]}
        for row in packet["delta_evi"]:
            mine = per_item[per_item["reader"] == row["reader"]]
            less = None
            if row["shuffle"] != "global":
                kept = mine[[f"right_share_{row['shuffle']}", "right_share_global", "group"]].dropna()
                found = cluster_mean(
                    (kept[f"right_share_{row['shuffle']}"] - kept["right_share_global"]).to_numpy(),
                    kept["group"].to_numpy(),
                    0.05,
                )
                less = (found.estimate, found.ci.low, found.ci.high)
            rows.append(
                {"set": name, "items": packet["data"]["rows"], "train": packet["data"]["train_rows"], "less": less,
                 "region": packet.region, "majority": packet["majority_rate"], "works": works[row["reader"]],
                 "metadata": metadata, **row}
            )  # fmt: skip
        sys.stderr.write(f"{name}: {packet.region}\n")
    return rows


def page(rows: list[dict[str, Any]], command: str) -> str:
    """docs/decomposition.md."""
    lines = [
        HEAD.strip().replace("COMMAND", command),
        "",
        "| set (items, train items, majority) | reader | accuracy | shuffle | ΔEvi | 95 % | verdict |"
        " less than global by | 95 % |",
        f"|{'---|' * 9}",
    ]
    for row in rows:
        effect = row["mean"] if row["exact"] is None else row["exact"]
        full = "–" if row["accuracy_full"] is None else f"{row['accuracy_full']:.3f}"
        verdict = "negligible" if row["negligible"] else row["verdict"].replace("_", " ")
        name = f"{row['set']} ({row['items']:,}, {row['train']:,}, {row['majority']:.3f})"
        shuffle = f"within {row['metadata']}" if row["shuffle"] == "within-metadata" else row["shuffle"]
        less = "–" if row["less"] is None else f"{row['less'][0]:.3f}"
        lines.append(
            f"| {name} | {row['reader']}{'' if row['works'] else ' (**fails**)'} | {full} | {shuffle} | "
            f"{'–' if effect is None else f'{effect:.3f}'} | {_ends(row['ci'])} | {verdict} | {less} | "
            f"{_ends(None if row['less'] is None else row['less'][1:])} |"
        )
    return "\n".join([*lines, "", "## What it shows", "", *shows(rows), "", LIMITS.strip(), ""])


def shows(rows: list[dict[str, Any]]) -> list[str]:
    """Sentences with the numbers of the readers that work and are sensitive."""
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        readers = {row["reader"]: row for row in rows if (row["set"], row["shuffle"]) == (name, "global")}
        useful = [reader for reader, row in readers.items() if row["works"] and row["verdict"] == "sensitive"]
        if not useful:
            which = ", ".join(
                f"{reader} {'fails' if not row['works'] else 'has no ΔEvi beyond the margin'}"
                for reader, row in readers.items()
            )
            lines.append(f"- **{name}**: nothing can be concluded ({which}); a stronger reader has to tell.")
            continue
        reader = useful[-1]
        whole = _effect(readers[reader])
        parts = []
        for row in rows:
            if (row["set"], row["reader"]) != (name, reader) or row["less"] is None:
                continue
            low, high = row["less"][1:]
            differs = "less" if low > 0 else "more" if high < 0 else "not distinguishable from the global shuffle"
            shuffle = f"within {row['metadata']}" if row["shuffle"] == "within-metadata" else row["shuffle"]
            parts.append(f"{shuffle} {_effect(row) / whole:.0%} ({differs})")
        lines.append(f"- **{name}**, {reader}: of its global ΔEvi of {whole:.3f} there remain {', '.join(parts)}.")
    return lines


def _effect(row: dict[str, Any]) -> float:
    return float(row["mean"] if row["exact"] is None else row["exact"])


def _ends(ends: Any) -> str:
    return "–" if ends is None or ends[0] != ends[0] else f"[{ends[0]:.3f}, {ends[1]:.3f}]"


HEAD = """
# What the shuffles take apart

One command made this page: `COMMAND`. Each shuffle removes another part of what the evidence can do:

- **global**: everything that depends on having the own evidence.
- **within-label**: donors have the item's own label. What evidence alone tells of the label is kept; what falls is the
  matching of query and evidence.
- **within-metadata**: donors share metadata: the number of evidence sentences (FEVER), else the third of the train
  split's evidence lengths, since WiCE and SNLI come without a column of their own.
- **near-miss**: donors are the most similar other evidence. Topic and words are kept; what falls is the content.

"Less than global by": ΔEvi of the global shuffle minus this one's, from 20 shuffles of each on the same items, with an
interval clustered by group. A reader that **fails** does not beat the majority by more than noise: its numbers say
nothing of the set.
"""
LIMITS = """
Where the within-label shuffle costs as much as the global one, what the reader loses is the match of query and
evidence, not evidence that gives the label away by itself. Where the most similar other evidence costs less than a
random donor, the rest of the global ΔEvi is topic: a random donor speaks of something else, and the reader notices. So
a global ΔEvi is an upper value for what the *content* of the evidence is worth to a reader. The additive reader cannot
match query with evidence, so its zeros say nothing of the sets.
"""


def main() -> int:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--readers", default="tfidf_lr,minilm_lr")
    parser.add_argument("--max-items", type=int, default=2000)
    parser.add_argument("--max-train-items", type=int, default=4000)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "decomposition.md")
    arguments = parser.parse_args()
    rows = decompose(
        arguments.data, tuple(arguments.readers.split(",")), arguments.max_items, arguments.max_train_items
    )
    command = (
        f"python scripts/decompose.py --data FOLDER --readers {arguments.readers} --max-items {arguments.max_items} "
        f"--max-train-items {arguments.max_train_items}"
    )
    arguments.out.write_text(page(rows, command), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
