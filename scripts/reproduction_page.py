"""docs/reproduction.md from the packets of scripts/reproduce_paper.py."""
# ruff: noqa: E501 (rows of a Markdown table)

from __future__ import annotations

from typing import Any

Row = tuple[str, str, str | None, dict[str, Any]]


def page(rows: list[Row], command: str) -> str:
    """The page.

    Args:
        rows: For each benchmark its name, what the paper reports, the region that this amounts to, and
            {"packet", "diagnostics"}.
        command: That made the packets.
    """
    parts = [
        HEAD.replace("COMMAND", command),
        "## The pattern",
        _patterns(rows),
        "## The numbers",
        NUMBERS,
        _numbers(rows),
        *_label_counts(rows),
        "## Diagnostics of the paper",
        DIAGNOSTICS,
        _shifts(rows),
        _flips(rows),
        DIFFERENCES,
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _patterns(rows: list[Row]) -> str:
    lines = _head("benchmark", "the paper's numbers", "in our terms", "our audit", "flags", "same region")
    for name, paper, expected, found in rows:
        diagnosis = found["packet"]["diagnosis"]
        same = "–" if expected is None else "yes" if diagnosis["region"] == expected else "**no**"
        flags = ", ".join(diagnosis["flags"]).replace("_", " ") or "none"
        words = "–" if expected is None else expected.replace("_", " ")
        lines.append(f"| {name} | {paper} | {words} | {diagnosis['region'].replace('_', ' ')} | {flags} | {same} |")
    return "\n".join(lines)


def _numbers(rows: list[Row]) -> str:
    lines = _head("benchmark (items, train items)", "reader", "accuracy", "query-only", "majority", "MPDS", "ΔEvi",
                  "95 %", "verdict")  # fmt: skip
    for name, _paper, _expected, found in rows:
        packet = found["packet"]
        data = packet["data"]
        train = "out of fold" if data["train_rows"] is None else f"{data['train_rows']:,}"
        for reader in packet["readers"]:
            who = reader["reader"]
            delta = next(d for d in packet["delta_evi"] if (d["reader"], d["shuffle"]) == (who, "global"))
            query = next((a["accuracy"] for a in packet["ablations"]
                          if (a["reader"], a["arm"], a["how"]) == (who, "query-only", "retrained")), None)  # fmt: skip
            mpds = next((m["mpds"] for m in packet["metadata"]["by_reader"] if m["reader"] == who), None)
            effect = delta["mean"] if delta["exact"] is None else delta["exact"]
            fails = "" if reader["works"] else " (fails)"
            lines.append(
                f"| {name} ({data['rows']:,}, {train}) | {who}{fails} | {_number(reader['accuracy_full'])} | "
                f"{_number(query)} | {_number(packet['majority_rate'])} | {_number(mpds)} | "
                f"{_number(effect)} ± {_number(delta['sd_population'], 4)} | {_ends(delta['ci'])} | "
                f"{delta['verdict'].replace('_', ' ')}{' (negligible)' if delta['negligible'] else ''} |"
            )
    return "\n".join(lines)


def _label_counts(rows: list[Row]) -> list[str]:
    found = [(name, packets["packet"]["data"]["label_counts"]) for name, _, _, packets in rows if "recons" in name]
    return [f"{name}: {', '.join(f'{n:,} {label}' for label, n in counts.items())}." for name, counts in found]


def _shifts(rows: list[Row]) -> str:
    lines = _head("benchmark", "held out", "accuracy inside", "outside", "gap", "95 %", "after filtering",
                  "same size, at random", "change by filtering", "95 %", "note")  # fmt: skip
    for name, _paper, _expected, found in rows:
        diagnostics = found["diagnostics"] or {"shift": []}
        for row in diagnostics["shift"]:
            after = next(
                f for f in diagnostics["filtering"] if (f["reader"], f["column"]) == (row["reader"], row["column"])
            )
            note = "; ".join(dict.fromkeys(r for r in (row["reason"], after["reason"]) if r)) or "–"
            lines.append(
                f"| {name} | {row['column']} = {row['value']} | {_number(row['accuracy_in_distribution'])} | "
                f"{_number(row['accuracy_shifted'])} | {_number(row['gap'])} | {_ends(row['gap_ci'])} | "
                f"{_number(after['gap_after'])} | {_number(after['gap_same_size'])} | {_number(after['change'])} | "
                f"{_ends(after['change_ci'])} | {note} |"
            )
        for reason in diagnostics.get("reasons", ()):
            lines.append(f"| {name} | – | – | – | – | – | – | – | – | – | {reason} |")
    return "\n".join(lines)


def _flips(rows: list[Row]) -> str:
    lines = _head("benchmark", "who answers", "flipped column", "answers changed", "95 %")
    for name, _paper, _expected, found in rows:
        for row in (found["diagnostics"] or {"flip": []})["flip"]:
            share = "–" if row["changed_share"] is None else f"{row['changed_share']:.3f}"
            lines.append(f"| {name} | {row['reader']} | {row['column']} | {share} | {_ends(row['ci'])} |")
    return "\n".join(lines)


def _head(*columns: str) -> list[str]:
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None or value != value else f"{value:.{digits}f}"


def _ends(ci: list[float] | None) -> str:
    return "–" if ci is None else f"[{ci[0]:.3f}, {ci[1]:.3f}]"


HEAD = """
# The paper's numbers beside ours

Shao, *Metadata Predictability Is Not Evidence Dependence*, arXiv 2605.23701. Only a summary of the paper is public:
fields and sizes of its synthetic sets, hyper-parameters and most numbers per reader are unknown. This page was made by
`COMMAND` (K = 20, margin 0.02, alpha 0.05, seed 0).

No number of this page was tuned to match. Two choices that bear on it were nevertheless made knowing benchmark results:
`tfidf_lr` gives evidence half the query's weight, first picked on items audited here
([decision 0006](decisions/0006-light-reader-weighs-evidence-by-half.md)), and the rule of the reconstructed HotpotQA
labels was written knowing that the paper counts 578 full and 22 conflict.
"""
NUMBERS = """
ΔEvi is the exact expectation over all donors where the reader gives it, else the mean over 20 shuffles; ± is the
population SD over the shuffled accuracies, the paper's spread, which is no standard error. MPDS is against that row's
own reader. `tfidf_lr_joined` reads query and evidence as one text with one vocabulary, perhaps nearer to the paper's LR.
"""
DIAGNOSTICS = """
The paper reports accuracy under a shift of the answer type, outputs changed by flipping one metadata field, and that
dropping the items that metadata predict *widens* the gap under the shift; the summary gives no number of these. Ours,
with `tfidf_lr`: one value of a column is held out of training, and the gap is accuracy on the other values minus that
on the held-out one. "Change by filtering" compares the filtered training set with equally few items drawn at random,
since fewer items alone move the gap; above 0 means that filtering widens it.
"""
DIFFERENCES = """
## What differs, and why

- **The paper's LR.** A TF-IDF logistic regression; how it joins query and evidence is not said. Ours cannot match the
  two by construction: what it loses is what evidence alone tells. On FEVER the paper's LR has ΔEvi 0.13, ours 0.01: our
  FEVER holds only gold evidence of supported and refuted claims, whose words hardly tell the label, while "not enough
  info" items, if the paper has them, carry evidence that was not selected for the claim and may be told by its looks.
- **minilm_lr and minilm.** No rows of the paper; a frozen and a fine-tuned all-MiniLM-L6-v2 (22.7 M parameters; it saw
  SNLI among others, see the contamination flag). With a few thousand training items their accuracies and ΔEvi fall short
  of the paper's BERT on the full training sets; sign and order are what can be compared.
- **SNLI.** The paper's sizes are unknown. Ours: samples of the official test and training splits.
- **FEVER.** Gold evidence, without "not enough info", fitted on the validation half and audited on the test half.
- **HotpotQA, reconstructed.** The paper: fullwiki, 2,000 train and 600 evaluation rows, labels by an unknown rule from
  question type, answer type and number of supporting facts. Ours: a sample of 1,795 rows of both settings, out of fold,
  by the rule of `scripts/weak_labels.py`. Under that rule the label depends on whether retrieval missed a paragraph, which
  the evidence itself shows: `minilm_lr` beats the 94.7 % majority through evidence alone (flag evidence-only shortcut),
  the lexical readers do not beat it at all. So this row is **not** reproduced;
  the label skew is. Which reader reached 0.975 from the question in the paper is not said.
- **Synthetic sets.** Built to the paper's end points from its summary; they are not its sets. HotpotQA's needs 4,000
  training items for MPDS 0.643 (with 1,500 `tfidf_lr` has not learnt it all and MPDS is 0.69), and is called latent only
  because a strong reader agrees; with light readers alone the audit says "calibrate first". There `minilm_lr` is the
  least accurate reader and trips over foreign evidence: it is passed over
  ([decision 0007](decisions/0007-outperformed-readers-are-passed-over.md)).

## What cannot be reproduced here

Numbers of BERT, DistilBERT, ELECTRA and SciBERT (their weights are not at hand without a network; the readers exist:
`--strong bert`); fullwiki retrieval; the paper's chance-corrected MPDS, whose formula is not public; hyper-parameters
and seeds. The summary gives 0.5975 both as SNLI hypothesis-only accuracy and as SciBERT's full accuracy, so that number
is not aimed at.
"""
